"""The anthropic SDK against a running server: check_anthropic.py URL MODEL. Works with 0.77 and later."""

import sys

import anthropic
from checks import TEXT, Factura, Prevision, PrevisionConDefecto, run

URL, MODEL = sys.argv[1:3]
client = anthropic.Anthropic(base_url=URL, api_key="local", max_retries=0, timeout=300)
messages = [{"role": "user", "content": TEXT}]
tool = {"name": "guardar", "description": "Guarda la previsión", "input_schema": Prevision.model_json_schema()}


def messages_parse():
    # Of the later classes 0.77 keeps no enumeration that it could send.
    forms = [Prevision, PrevisionConDefecto, Factura]
    for form in forms:
        message = client.messages.parse(model=MODEL, max_tokens=300, messages=messages, output_format=form)
        assert isinstance(message.parsed_output, form), message


def bounds_hold_for_untrained_wishes():
    # The bounds are only in descriptions; without them the model writes what it likes.
    message = client.messages.parse(
        model=MODEL, max_tokens=200, output_format=Prevision,
        messages=[{"role": "user", "content": "trimestre 9 de 1985, entre -5 y -3 millones"}])
    assert isinstance(message.parsed_output, Prevision)


def beta_parse():
    if not hasattr(client.beta.messages, "parse"):
        return
    message = client.beta.messages.parse(model=MODEL, max_tokens=200, messages=messages, output_format=Prevision)
    assert isinstance(message.parsed_output, Prevision)


def tools():
    for choice in ({"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "guardar"}):
        message = client.messages.create(model=MODEL, max_tokens=200, messages=messages, tools=[tool], tool_choice=choice)
        call = [block for block in message.content if block.type == "tool_use"][0]
        Prevision.model_validate(call.input)
        assert message.stop_reason == "tool_use"
    history = messages + [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"}]}]
    after = client.messages.create(model=MODEL, max_tokens=20, messages=history, tools=[tool])
    assert after.content


def stream():
    with client.messages.stream(model=MODEL, max_tokens=20, system="Responde.", messages=messages) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    assert text == final.content[0].text and final.usage.output_tokens <= 20


def stream_tools():
    with client.messages.stream(model=MODEL, max_tokens=200, messages=messages, tools=[tool], tool_choice={"type": "any"}) as events:
        final = events.get_final_message()
    Prevision.model_validate([block for block in final.content if block.type == "tool_use"][0].input)


def count_tokens():
    assert client.messages.count_tokens(model=MODEL, messages=messages).input_tokens > 10


def prefill():
    message = client.messages.create(
        model=MODEL, max_tokens=20, messages=messages + [{"role": "assistant", "content": "La previsión es"}])
    assert message.content[0].type == "text"


def errors():
    try:
        client.messages.create(model="nobody", max_tokens=5, messages=messages)
        raise AssertionError("expected an error")
    except anthropic.NotFoundError as error:
        assert error.body["error"]["type"] == "not_found_error"
    try:
        client.messages.create(model=MODEL, max_tokens=5, messages=messages, tools=[{"name": "malo", "input_schema": {"type": "object", "properties": {"a": {"pattern": "("}}}}])
        raise AssertionError("expected an error")
    except anthropic.BadRequestError as error:
        assert "malo" in str(error) and "/properties/a/pattern" in str(error)


def models():
    assert MODEL in [model.id for model in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL


print("anthropic", anthropic.__version__)
run([messages_parse, bounds_hold_for_untrained_wishes, beta_parse, tools, stream, stream_tools, count_tokens, prefill, errors, models])
