r"""Validates extracted texts with Python's `jsonschema`.

    ... | python validate_outputs.py

Reads JSON lines {"schema": path or object or boolean, "text": "..."} on standard input; other
members are ignored, "id" is printed. Numbers are exact (Decimal), duplicate keys and NaN are
refused, formats are asserted, nothing is fetched. The draft is $schema's, 2020-12 without one.
`pattern` runs in Python's dialect, looser than ECMA-262 in that `$` also matches before a final
line feed and `\d` and `\w` are Unicode's. Prints each failure and a closing
count. Exit code 1 if any text fails or there is none, 2 if the installation lacks format checkers.
"""

import decimal
import json
import re
import sys
from pathlib import Path

import jsonschema
from jsonschema.validators import extend, validator_for
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing.exceptions import Unresolvable

# Formats of the specification that `jsonschema` checks only when an extra package is installed.
# One of them missing would pass unseen, since a format without a checker is an annotation.
REQUIRED_FORMATS = """date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference
iri iri-reference uri-template json-pointer relative-json-pointer uuid regex""".split()


class Refused(ValueError):
    """JSON that Python accepts and RFC 8259 or interoperability do not."""


def object_without_repeats(pairs):
    """The object of these members; refuses a key that occurs twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise Refused(f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r}")
    return result


def refuse_constant(name):
    """Refuses NaN and Infinity."""
    raise Refused(f"{name} is not JSON")


def exact_number(text):
    """A schema's number: int where it is whole, since `jsonschema` wants counts and bounds as int."""
    number = decimal.Decimal(text)
    return int(number) if is_whole(number) and number.adjusted() < 400 else number


def parse_instance(text):
    """The instance with every number exact."""
    instance = json.loads(
        text, parse_float=decimal.Decimal, parse_constant=refuse_constant, object_pairs_hook=object_without_repeats
    )
    if any("\ud800" <= character <= "\udfff" for string in strings(instance) for character in string):
        raise Refused("a lone surrogate is no Unicode text")
    return instance


def strings(value):
    """All strings of a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from strings(member)


def parse_schema(text):
    """A schema with every number exact."""
    return json.loads(
        text, parse_float=exact_number, parse_constant=refuse_constant, object_pairs_hook=object_without_repeats
    )


def is_whole(number):
    """Whether a Decimal has no fraction, without expanding its exponent."""
    return number.as_tuple().exponent >= 0 or number == number.to_integral_value()


def is_integer(_checker, instance):
    """The specification's integer since draft 6: 1.0 and 1e2 are integers."""
    if isinstance(instance, bool):
        return False
    return isinstance(instance, int) or (isinstance(instance, decimal.Decimal) and is_whole(instance))


def validator_class(schema):
    """The validator of the schema's draft, with exact integers."""
    base = validator_for(schema, default=jsonschema.Draft202012Validator)
    if base in (jsonschema.Draft3Validator, jsonschema.Draft4Validator):
        return base
    return extend(base, type_checker=base.TYPE_CHECKER.redefine("integer", is_integer))


def use_exact_numbers():
    """Arithmetic far beyond f64, for the process: a 40-digit integer, 1e300 % 0.01."""
    decimal.setcontext(decimal.Context(prec=5_000, Emin=-999_999, Emax=999_999))
    sys.set_int_max_str_digits(0)


def missing_formats():
    """Formats that this installation would pass over in silence."""
    return [name for name in REQUIRED_FORMATS if name not in jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers]


class Validators:
    """Compiled schemas by path or content."""

    def __init__(self):
        self._known = {}

    def get(self, schema):
        """Validator of a schema given as a path or as the schema itself."""
        key = schema if isinstance(schema, str) else repr(schema)
        if key not in self._known:
            value = parse_schema(Path(schema).read_text(encoding="utf-8")) if isinstance(schema, str) else schema
            kind = validator_class(value)
            kind.check_schema(value)
            self._known[key] = kind(value, format_checker=kind.FORMAT_CHECKER, registry=SPECIFICATIONS)
        return self._known[key]


def failures(validators, schema, text):
    """What is wrong with a text, as sentences; empty if it validates."""
    try:
        validator = validators.get(schema)
    except (OSError, ValueError, jsonschema.SchemaError) as error:
        return [f"schema: {str(error).splitlines()[0]}"]
    try:
        instance = parse_instance(text)
    except (ValueError, ArithmeticError, RecursionError) as error:
        return [f"not JSON: {error}"]
    try:
        return [f"{pointer(error.absolute_path)}: {error.message}" for error in validator.iter_errors(instance)]
    except (re.error, ArithmeticError, RecursionError, Unresolvable) as error:
        # Undecided is a failure: a text counts only when the validator said yes.
        return [f"undecided: {type(error).__name__}: {error}"]


def pointer(path):
    """JSON Pointer of a location, the root as `(root)`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path) or "(root)"


def main():
    """Command line."""
    if missing := missing_formats():
        print(f"no checker for {', '.join(missing)}: install requirements-ci.txt beside this file", file=sys.stderr)
        return 2
    use_exact_numbers()
    validators, passed, failed = Validators(), 0, 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if not line.strip():
            continue
        try:
            case = parse_schema(line.decode("utf-8"))
            schema, text = case["schema"], case["text"]
            if not isinstance(text, str):
                raise TypeError(f"text is a {type(text).__name__}, expected a string")
        except (ValueError, KeyError, TypeError) as error:
            found, name = [f'expected {{"schema": …, "text": …}}: {error}'], None
        else:
            found, name = failures(validators, schema, text), case.get("id")
        passed, failed = passed + (not found), failed + bool(found)
        label = f"line {number}" + (f" ({name})" if name is not None else "")
        for sentence in found:
            print(f"{label}: {sentence}")
    print(f"validation: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
