"""Configuration, tokenizer and chat: what the engine does not compute is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from mini_engine.config import DEFAULT_MODEL
from mini_engine.text.checkpoint import encode_chat, find_model, load_config, load_tokenizer
from tests.text import tokenizers_for_tests as small
from tests.text.small_models import change

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


@pytest.mark.parametrize("found", [["GPT2LMHeadModel"], ["Gemma3ForCausalLM", "Other"], [], None])
def test_report_8_another_architecture_is_refused_first(folder: Path, found: Any) -> None:
    (folder / "config.json").write_text(json.dumps({"architectures": found}))
    with pytest.raises(ValueError, match="supported: LlamaForCausalLM, Qwen3ForCausalLM") as caught:
        load_config(folder)
    assert all(name in str(caught.value) for name in found or ["none named"])


def test_eos_tokens_of_both_files_count(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    assert load_config(folder).eos_token_ids == (2, 7)
    change(folder, "generation_config.json", eos_token_id=[9, 2])
    assert load_config(folder).eos_token_ids == (2, 7, 9)
    change(folder, "generation_config.json", eos_token_id=None)
    change(folder, eos_token_id=5)
    assert load_config(folder).eos_token_ids == (5,)
    change(folder, eos_token_id="</s>")
    with pytest.raises(ValueError, match=r"eos_token_id .* got '</s>'"):
        load_config(folder)


@pytest.mark.parametrize(
    ("settings", "theta", "scaling"),
    [
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 1e6, None),
        ({"rope_parameters": None, "rope_theta": 2e5}, 2e5, None),
        ({"rope_parameters": None, "rope_scaling": None}, 1e4, None),
        (
            {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}},
            1e4,
            ("linear", 4.0),
        ),
        (
            {
                "rope_parameters": None,
                "rope_scaling": {"type": "linear", "factor": 2},
                "rope_theta": 3e4,
            },
            3e4,
            ("linear", 2.0),
        ),
        ({"rope_parameters": LLAMA3_ROPE}, 5e5, ("llama3", 8.0, 1.0, 4.0, 32)),
    ],
)
def test_rope_in_the_new_layout_and_the_old(
    folder: Path, settings: dict[str, Any], theta: float, scaling: tuple[Any, ...] | None
) -> None:
    change(folder, **settings)
    config = load_config(folder)
    assert (config.rope_theta, config.rope_scaling) == (theta, scaling)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "'yarn'; supported: default"),
        ({"rope_parameters": {"rope_type": "linear"}}, "lacks 'factor'"),
        ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "partial_rotary"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"use_sliding_window": True}, "sliding-window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding-window"),
        ({"quantization_config": {"quant_method": "gptq"}}, r"quantized weights \(gptq\)"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"vocab_size": "40"}, "vocab_size must be an int"),
    ],
)
def test_what_the_engine_does_not_compute_is_refused(
    folder: Path, settings: dict[str, Any], message: str
) -> None:
    change(folder, **settings)
    with pytest.raises((ValueError, TypeError), match=message):
        load_config(folder)


def test_head_dim_and_kv_heads_may_be_left_out(folder: Path) -> None:
    change(folder, head_dim=None, num_key_value_heads=None)
    config = load_config(folder)
    assert (config.head_dim, config.num_kv_heads) == (4, 4)


def test_a_setting_that_is_missing_is_named(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text())
    del settings["intermediate_size"]
    (folder / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="lacks 'intermediate_size'"):
        load_config(folder)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "there is no"), ("{", "not JSON"), ("[]", "JSON object")]
)
def test_a_folder_without_a_config_is_no_model(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_config(tmp_path)


# Tokenizer and chat


def test_a_chat_is_encoded_as_transformers_does_it() -> None:
    tokenizer = load_tokenizer(find_model(DEFAULT_MODEL))
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 12 + 30?"},
    ]
    expected = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_dict=False
    )
    assert encode_chat(tokenizer, messages) == list(expected)
    assert tokenizer.decode(encode_chat(tokenizer, messages)).endswith("<|im_start|>assistant\n")


def test_a_tokenizer_without_a_chat_template_is_said_to_have_none() -> None:
    with pytest.raises(ValueError, match="no chat template"):
        encode_chat(small.byte_level(), [{"role": "user", "content": "Hi"}])


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ("Hi", TypeError),
        ({"role": "user", "content": "Hi"}, TypeError),
        ([], ValueError),
        ([{"role": "user"}], ValueError),
        ([{"role": "user", "content": None}], ValueError),
    ],
)
def test_messages_of_another_form_are_refused(messages: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="message"):
        encode_chat(small.byte_level(), messages)


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="has no tokenizer"):
        load_tokenizer(folder)


def test_the_tokenizer_of_the_default_model_is_that_of_transformers_without_torch() -> None:
    folder = find_model(DEFAULT_MODEL)
    code = (
        "import sys; from mini_engine.text.checkpoint import load_tokenizer; "
        "load_tokenizer(sys.argv[1]); print('torch' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    text = " Hello,  w\u00f6rld\n\U0001f44b <|im_end|> 123"
    assert ours(text) == theirs(text)
    assert ours.added_tokens_decoder == theirs.added_tokens_decoder
    assert (ours.all_special_ids, ours.chat_template) == (
        theirs.all_special_ids,
        theirs.chat_template,
    )
