"""Drives vLLM's own scheduler, without a model, through workloads; runs in the lab's environment.

    PYTHON_OF_THE_LAB tools/vllm_lab_driver.py WORKLOADS.json TRACES.json

Both files are lists, in the format that tests/data/vllm_traces/README.md explains. Written for vLLM
0.33.0; nothing of it is changed, `_preempt_request` is only listened to for the order of victims.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from vllm import SamplingParams
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

LONGEST = 1_000_000
MODEL = {  # the scheduler asks a model for its sizes; there are no weights
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "vocab_size": 2_000_000,
    "max_position_embeddings": LONGEST,
}
REASONS = {
    RequestStatus.FINISHED_STOPPED: "stop",
    RequestStatus.FINISHED_LENGTH_CAPPED: "length",
    RequestStatus.FINISHED_ABORTED: "abort",
}
STUCK = 40  # steps in a row that compute nothing
Json = dict[str, Any]


def make_scheduler(work: Json, folder: str) -> tuple[Scheduler, Any]:
    """vLLM's scheduler for the options of a workload, and its block hasher."""
    model = ModelConfig(
        model=folder, skip_tokenizer_init=True, dtype="float32", max_model_len=work["max_model_len"]
    )
    block_size, num_blocks = work["block_size"], work["num_blocks"]
    cache = CacheConfig(block_size=block_size, enable_prefix_caching=work["enable_prefix_caching"])
    cache.num_gpu_blocks = num_blocks
    config = VllmConfig(
        model_config=model,
        cache_config=cache,
        device_config=DeviceConfig("cpu"),
        scheduler_config=SchedulerConfig(
            max_num_batched_tokens=work["max_num_batched_tokens"],
            max_num_seqs=work["max_num_seqs"],
            max_model_len=work["max_model_len"],
            enable_chunked_prefill=work["enable_chunked_prefill"],
            policy=work["policy"],
            long_prefill_token_threshold=work.get("long_prefill_token_threshold", 0),
            watermark=work.get("watermark", 0.0),
            is_encoder_decoder=False,
            async_scheduling=False,
        ),
    )
    spec = FullAttentionSpec(
        block_size=block_size, num_kv_heads=1, head_size=64, dtype=torch.float32
    )
    scheduler = Scheduler(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=num_blocks,
            kv_cache_tensors=[],
            kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=block_size,
        log_stats=False,
    )
    hash_function = get_hash_fn_by_name(cache.prefix_caching_hash_algo)
    init_none_hash(hash_function)
    return scheduler, get_request_block_hasher(block_size, hash_function)


