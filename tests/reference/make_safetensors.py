"""Makes a Hugging Face model folder from a Qwen2 GGUF file.

    python make_safetensors.py --dtype bf16 --shards 3 --out FOLDER [--model FILE.gguf] [--tie]

Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
model.safetensors, or with --shards N > 1 model-0000K-of-0000N.safetensors and
model.safetensors.index.json. --dtype f32 holds exactly the dequantized weights; bf16 and f16 are
those, rounded to the nearest (ties to even). --tie drops the head and writes its (finer) matrix
as the shared embedding, the layout of the official 0.5B checkpoint.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors import TensorSpec, serialize_file

from gguf_qwen2 import Qwen2File, default_model

DTYPES = {"f32": ("float32", 4), "f16": ("float16", 2), "bf16": ("bfloat16", 2)}
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def to_bfloat16_bits(values):
    """Rounds f32 to bfloat16, nearest with ties to even; returns the bits as u16."""
    if not np.isfinite(values).all():
        raise ValueError("expected finite weights")
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    # Half of the last kept unit, less one when that unit is even, so that ties go to even.
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def convert(values, dtype):
    """f32 weights as an array whose bytes are those of `dtype`."""
    if dtype == "f32":
        return values
    if dtype == "bf16":
        return to_bfloat16_bits(values)
    with np.errstate(over="raise"):
        return values.astype(np.float16)


def plan(names, sizes, shards):
    """Splits names, in order, into `shards` groups of about equal bytes, none empty."""
    if not 1 <= shards <= len(names):
        raise SystemExit(f"--shards {shards}: expected 1 to {len(names)}, the number of tensors")
    total, done, groups = sum(sizes[name] for name in names), 0, [[] for _ in range(shards)]
    current = 0
    for position, name in enumerate(names):
        remaining = len(names) - position
        full = done >= total * (current + 1) / shards
        if groups[current] and current + 1 < shards and (full or remaining == shards - 1 - current):
            current += 1
        groups[current].append(name)
        done += sizes[name]
    return groups


def write_weights(path, arrays, shapes, dtype):
    """Writes one safetensors file."""
    specs = {
        name: TensorSpec(
            dtype=DTYPES[dtype][0], shape=shapes[name], data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in arrays.items()
    }
    serialize_file(specs, str(path), metadata={"format": "pt"})


def write_json(path, value):
    """Writes indented UTF-8 JSON."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def make_folder(model, out, dtype, shards=1, tie=False):
    """Writes the whole folder; returns the names of the weight files."""
    out.mkdir(parents=True, exist_ok=True)
    source = {name: name for name in model.names}
    if tie and HEAD in source:
        source[EMBEDDING] = source.pop(HEAD)
    names = list(source)
    config = model.config(DTYPES[dtype][0])
    config["tie_word_embeddings"] = HEAD not in source
    shapes = {name: model.shape(source[name]) for name in names}
    sizes = {name: int(np.prod(shapes[name])) * DTYPES[dtype][1] for name in names}
    files, weight_map = [], {}
    for number, group in enumerate(plan(names, sizes, shards), start=1):
        file = "model.safetensors" if shards == 1 else f"model-{number:05}-of-{shards:05}.safetensors"
        arrays = {name: convert(model.tensor(source[name]), dtype) for name in group}
        write_weights(out / file, arrays, shapes, dtype)
        weight_map.update(dict.fromkeys(group, file))
        files.append(file)
    if shards > 1:
        index = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": dict(sorted(weight_map.items()))}
        write_json(out / "model.safetensors.index.json", index)
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", model.generation_config())
    write_json(out / "tokenizer_config.json", model.tokenizer_config())
    write_json(out / "tokenizer.json", model.tokenizer())
    return files


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Makes a Hugging Face model folder from a Qwen2 GGUF file.")
    parser.add_argument("--model", type=Path, help="GGUF file (default: the coder model in the cache)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16", help="type of the weights (default: bf16)")
    parser.add_argument("--shards", type=int, default=1, help="number of weight files (default: 1)")
    parser.add_argument("--tie", action="store_true", help="one matrix for embedding and head")
    arguments = parser.parse_args()
    model = Qwen2File(arguments.model or default_model())
    for file in make_folder(model, arguments.out, arguments.dtype, arguments.shards, arguments.tie):
        print(arguments.out / file)


if __name__ == "__main__":
    main()
