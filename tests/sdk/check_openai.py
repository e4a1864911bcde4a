"""The openai SDK against a running server: check_openai.py URL MODEL. Works with 1.x and later."""

import json
import sys

import openai
from checks import TEXT, Factura, Prevision, PrevisionConDefecto, run
from pydantic import BaseModel

URL, MODEL = sys.argv[1:3]
client = openai.OpenAI(base_url=URL + "/v1", api_key="local", max_retries=0, timeout=300)
messages = [{"role": "system", "content": "Extrae la previsión."}, {"role": "user", "content": TEXT}]
parse = client.chat.completions.parse if hasattr(client.chat.completions, "parse") else client.beta.chat.completions.parse


def chat_parse():
    for form in (Prevision, PrevisionConDefecto, Factura):
        completion = parse(model=MODEL, messages=messages, response_format=form)
        assert isinstance(completion.choices[0].message.parsed, form)
        assert completion.usage.total_tokens > 0


def chat_create_raw_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 7}}, "required": ["n"], "additionalProperties": False}
    completion = client.chat.completions.create(
        model=MODEL, messages=messages,
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
    assert 5 <= json.loads(completion.choices[0].message.content)["n"] <= 7


def chat_json_object():
    completion = client.chat.completions.create(
        model=MODEL, messages=messages, max_tokens=200, response_format={"type": "json_object"})
    assert isinstance(json.loads(completion.choices[0].message.content), dict)


def chat_tools():
    tool = openai.pydantic_function_tool(Prevision, name="guardar")
    completion = parse(model=MODEL, messages=messages, tools=[tool], tool_choice="required", parallel_tool_calls=False)
    call = completion.choices[0].message.tool_calls[0]
    assert call.function.name == "guardar" and isinstance(call.function.parsed_arguments, Prevision)
    history = messages + [
        {"role": "assistant", "content": None, "tool_calls": [{"id": call.id, "type": "function", "function": {"name": "guardar", "arguments": call.function.arguments}}]},
        {"role": "tool", "tool_call_id": call.id, "content": "guardado"}]
    after = client.chat.completions.create(model=MODEL, messages=history, tools=[tool], max_tokens=30)
    assert after.choices[0].finish_reason in ("stop", "length", "tool_calls")


def chat_stream():
    pieces = []
    usage = None
    for chunk in client.chat.completions.create(
            model=MODEL, messages=messages, max_tokens=20, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        pieces += [choice.delta.content or "" for choice in chunk.choices]
    assert "".join(pieces) and usage.completion_tokens <= 20


def chat_stream_helper():
    if not hasattr(client.chat.completions, "stream"):
        return
    with client.chat.completions.stream(model=MODEL, messages=messages, response_format=Prevision) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Prevision)


def logprobs():
    completion = client.chat.completions.create(
        model=MODEL, messages=messages, max_tokens=5, logprobs=True, top_logprobs=3)
    tokens = completion.choices[0].logprobs.content
    assert tokens and all(token.logprob <= 0 and len(token.top_logprobs) == 3 for token in tokens)


def vllm_choice():
    completion = client.chat.completions.create(
        model=MODEL, messages=messages, extra_body={"guided_choice": ["alto", "bajo"]})
    assert completion.choices[0].message.content in ("alto", "bajo")


def responses_parse():
    if not hasattr(client, "responses"):
        return
    response = client.responses.parse(model=MODEL, input=messages, text_format=Prevision)
    assert isinstance(response.output_parsed, Prevision)
    assert client.responses.retrieve(response.id).id == response.id
    again = client.responses.parse(
        model=MODEL, input="¿Y ahora?", instructions="Extrae.", text_format=Prevision, previous_response_id=response.id)
    assert isinstance(again.output_parsed, Prevision)


def responses_stream():
    if not hasattr(client, "responses"):
        return
    with client.responses.stream(model=MODEL, input=messages, text_format=Prevision) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_response().output_parsed, Prevision)


def responses_tools():
    if not hasattr(client, "responses"):
        return
    tool = {"type": "function", "name": "guardar", "parameters": Prevision.model_json_schema(), "strict": True}
    response = client.responses.create(model=MODEL, input=TEXT, tools=[tool], tool_choice="required", parallel_tool_calls=False)
    call = [item for item in response.output if item.type == "function_call"][0]
    Prevision.model_validate_json(call.arguments)
    items = [{"role": "user", "content": TEXT}, {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
             {"type": "function_call_output", "call_id": call.call_id, "output": "ok"}]
    assert client.responses.create(model=MODEL, input=items, tools=[tool], max_output_tokens=20).status in ("completed", "incomplete")


def completions():
    completion = client.completions.create(model=MODEL, prompt="uno, dos,", max_tokens=5)
    assert completion.choices[0].text


def length_is_an_error_of_the_helper():
    class Largo(BaseModel):
        texto: str

    try:
        parse(model=MODEL, messages=messages, response_format=Largo, max_tokens=12)
    except openai.LengthFinishReasonError:
        return
    # An answer that happens to be that short is none.


def errors():
    def fails(kind, **fields):
        try:
            client.chat.completions.create(**{"model": MODEL, "messages": messages, **fields})
        except kind as error:
            return error
        raise AssertionError(f"expected {kind.__name__}")

    assert fails(openai.NotFoundError, model="nobody").code == "model_not_found"
    bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": {"a": {"type": "text"}}}}}
    assert "/properties/a/type" in str(fails(openai.BadRequestError, response_format=bad))
    assert fails(openai.BadRequestError, max_tokens=2, response_format={"type": "json_schema", "json_schema": {
        "name": "x", "schema": Prevision.model_json_schema()}}).code == "max_tokens_too_small"


def models():
    assert MODEL in [model.id for model in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL


print("openai", openai.__version__)
run([chat_parse, chat_create_raw_schema, chat_json_object, chat_tools, chat_stream, chat_stream_helper, logprobs,
     vllm_choice, responses_parse, responses_stream, responses_tools, completions, length_is_an_error_of_the_helper,
     errors, models])
