"""Owns the two that the control benchmark times, without a model: this scheduler, and vLLM's own.

vLLM's part is written for 0.33.0, of which the Python files are enough; its kernels are not used.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mini_engine.config import EngineConfig
from mini_engine.control.block_pool import BlockPool
from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from mini_engine.control.scheduler import Scheduler
from mini_engine.sampling_params import SamplingParams

BLOCK_SIZE = 16
TOKEN = 7  # what every request samples
PARAMS = SamplingParams(max_tokens=1_000_000)
LONGEST = 100_000
MODEL = {  # vLLM's scheduler asks a model for its sizes; there are no weights
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "vocab_size": 100_000,
    "max_position_embeddings": LONGEST,
}


class Control:
    """A scheduler, its cache and its pool; `num_hashed` counts blocks hashed if that is wanted."""

    def __init__(self, num_blocks: int, *, count_hashes: bool = False) -> None:
        config = EngineConfig(
            num_blocks=num_blocks,
            block_size=BLOCK_SIZE,
            max_model_len=10_000_000,
            max_num_batched_tokens=65_536,
            max_num_seqs=1_024,
        )
        hash_function = self._counting_hash if count_hashes else hash
        pool = BlockPool(num_blocks)
        cache = PrefixCache(pool, BLOCK_SIZE, hash_function=hash_function)
        self.scheduler = Scheduler(config, cache)
        self.num_hashed = 0

    def _counting_hash(self, key: tuple[int, tuple[int, ...], str | None]) -> int:
        self.num_hashed += 1
        return hash(key)

    def add(self, name: str, prompt: list[int]) -> None:
        """Queue a request that never ends by itself."""
        self.scheduler.add(Request(name, prompt, PARAMS))

    def step(self) -> dict[str, int]:
        """Schedule and update as the engine does; returns the prefix hits of the admitted."""
        schedule = self.scheduler.schedule()
        self.scheduler.update(schedule, {c.request.request_id: TOKEN for c in schedule.chunks})
        return schedule.cached

    def time_steps(self, steps: int) -> float:
        """Milliseconds a step, schedule and update together; every request must be decoding."""
        scheduler = self.scheduler
        sampled = {request.request_id: TOKEN for request in scheduler.running}
        start = time.process_time()
        for _ in range(steps):
            scheduler.update(scheduler.schedule(), sampled)
        return (time.process_time() - start) / steps * 1e3

    def time_admission(self, name: str, prompt: list[int]) -> float:
        """Milliseconds from the submission of a prompt to its admission; then it is aborted."""
        start = time.process_time()
        self.add(name, prompt)
        schedule = self.scheduler.schedule()
        elapsed = time.process_time() - start
        if schedule.chunks[0].num_tokens > BLOCK_SIZE:
            raise AssertionError(f"the prompt was not cached: {schedule.cached}")
        self.scheduler.update(schedule, {name: TOKEN})
        self.scheduler.abort(name)
        return elapsed * 1e3

    def hashes_of_steps(self, steps: int) -> float:
        """Blocks hashed a step."""
        before = self.num_hashed
        for _ in range(steps):
            self.step()
        return (self.num_hashed - before) / steps


def find_vllm(folders: Sequence[Path]) -> str:
    """Make vLLM, and what it needs, importable from these folders; returns its version.

    It starts Python again to look at the model, so the folders go into PYTHONPATH as well. Raises
    FileNotFoundError if none of them holds vLLM.
    """
    if not any((folder / "vllm").is_dir() for folder in folders):
        names = ", ".join(map(str, folders))
        raise FileNotFoundError(
            f"none of these folders holds a folder vllm: {names}; unpack vLLM's wheel and name the "
            "folder that it was unpacked to"
        )
    paths = [str(folder.resolve()) for folder in folders]
    sys.path.extend(paths)
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.getenv("PYTHONPATH")])])
    return str(import_module("importlib.metadata").version("vllm"))


def _vllm_config(num_blocks: int) -> Any:
    config = import_module("vllm.config")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
        model = config.ModelConfig(
            model=folder, skip_tokenizer_init=True, dtype="float32", max_model_len=LONGEST
        )
    cache = config.CacheConfig(block_size=BLOCK_SIZE, enable_prefix_caching=True)
    cache.num_gpu_blocks = num_blocks
    scheduling = config.SchedulerConfig(
        max_num_batched_tokens=65_536,
        max_num_seqs=1_024,
        max_model_len=LONGEST,
        is_encoder_decoder=False,
        async_scheduling=False,
    )
    return config.VllmConfig(
        model_config=model,
        scheduler_config=scheduling,
        cache_config=cache,
        device_config=config.DeviceConfig("cpu"),
    )


class VLLMControl:
    """vLLM's scheduler over a pool of `num_blocks`, with prefix caching on."""

    def __init__(self, num_blocks: int) -> None:
        config = _vllm_config(num_blocks)
        kv = import_module("vllm.v1.kv_cache_interface")
        utils = import_module("vllm.v1.core.kv_cache_utils")
        structured = import_module("vllm.v1.structured_output")
        spec = kv.FullAttentionSpec(
            block_size=BLOCK_SIZE,
            num_kv_heads=1,
            head_size=64,
            dtype=import_module("torch").float32,
        )
        groups = [kv.KVCacheGroupSpec(["layer"], spec)]
        self.scheduler = import_module("vllm.v1.core.sched.scheduler").Scheduler(
            vllm_config=config,
            kv_cache_config=kv.KVCacheConfig(
                num_blocks=num_blocks, kv_cache_tensors=[], kv_cache_groups=groups
            ),
            structured_output_manager=structured.StructuredOutputManager(config),
            block_size=BLOCK_SIZE,
            log_stats=False,
        )
        hash_function = import_module("vllm.utils.hashing").get_hash_fn_by_name(
            config.cache_config.prefix_caching_hash_algo
        )
        utils.init_none_hash(hash_function)
        self._hasher = utils.get_request_block_hasher(BLOCK_SIZE, hash_function)
        self._request = import_module("vllm.v1.request").Request
        self._output = import_module("vllm.v1.outputs").ModelRunnerOutput
        self._params = import_module("vllm").SamplingParams(max_tokens=50_000, ignore_eos=True)

    def add(self, name: str, prompt: list[int]) -> None:
        """Queue a request."""
        request = self._request(name, prompt, self._params, None, block_hasher=self._hasher)
        self.scheduler.add_request(request)

    def update(self, schedule: Any) -> None:
        """Every scheduled request samples one token."""
        names = list(schedule.num_scheduled_tokens)
        output = self._output(names, {n: i for i, n in enumerate(names)}, [[TOKEN] for _ in names])
        self.scheduler.update_from_output(schedule, output)

    def time_steps(self, steps: int) -> float:
        """Milliseconds a step, schedule and update together; every request must be decoding."""
        start = time.process_time()
        for _ in range(steps):
            self.update(self.scheduler.schedule())
        return (time.process_time() - start) / steps * 1e3

    def time_admission(self, name: str, prompt: list[int]) -> float:
        """Milliseconds from the submission of a prompt to its admission; then it is aborted."""
        start = time.process_time()
        self.add(name, prompt)
        schedule = self.scheduler.schedule()
        elapsed = time.process_time() - start
        if schedule.num_scheduled_tokens[name] > BLOCK_SIZE:
            raise AssertionError("the prompt was not cached")
        self.update(schedule)
        self.abort(name)
        return elapsed * 1e3

    def abort(self, name: str) -> None:
        """End a request."""
        aborted = import_module("vllm.v1.request").RequestStatus.FINISHED_ABORTED
        self.scheduler.finish_requests(name, aborted)
