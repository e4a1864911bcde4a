r"""Checks every instance of the schema corpus against Python's `jsonschema`.

    python check_corpus.py [--data FOLDER]

The corpus is `crates/molde-schema/tests/data/corpus`; its README says what a case holds. The draft is
$schema's, 2020-12 without one; numbers are exact, formats asserted, nothing is fetched. A schema with
`$data` is checked as the schema in which each target's value stands in its place. Where the oracle is known
to err, the case lists the text under `unjudged`, and the oracle must disagree there: an exception that is
none is a failure too. Also checked: in `*_pairs.json` every pair of keywords has a case, and leaving out a
keyword changes a verdict; every keyword of every draft has a case, and every format; what is said to be
malformed fails the meta-schema there, and what is said to be unsatisfiable accepts no instance of the
corpus. Prints every disagreement and a count by file. Exit code 1 if there is one, 2 if the installation
lacks format checkers.
"""

import argparse
import decimal
import itertools
import json
import re
import sys
from collections import Counter
from pathlib import Path

from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing.exceptions import Unresolvable

from validate_outputs import (
    REQUIRED_FORMATS,
    missing_formats,
    parse_instance,
    parse_schema,
    use_exact_numbers,
    validator_class,
)

DATA = Path(__file__).parents[2] / "crates/molde-schema/tests/data/corpus"
# Who may err: this oracle, or the `jsonschema` crate without arbitrary precision.
ORACLES = {"python", "crate"}
MEMBERS = {"name", "schema", "valid", "invalid", "valid_texts", "invalid_texts", "unjudged", "comment"}
REFUSED_MEMBERS = {"name", "schema", "kind", "pointers", "unjudged", "comment"}
KINDS = {"malformed", "refused", "unsatisfiable"}

# The keywords whose pairs `object_pairs.json` and `array_pairs.json` cover; `enum` stands for `const` too.
PAIRED = {
    "object_pairs.json": """properties required additionalProperties patternProperties propertyNames minProperties
        maxProperties dependentRequired dependentSchemas unevaluatedProperties if oneOf not anyOf allOf enum""",
    "array_pairs.json": """prefixItems items minItems maxItems contains uniqueItems unevaluatedItems not oneOf anyOf
        if""",
}
# What each draft added, and what it dropped: the corpus has a case for every keyword in every draft.
ADDED = {
    "draft-04": """type enum minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern
        format items additionalItems minItems maxItems uniqueItems properties patternProperties additionalProperties
        required minProperties maxProperties dependencies allOf anyOf oneOf not $ref id definitions""",
    "draft-06": "const contains propertyNames $id",
    "draft-07": "if then else",
    "draft/2019-09": """$defs $anchor $recursiveRef $recursiveAnchor minContains maxContains dependentRequired
        dependentSchemas unevaluatedItems unevaluatedProperties""",
    "draft/2020-12": "prefixItems $dynamicRef $dynamicAnchor",
}
DROPPED = {
    "draft-06": "id",
    "draft/2019-09": "dependencies definitions",
    "draft/2020-12": "additionalItems $recursiveRef $recursiveAnchor",
}
# Keywords whose members are schemas under names.
NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
# Keywords that say nothing without another are dropped together with it.
COMPANIONS = {"if": ["then", "else"], "contains": ["minContains", "maxContains"], "enum": ["const"]}
# Keywords that another one leaves nothing to say.
SILENCED = {"unevaluatedProperties": "additionalProperties", "unevaluatedItems": "items"}

# Bounds that `$data` can supply, and the type that each applies to. `const` takes a target of any type.
BOUNDS = {
    **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], "number"),
    **dict.fromkeys(["minLength", "maxLength"], "string"),
    **dict.fromkeys(["minItems", "maxItems"], "array"),
}
# What a `$data` reference may be found through: its instance stays the same.
LISTS = {"allOf", "anyOf", "oneOf"}
BRANCHES = {"not", "if", "then", "else"}


class Failures(list):
    """What is wrong with the corpus, as sentences."""

    def expect(self, condition, sentence):
        """Records a sentence if the condition does not hold."""
        if not condition:
            self.append(sentence)


