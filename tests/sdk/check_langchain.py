"""LangChain against a running server: check_langchain.py URL MODEL."""

import sys

from checks import TEXT, Factura, Prevision, run
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

URL, MODEL = sys.argv[1:3]


def by_openai(**fields):
    return ChatOpenAI(base_url=URL + "/v1", api_key="local", model=MODEL, max_retries=0, timeout=300, **fields)


def openai_methods():
    for fields in ({}, {"method": "json_schema"}, {"method": "function_calling"}, {"method": "function_calling", "strict": True}):
        model = by_openai().with_structured_output(Prevision, **fields)
        assert isinstance(model.invoke(TEXT), Prevision), fields


def openai_rich():
    assert isinstance(by_openai().with_structured_output(Factura).invoke(TEXT), Factura)


def openai_schema_as_dict():
    schema = Prevision.model_json_schema()
    answer = by_openai().with_structured_output(schema, method="json_schema").invoke(TEXT)
    Prevision.model_validate(answer)


def openai_include_raw():
    answer = by_openai().with_structured_output(Prevision, include_raw=True).invoke(TEXT)
    assert isinstance(answer["parsed"], Prevision) and answer["parsing_error"] is None


def openai_responses():
    model = by_openai(use_responses_api=True).with_structured_output(Prevision)
    assert isinstance(model.invoke(TEXT), Prevision)


def openai_stream():
    pieces = [chunk.text if isinstance(chunk.text, str) else chunk.text() for chunk in by_openai(max_tokens=10).stream(TEXT)]
    assert "".join(pieces)


def openai_tools_and_history():
    model = by_openai(max_tokens=200).bind_tools([Prevision], tool_choice="any")
    answer = model.invoke(TEXT)
    call = answer.tool_calls[0]
    Prevision.model_validate(call["args"])
    history = [HumanMessage(TEXT), AIMessage(content="", tool_calls=[call]), ToolMessage("guardado", tool_call_id=call["id"])]
    assert by_openai(max_tokens=10).invoke(history).content is not None


def openai_batch():
    model = by_openai().with_structured_output(Prevision)
    answers = model.batch([TEXT, TEXT + " Sin cambios.", "Nada que ver.", "Año 2025."])
    assert all(isinstance(answer, Prevision) for answer in answers)


def anthropic_methods():
    model = ChatAnthropic(base_url=URL, api_key="local", model=MODEL, max_retries=0, timeout=300, max_tokens=300)
    for fields in ({}, {"method": "json_schema"}):
        assert isinstance(model.with_structured_output(Prevision, **fields).invoke(TEXT), Prevision), fields


def ollama_schema():
    model = ChatOllama(base_url=URL, model=MODEL, temperature=0, num_predict=300, client_kwargs={"headers": {"Authorization": "Bearer local"}})
    for form in (Prevision, Factura):
        assert isinstance(model.with_structured_output(form).invoke(TEXT), form)


print("langchain")
run([openai_methods, openai_rich, openai_schema_as_dict, openai_include_raw, openai_responses, openai_stream,
     openai_tools_and_history, openai_batch, anthropic_methods, ollama_schema])
