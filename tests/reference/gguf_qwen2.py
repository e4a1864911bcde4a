"""Reads a Qwen2 GGUF file the Hugging Face way: checkpoint names, f32 weights, config, tokenizer.

Shared by make_reference.py and make_safetensors.py. Dequantization is the PyPI `gguf`
package's, so nothing here shares code with the project.
"""

import glob
import hashlib
import os
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

CODER_REPOSITORY = "models--Qwen--Qwen2.5-Coder-0.5B-Instruct-GGUF"
CODER_FILE = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"

# GGUF token types, from the specification of the format.
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5

# Qwen2's pre-tokenizer, which a GGUF file only names ("tokenizer.ggml.pre" = "qwen2").
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def default_model():
    """Path of the coder model in the Hugging Face cache; exits with the remedy if it is absent."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    hub = os.environ.get("HF_HUB_CACHE") or Path(home) / "hub"
    found = sorted(glob.glob(str(Path(hub) / CODER_REPOSITORY / "snapshots" / "*" / CODER_FILE)))
    if not found:
        sys.exit(f"{CODER_FILE} is not in {hub}: run `molde pull` first, or pass --model PATH")
    return Path(found[0])


def sha256(path):
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checkpoint_name(gguf_name):
    """Hugging Face name of a GGUF tensor, e.g. `blk.0.attn_q.bias` -> `model.layers.0.self_attn.q_proj.bias`."""
    if gguf_name in OUTER_NAMES:
        return OUTER_NAMES[gguf_name]
    block, index, name, kind = gguf_name.split(".")
    if block != "blk":
        raise KeyError(gguf_name)
    return f"model.layers.{int(index)}.{BLOCK_NAMES[name]}.{kind}"


class Qwen2File:
    """One open GGUF file of architecture qwen2."""

    def __init__(self, path):
        self.path = Path(path)
        self._reader = GGUFReader(self.path)
        if self.field("general.architecture") != "qwen2":
            sys.exit(f"{path}: architecture {self.field('general.architecture')!r}, expected 'qwen2'")
        self._tensors = {checkpoint_name(t.name): t for t in self._reader.tensors}

    def field(self, key, default=None):
        """Value of a metadata key."""
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    @property
    def names(self):
        """Checkpoint names in file order."""
        return list(self._tensors)

    @property
    def tied(self):
        """Whether the head is the embedding matrix (no head of its own in the file)."""
        return "lm_head.weight" not in self._tensors

    def shape(self, name):
        """Shape in Hugging Face order, `[out, in]` for a matrix (GGUF stores the reverse)."""
        return [int(n) for n in reversed(self._tensors[name].shape)]

    def tensor(self, name):
        """The tensor as f32, `shape(name)`."""
        tensor = self._tensors[name]
        return np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), np.float32).reshape(
            self.shape(name)
        )

    def config(self, dtype="float32"):
        """The contents of config.json."""
        vocabulary_size, hidden_size = self.shape("model.embed_tokens.weight")
        layers = self.field("qwen2.block_count")
        context = self.field("qwen2.context_length")
        return {
            "architectures": ["Qwen2ForCausalLM"],
            "attention_dropout": 0.0,
            "bos_token_id": self.field("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.field("tokenizer.ggml.eos_token_id"),
            "hidden_act": "silu",
            "hidden_size": hidden_size,
            "initializer_range": 0.02,
            "intermediate_size": self.field("qwen2.feed_forward_length"),
            "max_position_embeddings": context,
            "max_window_layers": layers,
            "model_type": "qwen2",
            "num_attention_heads": self.field("qwen2.attention.head_count"),
            "num_hidden_layers": layers,
            "num_key_value_heads": self.field("qwen2.attention.head_count_kv"),
            # Stored as f32; its shortest f32 spelling is the number the checkpoint was trained with.
            "rms_norm_eps": float(str(np.float32(self.field("qwen2.attention.layer_norm_rms_epsilon")))),
            "rope_theta": float(self.field("qwen2.rope.freq_base")),
            "sliding_window": context,
            "tie_word_embeddings": self.tied,
            "torch_dtype": dtype,
            "use_cache": True,
            "use_sliding_window": False,
            "vocab_size": vocabulary_size,
        }

    def generation_config(self):
        """The contents of generation_config.json: both end-of-turn ids, as Qwen publishes them."""
        end_of_text = self.field("tokenizer.ggml.padding_token_id")
        return {
            "bos_token_id": self.field("tokenizer.ggml.bos_token_id"),
            "eos_token_id": [self.field("tokenizer.ggml.eos_token_id"), end_of_text],
            "pad_token_id": end_of_text,
            "do_sample": False,
        }

    def _added_tokens(self):
        tokens = self.field("tokenizer.ggml.tokens")
        types = self.field("tokenizer.ggml.token_type")
        return [
            {
                "id": index,
                "content": tokens[index],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == CONTROL,
            }
            for index, kind in enumerate(types)
            if kind in (CONTROL, USER_DEFINED)
        ]

    def tokenizer(self):
        """The contents of tokenizer.json, equal to Qwen's own file."""
        model, pre = self.field("tokenizer.ggml.model"), self.field("tokenizer.ggml.pre")
        if (model, pre) != ("gpt2", "qwen2"):
            sys.exit(f"{self.path}: tokenizer {model!r} with pre-tokenizer {pre!r}, expected 'gpt2' and 'qwen2'")
        tokens = self.field("tokenizer.ggml.tokens")
        types = self.field("tokenizer.ggml.token_type")
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        split = {"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": False}
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": self._added_tokens(),
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
            "post_processor": byte_level,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {tokens[index]: index for index, kind in enumerate(types) if kind == NORMAL},
                "merges": self.field("tokenizer.ggml.merges"),
            },
        }

    def tokenizer_config(self):
        """The contents of tokenizer_config.json, chat template included."""
        added = self._added_tokens()
        tokens = self.field("tokenizer.ggml.tokens")
        return {
            "add_bos_token": bool(self.field("tokenizer.ggml.add_bos_token", False)),
            "add_prefix_space": False,
            "added_tokens_decoder": {
                str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in added
            },
            "bos_token": None,
            "chat_template": self.field("tokenizer.chat_template"),
            "clean_up_tokenization_spaces": False,
            "eos_token": tokens[self.field("tokenizer.ggml.eos_token_id")],
            "errors": "replace",
            "model_max_length": self.field("qwen2.context_length"),
            "pad_token": tokens[self.field("tokenizer.ggml.padding_token_id")],
            "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer",
            "unk_token": None,
        }