class Oracle:
    """What `jsonschema` says about the instances of one schema."""

    def __init__(self, schema):
        self._has_data = mentions_data(schema)
        self._schema, self._kind = schema, validator_class(schema if isinstance(schema, dict) else True)
        self._validator = None

    def _build(self, schema):
        return self._kind(schema, format_checker=self._kind.FORMAT_CHECKER, registry=SPECIFICATIONS)

    def of_value(self, instance):
        """Whether the instance is valid; None where the oracle cannot say."""
        if self._has_data:
            validator = self._build(substitute(self._schema, instance, [], instance))
        else:
            self._validator = validator = self._validator or self._build(self._schema)
        try:
            return validator.is_valid(instance)
        except (re.error, ArithmeticError, RecursionError, Unresolvable):
            return None

    def of_text(self, text):
        """Whether the text is JSON and valid."""
        try:
            instance = parse_instance(text)
        except (ValueError, ArithmeticError, RecursionError):
            return False
        return self.of_value(instance)

    def verdicts(self, case):
        """The verdict on each instance of a case, in the order of `instances`."""
        return [self.of_text(value) if is_text else self.of_value(value) for _, _, is_text, value in instances(case)]

    def faults(self):
        """JSON pointers of what makes the schema malformed."""
        meta = self._kind(self._kind.META_SCHEMA, format_checker=self._kind.FORMAT_CHECKER, registry=SPECIFICATIONS)
        return sorted({"".join(f"/{escape(part)}" for part in e.absolute_path) for e in meta.iter_errors(self._schema)})


def mentions_data(schema):
    """Whether `$data` occurs in a schema."""
    if isinstance(schema, dict):
        return "$data" in schema or any(map(mentions_data, schema.values()))
    return isinstance(schema, list) and any(map(mentions_data, schema))


def substitute(schema, instance, path, root):
    """The schema with the value of each `$data` target in its place, for the instance at `path` of `root`.

    Without a target the keyword is dropped; a target of another type fails what the keyword applies to.
    """
    if not isinstance(schema, dict):
        return schema
    result, failing = {}, []
    for keyword, value in schema.items():
        if isinstance(value, dict) and "$data" in value:
            found, target = resolve(value["$data"], path, root)
            if not found:
                continue
            if keyword in BOUNDS and (isinstance(target, bool) or not isinstance(target, (int, decimal.Decimal))):
                failing.append(BOUNDS[keyword])
            else:
                result[keyword] = target
        elif keyword == "properties":
            members = instance if isinstance(instance, dict) else {}
            result[keyword] = {
                name: substitute(child, members.get(name), [*path, name], root) for name, child in value.items()
            }
        elif keyword == "items" and isinstance(value, dict):
            # One copy for each item: what a relative pointer means depends on the index.
            items = instance if isinstance(instance, list) else []
            result["prefixItems"] = [substitute(value, item, [*path, i], root) for i, item in enumerate(items)]
        elif keyword in LISTS:
            result[keyword] = [substitute(child, instance, path, root) for child in value]
        elif keyword in BRANCHES:
            result[keyword] = substitute(value, instance, path, root)
        else:
            result[keyword] = value
    return {"allOf": [result, {"not": {"type": sorted(set(failing))}}]} if failing else result


def resolve(pointer, path, root):
    """Whether there is a value at a relative or absolute JSON pointer, and the value."""
    if match := re.match(r"(\d+)(#?)(.*)", pointer):
        ups = int(match[1])
        if ups > len(path):
            return False, None
        base = path[: len(path) - ups]
        if match[2]:
            return bool(base), base[-1] if base else None
        rest = match[3]
    else:
        base, rest = [], pointer
    steps = [*base, *(part.replace("~1", "/").replace("~0", "~") for part in rest.split("/")[1:])]
    value = root
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and str(step).isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False, None
    return True, value


def instances(case):
    """(label, expected verdict, whether it is a text, text or value) of each instance of a case."""
    for expected, member in ((True, "valid"), (False, "invalid")):
        for value in case.get(member, []):
            yield show(value), expected, False, value
        for text in case.get(member + "_texts", []):
            yield text, expected, True, text


