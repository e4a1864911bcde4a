"""Writes crates/molde/tests/data/faults.json: the first error that Pydantic reports for each text.

Validation is strict. Where the lax mode cannot convert the value either, the kind is the lax mode's,
which says more (`int_parsing` for "Q4", where the strict mode says `int_type`). Pydantic's
`literal_error` for several values is written as `enum`: a JSON Schema does not tell them apart.
"""

import datetime
import enum
import json
import pathlib
import uuid
from typing import Annotated, Literal, Optional, Union

import pydantic
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class Prevision(BaseModel):
    model_config = ConfigDict(extra="forbid")
    trimestre: int | None = Field(ge=1, le=4)
    anio: int | None = Field(ge=2018, le=2026)
    bajo: float | None = Field(gt=0, description="millones de USD")
    alto: float | None = Field(gt=0, description="millones de USD")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: str


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["cat"]
    lives: int = Field(lt=10)


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    name: str


class Rich(BaseModel):
    model_config = ConfigDict(extra="forbid")
    code: str = Field(min_length=2, max_length=5, pattern="^[A-Z]+$")
    flag: bool
    step: int = Field(multiple_of=5, lt=100)
    share: float = Field(ge=0, le=1)
    tags: list[str] = Field(min_length=1, max_length=3)
    pair: tuple[int, str]
    color: Color
    level: Literal["low", "high"]
    kind: Literal["x"]
    day: datetime.date
    uid: uuid.UUID
    inner: Inner
    maybe: Optional[Inner]
    either: Union[int, str]
    counts: dict[str, int]
    animal: Annotated[Union[Cat, Dog], Field(discriminator="kind")]
    nothing: None
    unused: Optional[float] = None


GOOD = {
    "code": "ABC", "flag": True, "step": 10, "share": 0.5, "tags": ["a"], "pair": [1, "x"],
    "color": "red", "level": "low", "kind": "x", "day": "2024-02-29",
    "uid": "123e4567-e89b-12d3-a456-426614174000", "inner": {"a": 1, "b": "y"}, "maybe": None,
    "either": "z", "counts": {"k": 1}, "animal": {"kind": "cat", "lives": 9}, "nothing": None,
}

FORECASTS = [
    '{"trimestre": 4, "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": null, "anio": null, "bajo": null, "alto": null}',
    '{"alto": 1, "bajo": 1.5, "anio": 2018, "trimestre": 1}',
    '{"trimestre": "Q4", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": "4", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": " 4 ", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": "4.0", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": "4.5", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": "+4", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": "", "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": 4.5, "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": true, "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": [4], "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": {}, "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": 0, "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": 5, "anio": 2024, "bajo": 7230, "alto": 7650}',
    '{"trimestre": 4, "anio": 2017, "bajo": 7230, "alto": 7650}',
    '{"trimestre": 4, "anio": 2027, "bajo": 7230, "alto": 7650}',
    '{"trimestre": 4, "anio": "2024a", "bajo": 7230, "alto": 7650}',
    '{"trimestre": 4, "anio": "2_024", "bajo": 7230, "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": 0, "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": -0.0, "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": -3, "alto": "x"}',
    '{"trimestre": 4, "anio": 2024, "bajo": "7.230,0", "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": "7230", "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": "1e3", "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": "$7", "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": false, "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": [], "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": 7.230,0, "alto": 7650}',
    '{"trimestre": 4, "anio": 2024, "bajo": 1, "alto": 2, "x": 0}',
    '{"x": 0, "trimestre": 4, "anio": 2024, "bajo": 0, "alto": 2}',
    '{"x": 0, "trimestre": 4, "anio": 2024, "bajo": 1}',
    '{"trimestre": 4, "anio": 2024, "bajo": 1}',
    '{"trimestre": 9, "anio": 1, "bajo": 1}',
    '{"anio": 1, "bajo": 1}',
    '{}', 'null', '4', '"text"', '[]', 'true', '', '   ', '{', '{"trimestre": 4', 'no data',
    '```json\n{"trimestre": 4, "anio": 2024, "bajo": 1, "alto": 2}\n```',
    '{"trimestre": 4, "anio": 2024, "bajo": 1, "alto": 2,}',
    "{'trimestre': 4, 'anio': 2024, 'bajo': 1, 'alto': 2}",
    '{"trimestre": 4, "anio": 2024, "bajo": 1, "alto": 2} {"x": 1}',
    '  {"trimestre": 4, "anio": 2024, "bajo": 1, "alto": 2}\n',
    '{"trimestre": 04, "anio": 2024, "bajo": 1, "alto": 2}',
    '{"properties": {}, "required": ["trimestre"], "type": "object"}',
]

