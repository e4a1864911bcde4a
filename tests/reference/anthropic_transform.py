"""Writes what the anthropic SDK makes of generated schemas: one JSON line {"schema", "sent"} each.

Usage: anthropic_transform.py COUNT SEED >> crates/molde/tests/data/anthropic_transform.jsonl
Made with anthropic 2.14.0 (600 lines, seed 1) and anthropic 0.77.0 (400 lines, seed 2).
"""

import copy
import json
import random
import sys

import anthropic

random_ = random.Random(int(sys.argv[2]))
TEXTS = [
    "a", "^[A-Z]{3}-\\d{4}$", "a, b", "x, maxLength: 5", "^\\{minimum: 3\\}$", "a}\n\n{minimum: 1", "'", "\"q\"", "None",
    "True", "1", "[1]", "{'a': 1}", "ñ, pattern: y", ": ", ", ", "default: 1", "\\d+(, )?", "{}", "format: date",
]
DESCRIPTIONS = [
    None, "A text", "With {braces}", "Ends }", "{odd", "Two\n\nparts", "{note: this}", "Range {1, 2}", "a\n\n{b: c}",
    "per cent, minimum: none",
]


def maybe(chance):
    return random_.random() < chance


def text():
    return random_.choice(TEXTS)


def schema(levels):
    kinds = ["string", "integer", "number", "boolean", "null"] + (["array", "object", "union"] * 2 if levels else [])
    kind = random_.choice(kinds)
    if kind == "union":
        made = {random_.choice(["anyOf", "oneOf", "allOf"]): [schema(levels - 1) for _ in range(random_.randint(1, 3))]}
    else:
        made = {"type": kind}
    if kind in ("integer", "number"):
        number = (lambda: random_.randint(-9, 99)) if kind == "integer" else (lambda: random_.choice([0, 0.0, 1e-05, -2.5, 1e16, 3]))
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if maybe(0.4):
                made[key] = number() if maybe(0.95) else {"$data": "1/other"}
        if maybe(0.2):
            made["multipleOf"] = random_.choice([1, 2, 0.01])
        if maybe(0.3):
            made["default"] = random_.choice([1, None, 2.5])
    if kind == "string":
        for key in ("minLength", "maxLength"):
            if maybe(0.4):
                made[key] = random_.randint(0, 80)
        if maybe(0.4):
            made["pattern"] = text()
        if maybe(0.2):
            made["format"] = random_.choice(["date", "text", "byte", "uuid"])
        if maybe(0.3):
            made["default"] = random_.choice([text(), None])
        if maybe(0.2):
            made["enum"] = [text() for _ in range(random_.randint(1, 3))]
        elif maybe(0.1):
            made["const"] = text()
        if maybe(0.2):
            made["examples"] = [text()]
    if kind == "array":
        if maybe(0.8):
            made["items"] = schema(levels - 1)
        if maybe(0.3):
            made["prefixItems"] = [schema(0)]
        for key in ("minItems", "maxItems"):
            if maybe(0.4):
                made[key] = random_.randint(0, 20)
        if maybe(0.3):
            made["uniqueItems"] = maybe(0.7)
    if kind == "object":
        names = random_.sample(["a", "b", "c", "description", "enum", "a/b"], random_.randint(0, 4))
        made["properties"] = {name: schema(levels - 1) for name in names}
        made["additionalProperties"] = False
        if names and maybe(0.7):
            made["required"] = names
        if len(names) > 1 and maybe(0.3):
            made["dependentRequired"] = {names[0]: [names[1]], names[1]: [names[0]]}
        if maybe(0.2):
            made["minProperties"] = random_.randint(0, 2)
    if maybe(0.5):
        made["description"] = random_.choice(DESCRIPTIONS)
        if made["description"] is None:
            del made["description"]
    if maybe(0.3):
        made["title"] = text()
    items = list(made.items())
    random_.shuffle(items)
    return dict(items)


for _ in range(int(sys.argv[1])):
    made = schema(3)
    sent = anthropic.transform_schema(copy.deepcopy(made))
    print(json.dumps({"schema": made, "sent": sent}, ensure_ascii=False))