def show(value):
    """The value as a text, its numbers as they are."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show(key)}: {show(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    return str(value) if isinstance(value, decimal.Decimal) else json.dumps(value, ensure_ascii=False)


def check_case(label, case, schema, failures):
    """Checks one case's form and every instance of it."""
    failures.expect(case.keys() <= MEMBERS, f"{label}: unknown members {sorted(case.keys() - MEMBERS)}")
    for member in ("valid", "invalid"):
        listed = [show(value) for value in case.get(member, [])] + case.get(member + "_texts", [])
        failures.expect(len(set(listed)) >= 2, f"{label}: fewer than two {member} instances")
        failures.expect(len(set(listed)) == len(listed), f"{label}: an {member} instance is listed twice")
    oracle = Oracle(schema)
    if not mentions_data(schema) and (faults := oracle.faults()):
        failures.append(f"{label}: the schema is malformed at {faults}")
        return
    exceptions = case.get("unjudged", [])
    failures.expect(all(e["oracle"] in ORACLES and e["reason"] for e in exceptions), f"{label}: {exceptions}")
    unjudged = {e["text"] for e in exceptions if e["oracle"] == "python"}
    for (text, expected, _, _), verdict in zip(instances(case), oracle.verdicts(case), strict=True):
        if text in unjudged:
            failures.expect(verdict is not expected, f"{label}: the oracle does agree on {text}")
        else:
            failures.expect(verdict is expected, f"{label}: {text} should be {expected}, the oracle says {verdict}")
    idle = {e["text"] for e in exceptions} - {text for text, _, _, _ in instances(case)}
    failures.expect(not idle, f"{label}: unjudged but not an instance: {sorted(idle)}")


def check_pairs(name, cases, schemas, failures):
    """Every pair of keywords has a case in which neither is idle."""
    keywords = PAIRED[name].split()
    covered = set()
    for case, schema in zip(cases, schemas, strict=True):
        expected = [valid for _, valid, _, _ in instances(case)]
        for keyword in keywords:
            without = {k: v for k, v in schema.items() if k != keyword and k not in COMPANIONS.get(keyword, [])}
            if keyword not in schema or SILENCED.get(keyword) in schema:
                continue
            idle = Oracle(without).verdicts(case) == expected
            failures.expect(not idle, f"{name}: {case['name']}: `{keyword}` is idle")
        present = [k for k in keywords if k in schema or any(c in schema for c in COMPANIONS.get(k, []))]
        covered.update(itertools.combinations(present, 2))
    for pair in itertools.combinations(keywords, 2):
        failures.expect(pair in covered, f"{name}: no case has both {pair[0]} and {pair[1]}")


def keywords_of(schema):
    """Every (keyword, value) of a schema and of the schemas in it."""
    if isinstance(schema, list):
        for item in schema:
            yield from keywords_of(item)
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            yield keyword, value
            if keyword in NAMED and isinstance(value, dict):
                yield from keywords_of(list(value.values()))
            elif keyword not in ("enum", "const"):
                yield from keywords_of(value)


def check_coverage(schemas, failures):
    """Every keyword occurs in every draft that has it, and every format occurs."""
    used, formats = {draft: set() for draft in ADDED}, set()
    for schema in schemas:
        uri = schema.get("$schema", "") if isinstance(schema, dict) else ""
        draft = next((draft for draft in ADDED if draft in uri), "draft/2020-12")
        for keyword, value in keywords_of(schema):
            used[draft].add(keyword)
            if keyword == "format":
                formats.add(value)
    expected = set()
    for draft, added in ADDED.items():
        expected = (expected | set(added.split())) - set(DROPPED.get(draft, "").split())
        failures.expect(expected <= used[draft], f"{draft}: no case for {sorted(expected - used[draft])}")
    failures.expect(formats >= set(REQUIRED_FORMATS), f"no case for {sorted(set(REQUIRED_FORMATS) - formats)}")


