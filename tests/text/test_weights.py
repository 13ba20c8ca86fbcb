"""Weights: what is read is exactly what is there, and whatever does not fit is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, PreTrainedModel

from mini_engine.compute.weights import checkpoint_shapes
from mini_engine.text.checkpoint import load_config, load_weights
from tests.text.small_models import change, llama, qwen3

MODELS = {
    "llama": lambda: llama(),
    "llama tied": lambda: llama(tie_word_embeddings=True),
    "llama biased": lambda: llama(attention_bias=True, mlp_bias=True),
    "llama odd head": lambda: llama(head_dim=6),
    "qwen3": lambda: qwen3(),
    "qwen3 tied": lambda: qwen3(tie_word_embeddings=True, attention_bias=True),
}


@pytest.fixture(params=sorted(MODELS))
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, PreTrainedModel]:
    model = MODELS[request.param]()
    model.save_pretrained(tmp_path)
    return tmp_path, model


def test_weights_and_config_are_those_that_transformers_saved(
    saved: tuple[Path, PreTrainedModel],
) -> None:
    folder, model = saved
    config = load_config(folder)
    weights = load_weights(folder, config, torch.float32)
    assert set(weights) == set(checkpoint_shapes(config))
    reference = model.state_dict()
    assert set(reference) - set(weights) <= {"lm_head.weight"}
    assert all(torch.equal(tensor, reference[name]) for name, tensor in weights.items())
    theirs = AutoConfig.from_pretrained(folder)
    assert config.head_dim == theirs.head_dim
    assert config.rms_norm_eps == theirs.rms_norm_eps
    assert config.rope_theta == theirs.rope_parameters["rope_theta"]
    assert config.tie_word_embeddings == theirs.tie_word_embeddings
    assert config.qk_norm == (theirs.model_type == "qwen3")


def test_weights_are_cast(folder: Path) -> None:
    weights = load_weights(folder, load_config(folder), torch.bfloat16)
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}


def test_a_sharded_folder_reads_like_a_whole_one(tmp_path: Path) -> None:
    llama().save_pretrained(tmp_path / "whole")
    llama().save_pretrained(tmp_path / "sharded", max_shard_size="4KB")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 1
    config = load_config(tmp_path / "whole")
    whole, sharded = (
        load_weights(tmp_path / n, config, torch.float32) for n in ("whole", "sharded")
    )
    assert set(whole) == set(sharded)
    assert all(torch.equal(whole[name], sharded[name]) for name in whole)
    lost = min((tmp_path / "sharded").glob("*.safetensors"))
    lost.unlink()
    with pytest.raises(ValueError, match=rf"lacks its weights: no {lost.name}"):
        load_weights(tmp_path / "sharded", config, torch.float32)


def test_no_weights_no_model(folder: Path) -> None:
    config = load_config(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"no model.safetensors \(pytorch_model.bin can't be read"):
        load_weights(folder, config, torch.float32)


def test_tensors_that_do_not_fit_are_listed(folder: Path) -> None:
    path, config = folder / "model.safetensors", load_config(folder)
    weights = load_file(path)
    del weights["model.norm.weight"], weights["model.layers.1.mlp.up_proj.weight"]
    weights["model.layers.0.self_attn.q_norm.weight"] = torch.ones(4)
    weights["model.embed_tokens.weight"] = torch.ones(41, 16)
    weights["lm_head.weight"] = torch.ones(40, 16, dtype=torch.int32)
    save_file(weights, path)
    with pytest.raises(ValueError, match="do not fit") as caught:
        load_weights(folder, config, torch.float32)
    message = str(caught.value)
    assert "missing: model.layers.1.mlp.up_proj.weight, model.norm.weight;" in message
    assert "unexpected: model.layers.0.self_attn.q_norm.weight;" in message
    assert "model.embed_tokens.weight [41, 16], expected [40, 16]" in message
    assert "lm_head.weight is torch.int32" in message


def test_a_long_list_is_cut(folder: Path) -> None:
    save_file({"stranger": torch.ones(1)}, folder / "model.safetensors")
    with pytest.raises(ValueError, match="and 13 more"):
        load_weights(folder, load_config(folder), torch.float32)


def test_an_untied_model_without_its_head_is_refused(tmp_path: Path) -> None:
    llama(tie_word_embeddings=True).save_pretrained(tmp_path)
    change(tmp_path, tie_word_embeddings=False)
    with pytest.raises(ValueError, match=r"missing: lm_head\.weight"):
        load_weights(tmp_path, load_config(tmp_path), torch.float32)


def test_what_old_files_repeat_is_dropped(tmp_path: Path) -> None:
    llama(tie_word_embeddings=True).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(2)
    save_file(weights, tmp_path / "model.safetensors")
    config = load_config(tmp_path)
    assert set(load_weights(tmp_path, config, torch.float32)) == set(checkpoint_shapes(config))


def test_a_damaged_file_is_said_to_be_damaged(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        load_weights(folder, load_config(folder), torch.float32)