class Drive:
    """One workload on one scheduler: arrivals, aborts, schedule, aborts, samples, step by step."""

    def __init__(self, work: Json, folder: str) -> None:
        self.work = work
        self.scheduler, self.hasher = make_scheduler(work, folder)
        self.requests: dict[str, Request] = {}
        self.rejected: dict[str, str] = {}
        self.outputs: dict[str, list[int]] = {}
        self.victims: list[str] = []
        self.admitted: set[str] = set()
        self.scripts = {one["id"]: one["output"] for one in work["requests"]}
        preempt = self.scheduler._preempt_request

        def listen(request: Request, *rest: Any, **more: Any) -> Any:
            self.victims.append(request.request_id)
            return preempt(request, *rest, **more)

        self.scheduler._preempt_request = listen

    def run(self) -> Json:
        """The trace; `stuck` is true if vLLM would go on for ever without computing anything."""
        asks, steps, idle = self.work["requests"], [], 0
        last = max(one["arrival_step"] for one in asks)
        number = 0
        while (number <= last or self.scheduler.has_unfinished_requests()) and idle < STUCK:
            coming = [one for one in asks if one["arrival_step"] == number]
            arrived = [one["id"] for one in coming if self.arrive(one)]
            aborted = self.abort("abort_at_step", number)
            if self.scheduler.has_unfinished_requests():
                steps.append({"step": number, "arrived": arrived, "aborted": aborted})
                steps[-1] |= self.step(number)
                idle = 0 if steps[-1]["scheduled"] else idle + 1
            number += 1
        return {
            "steps": steps,
            "requests": {name: self.ending(name) for name in self.requests},
            "rejected": self.rejected,
            "stuck": idle >= STUCK,
        }

    def arrive(self, one: Json) -> bool:
        """Submit a request; what vLLM's front end would refuse is refused here."""
        room = self.work["max_model_len"] - len(one["prompt"])
        if room < 1:
            self.rejected[one["id"]] = f"the prompt leaves room for {room} tokens"
            return False
        params = SamplingParams(
            max_tokens=one.get("max_tokens", len(one["output"])),
            stop_token_ids=list(one.get("stop_token_ids", ())),
        )
        request = Request(
            one["id"],
            one["prompt"],
            params,
            None,
            arrival_time=float(len(self.requests)),
            priority=one.get("priority", 0),
            cache_salt=one.get("cache_salt"),
            block_hasher=self.hasher,
        )
        self.requests[one["id"]] = request
        self.scheduler.add_request(request)
        return True

    def abort(self, key: str, number: int) -> list[str]:
        """End the requests that are to be aborted now; returns those that were alive."""
        names = [one["id"] for one in self.work["requests"] if one.get(key) == number]
        alive = [name for name in names if name in self.scheduler.requests]
        for name in alive:
            self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
        return alive

    def step(self, number: int) -> Json:
        """Schedule, abort, update; what was decided, and what was left."""
        self.victims.clear()
        before = {request.request_id for request in self.scheduler.running}
        schedule = self.scheduler.schedule()
        scheduled = schedule.num_scheduled_tokens
        # After schedule() vLLM counts this step's tokens as computed already.
        computed = {
            name: self.requests[name].num_computed_tokens - tokens
            for name, tokens in scheduled.items()
        }
        admitted = [name for name in scheduled if name not in before]
        resumed = [name for name in admitted if name in self.admitted]
        self.admitted.update(admitted)
        record: Json = {
            "scheduled": dict(scheduled),
            "total": schedule.total_num_scheduled_tokens,
            "preempted": list(self.victims),
            "new": [name for name in admitted if name not in resumed],
            "resumed": resumed,
            "running": [request.request_id for request in self.scheduler.running],
            "waiting": [request.request_id for request in self.scheduler.waiting],
            "computed": computed,
            "cached": {name: computed[name] for name in admitted},
            "free_blocks": self.free_blocks(),
        }
        ready = [n for n in scheduled if computed[n] + scheduled[n] == self.requests[n].num_tokens]
        self.abort("abort_during_step", number)
        alive = [name for name in scheduled if name in self.scheduler.requests]
        record["sampled"] = self.update(schedule, ready)
        record["finished"] = [name for name in alive if name not in self.scheduler.requests]
        record["running_end"] = [request.request_id for request in self.scheduler.running]
        return record | {"free_blocks_end": self.free_blocks()}

    def update(self, schedule: Any, ready: list[str]) -> Json:
        """Hand the scripted tokens back; returns those that a request took."""
        names = list(schedule.num_scheduled_tokens)
        tokens = [
            [self.scripts[name][self.requests[name].num_output_tokens]] if name in ready else []
            for name in names
        ]
        alive = [name for name in ready if name in self.scheduler.requests]
        output = ModelRunnerOutput(names, {name: i for i, name in enumerate(names)}, tokens)
        self.scheduler.update_from_output(schedule, output)
        return {name: list(self.requests[name].output_token_ids[-1:]) for name in alive}

    def free_blocks(self) -> int:
        """Free blocks now."""
        return self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()

    def ending(self, name: str) -> Json:
        """What became of a request."""
        request = self.requests[name]
        return {
            "output": list(request.output_token_ids),
            "finish_reason": REASONS.get(request.status, request.status.name),
            "preemptions": request.num_preemptions,
        }


def main() -> None:
    """Trace every workload of a file."""
    works = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
        traces = [Drive(work, folder).run() for work in works]
    Path(sys.argv[2]).write_text(json.dumps(traces), encoding="utf-8")


if __name__ == "__main__":
    main()
