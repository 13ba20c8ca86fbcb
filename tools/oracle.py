"""Makes tests/data/oracle_smollm2.json: greedy answers of SmolLM2 by transformers in float64.

Run by path: `python tools/oracle.py` (minutes). `--check 2` derives the first two prompts again and
compares. A prompt is kept only if the best token leads the second by more
than ten tie bands in every step, so that rounding cannot change the answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM

from mini_engine.text.checkpoint import encode_chat, find_model, load_tokenizer

ROOT = Path(__file__).resolve().parents[1]
PROMPTS = ROOT / "assets" / "chat_prompts.json"
ORACLE = ROOT / "tests" / "data" / "oracle_smollm2.json"
TIE_BAND = 1e-3
MIN_MARGIN = 10 * TIE_BAND
MAX_TOKENS = 32
NUM_PROMPTS = 24


@torch.inference_mode()
def answer(model: Any, prompt_ids: list[int]) -> tuple[list[int], float]:
    """(greedy tokens, smallest lead of the best token over the second) of one prompt."""
    ids = torch.tensor([prompt_ids])
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=MAX_TOKENS,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
        pad_token_id=0,
    )
    tokens = out.sequences[0, len(prompt_ids) :].tolist()
    best = torch.cat(out.logits).topk(2, dim=-1).values  # [num_tokens, 2]
    return tokens, float((best[:, 0] - best[:, 1]).min())


def load() -> tuple[Any, Any]:
    """The oracle's model in float64, and the tokenizer."""
    folder = find_model("smollm2-135m-instruct")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    return model, load_tokenizer(folder)


def derive() -> None:
    """Answer the prompts in order until enough are free of near ties; write the file."""
    model, tokenizer = load()
    kept: list[dict[str, Any]] = []
    skipped = []
    for index, prompt in enumerate(json.loads(PROMPTS.read_text(encoding="utf-8"))):
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        prompt_ids = encode_chat(tokenizer, messages)
        tokens, margin = answer(model, prompt_ids)
        print(f"{index:3} {len(prompt_ids):4} tokens, margin {margin:.4f}", flush=True)
        if margin <= MIN_MARGIN:
            skipped.append({"index": index, "margin": round(margin, 6)})
            continue
        entry = {"index": index, "prompt_token_ids": prompt_ids, "token_ids": tokens}
        kept.append({**entry, "margin": round(margin, 6)})
    kept = kept[: NUM_PROMPTS - 6] + kept[-6:]  # the last prompts are long, or turns of a chat
    if len(kept) < NUM_PROMPTS:
        raise SystemExit(f"only {len(kept)} of {NUM_PROMPTS} prompts have no near tie; add prompts")
    result = {
        "made_by": "python tools/oracle.py",
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "dtype": "float64",
        "max_tokens": MAX_TOKENS,
        "min_margin": MIN_MARGIN,
        "near_ties_left_out": skipped,
        "prompts": kept,
    }
    text = json.dumps(result).replace('{"index"', '\n {"index"')
    ORACLE.write_text(text + "\n", encoding="utf-8")
    print(f"{len(kept)} prompts written to {ORACLE.relative_to(ROOT)}")


def check(count: int) -> int:
    """Derive the first `count` prompts again; 1 if any answer differs from the file."""
    model, _ = load()
    wrong = 0
    for entry in json.loads(ORACLE.read_text(encoding="utf-8"))["prompts"][:count]:
        tokens, _ = answer(model, entry["prompt_token_ids"])
        same = tokens == entry["token_ids"]
        wrong += not same
        print(f"prompt {entry['index']}: {'the same' if same else 'DIFFERENT'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=int, metavar="N", help="derive N prompts again and compare")
    count = parser.parse_args().check
    sys.exit(check(count) if count is not None else derive())
