"""instructor against a running server: check_instructor.py URL MODEL.

Only the modes that send a schema or a tool: JSON, MD_JSON and the JSON modes for Anthropic write it
into the prompt, and nothing can be enforced there.
"""

import sys

import anthropic
import instructor
import openai
from checks import TEXT, Factura, Prevision, run

URL, MODEL = sys.argv[1:3]
messages = [{"role": "user", "content": TEXT}]


def by_openai(mode):
    client = openai.OpenAI(base_url=URL + "/v1", api_key="local", max_retries=0, timeout=300)
    return instructor.from_openai(client, mode=mode)


def asked(client, form, **fields):
    # One try: an answer that fails its class is a failure of the server.
    return client.chat.completions.create(model=MODEL, messages=messages, response_model=form, max_retries=0, **fields)


def tools():
    for form in (Prevision, Factura):
        assert isinstance(asked(by_openai(instructor.Mode.TOOLS), form), form)


def tools_strict():
    assert isinstance(asked(by_openai(instructor.Mode.TOOLS_STRICT), Prevision), Prevision)


def json_schema():
    for form in (Prevision, Factura):
        assert isinstance(asked(by_openai(instructor.Mode.JSON_SCHEMA), form), form)


def partial():
    client = by_openai(instructor.Mode.JSON_SCHEMA)
    parts = list(client.chat.completions.create_partial(model=MODEL, messages=messages, response_model=Prevision, max_retries=0))
    assert parts
    Prevision.model_validate(parts[-1].model_dump())


def iterable():
    client = by_openai(instructor.Mode.TOOLS)
    rows = list(client.chat.completions.create_iterable(model=MODEL, messages=messages, response_model=Prevision, max_retries=0, max_tokens=300))
    assert all(isinstance(row, Prevision) for row in rows)


def anthropic_tools():
    client = instructor.from_anthropic(
        anthropic.Anthropic(base_url=URL, api_key="local", max_retries=0, timeout=300), mode=instructor.Mode.ANTHROPIC_TOOLS)
    for form in (Prevision, Factura):
        assert isinstance(asked(client, form, max_tokens=300), form)


print("instructor", getattr(instructor, "__version__", ""))
run([tools, tools_strict, json_schema, partial, iterable, anthropic_tools])