CHANGES = [
    {"code": "A"}, {"code": "ABCDEF"}, {"code": "abc"}, {"code": 5}, {"code": None}, {"code": "abcdefg"},
    {"flag": "true"}, {"flag": "maybe"}, {"flag": 1}, {"flag": 2}, {"flag": None}, {"flag": 0.5},
    {"step": 7}, {"step": 100}, {"step": 105}, {"step": 103}, {"step": None},
    {"share": -0.1}, {"share": 1.1}, {"share": "half"}, {"share": "0.5"}, {"share": None},
    {"tags": []}, {"tags": ["a", "b", "c", "d"]}, {"tags": "a"}, {"tags": [1]}, {"tags": ["a", None]},
    {"tags": {}}, {"pair": [1]}, {"pair": [1, "x", 2]}, {"pair": ["x", "x"]}, {"pair": [1, 2]},
    {"pair": []}, {"pair": "x"}, {"color": "green"}, {"color": 5}, {"color": None}, {"level": "mid"},
    {"level": 1}, {"kind": "y"}, {"kind": None}, {"day": "2024-02-30"}, {"day": "yesterday"}, {"day": []},
    {"uid": "123"}, {"uid": None}, {"inner": {"a": 1}}, {"inner": {"a": "q", "b": "y"}}, {"inner": None},
    {"inner": {"a": 1, "b": "y", "c": 2}}, {"inner": []}, {"inner": "x"}, {"maybe": {"a": 1, "b": 2}},
    {"maybe": {"a": 1.5, "b": "x"}}, {"maybe": 3}, {"either": 1.5}, {"either": None}, {"either": []},
    {"counts": {"k": "v"}}, {"counts": {"k": 1.5}}, {"counts": []}, {"counts": {}},
    {"animal": {"kind": "cow"}}, {"animal": {}}, {"animal": {"kind": "cat", "lives": 10}},
    {"animal": {"kind": "dog", "name": 3}}, {"animal": {"kind": "dog"}}, {"nothing": 0},
    {"unused": "x"}, {"unused": 1.5}, {"extra": 1}, {"extra": 1, "nothing": 1},
    {"step": 7, "share": 2}, {"code": "A", "flag": None}, {"uid": "x", "day": "x"},
]


def kinds(adapter, text, strict):
    try:
        adapter.validate_json(text, strict=strict)
    except ValidationError as error:
        return error.errors()
    return []


def place(error, text):
    """JSON Pointer of an error: names of union branches are no places."""
    if error["type"] == "json_invalid":
        return ""
    value, pointer = json.loads(text), ""
    for index, step in enumerate(error["loc"]):
        last = index == len(error["loc"]) - 1
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif not (last and error["type"] == "missing"):
            continue
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer


def first(model, adapter, text):
    strict = kinds(adapter, text, True)
    if not strict:
        return None
    error = strict[0]
    lax = [other for other in kinds(adapter, text, False) if other["loc"] == error["loc"]]
    kind = error["type"]
    if lax and (lax[0]["type"].endswith("_parsing") or lax[0]["type"] == "int_from_float"):
        kind = lax[0]["type"]
    if kind == "literal_error" and " or " in error["ctx"].get("expected", ""):
        kind = "enum"
    return {"kind": kind, "pointer": place(error, text)}


def main():
    groups = []
    for model, texts in [
        (Prevision, FORECASTS),
        (Rich, [json.dumps(GOOD)] + [json.dumps({**GOOD, **change}) for change in CHANGES]
         + [json.dumps({k: v for k, v in GOOD.items() if k != name}) for name in GOOD]),
    ]:
        adapter = TypeAdapter(model)
        cases = [{"text": text, "expected": first(model, adapter, text)} for text in texts]
        groups.append({"schema": model.model_json_schema(), "cases": cases})
    out = pathlib.Path(__file__).parents[2] / "crates/molde/tests/data/faults.json"
    head = {"made_by": "tests/reference/make_faults.py", "pydantic": pydantic.VERSION}
    out.write_text(json.dumps({**head, "groups": groups}, ensure_ascii=False, indent=1) + "\n")
    print(sum(len(group["cases"]) for group in groups), "cases")


if __name__ == "__main__":
    main()
