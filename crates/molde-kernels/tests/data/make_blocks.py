"""Writes blocks.json: random blocks of every ggml type and what they decode to.

The oracle is the reference implementation in the `gguf` package (pip install gguf numpy).
Scales are random half-precision numbers of ordinary size, everything else is random bytes.
Run it in this folder: python3 make_blocks.py
"""

import json

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

# Byte offsets of the half-precision scales inside a block.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
ROWS, COLUMNS = 3, 512

random = np.random.default_rng(20261130)
cases = []
for name, offsets in SCALES.items():
    weights, size = GGML_QUANT_SIZES[T[name]]
    blocks = random.integers(0, 256, (ROWS * COLUMNS // weights, size), dtype=np.uint8)
    for offset in offsets:
        scales = random.normal(0, 0.02, len(blocks)).astype(np.float16)
        blocks[:, offset:offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    data = blocks.reshape(ROWS, -1)
    values = dequantize(data, T[name]).astype(np.float32)
    assert values.shape == (ROWS, COLUMNS)
    cases.append({"type": name, "rows": ROWS, "columns": COLUMNS, "bytes": data.tobytes().hex(),
                  "values": values.astype("<f4").tobytes().hex()})
with open("blocks.json", "w") as file:
    json.dump(cases, file, indent=0)
    file.write("\n")