def check_refused(cases, schemas, probes, failures):
    """What is called malformed fails the meta-schema there, what is called unsatisfiable accepts no probe."""
    for case, schema in zip(cases, schemas, strict=True):
        label, kind, pointers = f"refused.json: {case['name']}", case["kind"], case["pointers"]
        failures.expect(case.keys() <= REFUSED_MEMBERS, f"{label}: unknown members")
        failures.expect(kind in KINDS, f"{label}: unknown kind {kind!r}")
        failures.expect(len(pointers) > 0, f"{label}: no pointer")
        failures.expect(pointers == sorted(set(pointers)), f"{label}: the pointers are not sorted")
        for at in pointers:
            failures.expect(exists(schema, at), f"{label}: there is nothing at {at!r}")
        if mentions_data(schema):
            continue
        oracle = Oracle(schema)
        faults = [] if "unjudged" in case else oracle.faults()
        for fault in faults:
            known = kind == "malformed" and any(related(fault, at) for at in pointers)
            failures.expect(known, f"{label}: malformed at {fault!r}")
        for at in pointers if kind == "malformed" else []:
            failures.expect(any(related(fault, at) for fault in faults), f"{label}: not malformed at {at!r}")
        if kind == "unsatisfiable":
            accepted = [probe for probe in probes if oracle.of_value(probe) is not False]
            failures.expect(not accepted, f"{label}: the oracle accepts {accepted[:1]}")


def related(one, other):
    """Whether one of two JSON pointers is the other or leads to it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def escape(part):
    """A name or index as a part of a JSON pointer."""
    return str(part).replace("~", "~0").replace("/", "~1")


def exists(schema, at):
    """Whether a JSON pointer points to something."""
    for part in at.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list) and part.isdigit() and int(part) < len(schema):
            schema = schema[int(part)]
        elif isinstance(schema, dict) and part in schema:
            schema = schema[part]
        else:
            return False
    return True


def check(folder):
    """What is wrong with the corpus in a folder, and its counts by file."""
    failures, counts, probes, seen, all_schemas, refused = Failures(), {}, [], set(), [], None
    for path in sorted(folder.glob("*.json")):
        text = path.read_text(encoding="utf-8")
        cases = parse_instance(text)
        # Read a second time, since in a schema a whole number is an integer however it is spelt.
        schemas = [case["schema"] for case in parse_schema(text)]
        for name, count in Counter(case["name"] for case in cases).items():
            failures.expect(count == 1, f"{path.name}: {count} cases are called {name!r}")
        if path.name == "refused.json":
            refused = cases, schemas
            counts[path.name] = Counter(schemas=len(cases))
            continue
        for case, schema in zip(cases, schemas, strict=True):
            label = f"{path.name}: {case['name']}"
            check_case(label, case, schema, failures)
            failures.expect(show(schema) not in seen, f"{label}: the schema has been seen before")
            seen.add(show(schema))
            probes.extend(case.get("valid", []) + case.get("invalid", []))
        expected = Counter(valid for case in cases for _, valid, _, _ in instances(case))
        unjudged = sum(len(case.get("unjudged", [])) for case in cases)
        counts[path.name] = Counter(
            schemas=len(cases), valid=expected[True], invalid=expected[False], unjudged=unjudged
        )
        all_schemas.extend(schemas)
        if path.name in PAIRED:
            check_pairs(path.name, cases, schemas, failures)
    check_coverage(all_schemas, failures)
    if refused:
        probes = list({show(probe): probe for probe in probes}.values())
        check_refused(*refused, probes, failures)
    return failures, counts


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the corpus (default: this repository's)")
    arguments = parser.parse_args()
    if missing := missing_formats():
        print(f"no checker for {', '.join(missing)}: install requirements-ci.txt beside this file", file=sys.stderr)
        return 2
    use_exact_numbers()
    failures, counts = check(arguments.data)
    for sentence in failures:
        print(sentence)
    total = sum(counts.values(), Counter())
    for name, count in [*counts.items(), ("total", total)]:
        print(f"{name:24}" + "".join(f"{count[key]:7} {key}" for key in ("schemas", "valid", "invalid", "unjudged")))
    print(f"corpus: {len(failures)} disagreements")
    return 1 if failures or not total else 0


if __name__ == "__main__":
    sys.exit(main())
