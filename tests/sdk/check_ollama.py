"""The ollama SDK against a running server: check_ollama.py URL MODEL."""

import sys

import ollama
from checks import TEXT, Factura, Prevision, run

URL, MODEL = sys.argv[1:3]
client = ollama.Client(host=URL, timeout=300, headers={"Authorization": "Bearer local"})
messages = [{"role": "user", "content": TEXT}]
tool = {"type": "function", "function": {"name": "guardar", "description": "Guarda", "parameters": Prevision.model_json_schema()}}


def chat_format():
    for form in (Prevision, Factura):
        answer = client.chat(model=MODEL, messages=messages, format=form.model_json_schema(), options={"num_predict": 300})
        form.model_validate_json(answer.message.content)
        assert answer.done_reason == "stop"


def chat_stream():
    pieces = [part.message.content for part in client.chat(model=MODEL, messages=messages, stream=True, options={"num_predict": 10})]
    assert "".join(pieces)


def chat_tools():
    answer = client.chat(model=MODEL, messages=messages, tools=[tool], options={"num_predict": 100})
    for call in answer.message.tool_calls or []:
        Prevision.model_validate(call.function.arguments)


def generate():
    answer = client.generate(model=MODEL, prompt=TEXT, system="Extrae.", format=Prevision.model_json_schema())
    Prevision.model_validate_json(answer.response)
    assert "".join(part.response for part in client.generate(model=MODEL, prompt="hola", stream=True, options={"num_predict": 5}))


def models():
    assert MODEL in [model.model for model in client.list().models]
    assert client.show(MODEL).details.family
    assert client.ps().models


def errors():
    for model, status in (("nobody", 404),):
        try:
            client.chat(model=model, messages=messages)
            raise AssertionError("expected an error")
        except ollama.ResponseError as error:
            assert error.status_code == status
    try:
        client.embed(model=MODEL, input="a")
        raise AssertionError("expected an error")
    except ollama.ResponseError as error:
        assert error.status_code == 501


print("ollama")
run([chat_format, chat_stream, chat_tools, generate, models, errors])
