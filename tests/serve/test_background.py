"""A server in the background: the learner's own parts serve the official client, and it ends."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import openai
import psutil
import pytest

from mini_engine.serve.background import BackgroundServer, processes
from mini_engine.serve.observe import observe
from tests.serve.server import ROOT, Server

MODEL = "smollm2-135m-instruct"
ALTERNATIVES = ROOT / "tests/alternatives"
SIZES = ("--device", "cpu", "--max-model-len", "256", "--num-blocks", "64")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundServer]:
    """A server with a learner's sampler, detokenizer and stop checker, its core in a thread."""
    folder = tmp_path_factory.mktemp("practice")
    sampler = (ALTERNATIVES / "sampling.sample/as_in_the_course.py").read_text("utf-8")
    (folder / "sampling.py").write_text(sampler, "utf-8")
    parts = ("text.detokenizer/two_offsets.py", "text.stop-checker/fixed_buffer.py")
    text = "\n\n".join((ALTERNATIVES / part).read_text("utf-8") for part in parts)
    (folder / "text.py").write_text(text, "utf-8")
    with BackgroundServer("--in-process", *SIZES, "--parts", str(folder)) as server:
        yield server


def test_the_parts_of_a_learner_serve_the_official_client(
    own: BackgroundServer, server: Server
) -> None:
    assert "yours: IncrementalDetokenizer of text.py, as detokenizer" in own.log.read_text()
    assert "yours: StopChecker of text.py, as stop_checker" in own.log.read_text()
    assert "yours: sample of sampling.py, as sampler" in own.log.read_text()
    answers = []
    for url in (own.base_url, f"{server.url}/v1"):
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        stream = client.completions.create(
            model=MODEL, prompt="Emojis: \N{WAVING HAND SIGN} \N{GRINNING FACE}", max_tokens=12,
            temperature=0.8, seed=7, stream=True, stop=["zebra", " and so on"],
        )  # fmt: skip
        pieces = [(chunk.choices[0].text, chunk.choices[0].finish_reason) for chunk in stream]
        answers.append(("".join(text for text, _ in pieces), pieces[-1][1]))
    assert answers[0] == answers[1]
    assert answers[0][0]


def test_an_observation_has_steps_and_chunks_on_one_clock(own: BackgroundServer) -> None:
    question = [{"role": "user", "content": "What is the capital of France?"}]
    before = own.metric("sampled_tokens_total")
    seen = observe(own.url, messages=question, max_tokens=12, temperature=0)
    assert "".join(text for _, text in seen.chunks) == "The capital of France is Paris."
    ends = [record.times.end for record in seen.steps if record.times]
    assert len(ends) == len(seen.chunks) + 1  # end of sequence has no text
    assert ends == sorted(ends)
    assert own.metric("sampled_tokens_total") - before == len(ends)  # the core's own count
    for (when, _), end in zip(seen.chunks, ends, strict=False):
        assert 0 < end <= when <= seen.ended
    with pytest.raises(RuntimeError, match="status 400"):
        observe(own.url, messages=[])


def test_metrics_and_processes_can_be_read(own: BackgroundServer) -> None:
    assert own.metric("requests_running") == 0
    with pytest.raises(ValueError, match="no metric 'nothing'"):
        own.metric("nothing")
    (front,) = own.processes()
    assert (front["process"], front["torch"]) == ("front end", "yes")


def test_two_processes_and_only_the_core_has_torch(server: Server) -> None:
    front, core = processes(server.process.pid)
    assert (front["tokenizers"], front["ZeroMQ"], front["torch"]) == ("yes", "yes", "no")
    assert (core["process"], core["torch"]) == ("engine core", "yes")


def test_it_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import time
        from mini_engine.serve.background import BackgroundServer, processes
        print(BackgroundServer("--in-process").process.pid, flush=True)
        time.sleep(600)
        """
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    end = time.monotonic() + 60
    while psutil.pid_exists(pid) and time.monotonic() < end:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.1)
    else:
        assert not psutil.pid_exists(pid)


def test_it_ends_with_its_last_reference() -> None:
    process = BackgroundServer("--in-process").process
    assert process.poll() is not None


def test_a_server_that_can_not_start_says_why() -> None:
    with (
        pytest.raises(RuntimeError, match=r"did not start:\s+error: "),
        BackgroundServer("--model", "/nothing/here"),
    ):
        pass
