"""Odd values, and code that changes what it was given or what it stands on: never a wrong pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge import compare
from judge.api import Case, Check
from judge.exercises import find
from judge.runner import Grader, Options, learner_source
from tests.judge.toy import CHECK, first, grade

# Numbers and lists of numbers, as tokens and times are.


def answering(value: Any) -> Check:
    """A check whose right answer is `value`, whatever the reference says."""
    return replace(
        CHECK, name="value", cases=lambda rng: CHECK.cases(rng)[:1],
        compare=lambda case, _, got: compare.function_answer(case, {"value": value}, got),
    )  # fmt: skip


TOKENS = {
    "bools": "[True, False]",
    "numpy integers": "list(numpy.arange(2))",
    "numpy array": "numpy.arange(2)",
    "int subclass": "[type('I', (int,), {})(0), 1]",
    "always equal": "[type('A', (), {'__eq__': lambda *a: True, '__hash__': None})()] * 2",
    "a list subclass": "type('L', (list,), {'__eq__': lambda *a: True})([5])",
    "an enum": "list(enum.IntEnum('E', {'a': 0, 'b': 1}))",
    "floats": "[0.0, 1.0]",
    "a tuple": "(0, 1)",
    "a generator": "(i for i in range(2))",
    "a string": "'[0, 1]'",
    "a dict": "{0: 0, 1: 1}",
}


@pytest.mark.parametrize("name", TOKENS)
def test_only_a_list_of_ints_is_a_list_of_ints(name: str, tmp_path: Path) -> None:
    code = f"import enum, numpy\ndef half(x): return {TOKENS[name]}"
    result = first(tmp_path, code, answering([0, 1]))
    assert result.status == "wrong"
    assert len("\n".join(result.lines)) > 20
    assert first(tmp_path, "def half(x): return [0, 1]", answering([0, 1])).status == "passed"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_what_is_no_number_is_wrong(value: str, tmp_path: Path) -> None:
    result = first(tmp_path, f"def half(x): return float({value!r})", answering(0.5))
    assert result.status == "wrong"
    assert result.lines[1] == f"expected 0.5, got {value}"


@pytest.mark.parametrize(
    "value", ["[0] * 3_000_000", "loop", "'x' * 10**8", "2**70", "{1: [{2: (3, None)}]}"]
)
def test_an_answer_of_any_size_and_depth_is_compared(value: str, tmp_path: Path) -> None:
    code = f"loop = []\nloop.append(loop)\ndef half(x): return {value}"
    result = first(tmp_path, code, replace(answering([0, 1]), limit_s=30.0))
    assert result.status == "wrong"
    assert max(map(len, result.lines)) < 500


def test_an_input_that_is_kept_and_changed_later_changes_no_other_case(tmp_path: Path) -> None:
    lists = replace(
        CHECK,
        cases=lambda rng: [
            Case(f"half([{n}])", {"function": "half", "args": [[n]]}) for n in (4, 6, 8)
        ],
        compare=lambda case, _, got: compare.function_answer(
            case, {"value": case.payload["args"][0][0] // 2}, got
        ),
    )
    code = (
        "kept = []\ndef half(xs):\n    for old in kept: old[:] = [99]\n"
        "    kept.append(xs)\n    return xs[0] // 2\n"
    )
    assert grade(tmp_path, code, lists).status == "passed"


def test_an_answer_is_taken_before_the_code_changes_it_again(tmp_path: Path) -> None:
    """A buffer that is returned each time holds the last answer in the end."""
    code = "out = [0]\ndef half(x):\n    out[0] = x // 2\n    return out\n"
    wrapped = replace(
        CHECK, compare=lambda case, want, got: compare.function_answer(
            case, {"value": [want["value"]]}, got
        ),
    )  # fmt: skip
    assert grade(tmp_path, code, wrapped).status == "passed"


# A class, made and driven by a script of calls.


def scripted(args: Sequence[Any], calls: Sequence[Any], answers: Sequence[Any]) -> Check:
    payload = {"class": "half", "args": list(args), "calls": list(calls), "observe": []}
    expected = [{"value": value, "state": []} for value in (None, *answers)]
    return replace(
        CHECK, execute="judge.execute:call_script",
        cases=lambda rng: [Case("a script", payload)],
        compare=lambda case, _, got: compare.script_answer(case, expected, got),
    )  # fmt: skip


def test_a_class_with_the_wrong_signature(tmp_path: Path) -> None:
    check = scripted([4], [["of", [2], {}]], [1])
    right = "class half:\n    def __init__(self, n): pass\n    def of(self, x): return x // 2\n"
    for broken, words in (
        (right.replace("self, n", "self"), "compare the signature with the one in the stub"),
        (right.replace("self, x", "self"), "compare the signature with the one in the stub"),
        (right.replace("def of", "def off"), "has no attribute 'of'"),
        (right.replace("class half:", "def half(n): pass\nclass Other:"), "no attribute 'of'"),
    ):
        result = first(tmp_path, broken, check)
        assert result.status == "error", broken
        assert words in "\n".join(result.lines)
    assert first(tmp_path, right, check).status == "passed", result.lines


# Tensors, in a real exercise.

(ROPE,) = find("kv-cache.rope")
RIGHT_ROPE = (
    "import torch\n"
    "def apply_rope(x, cos, sin):\n"
    "    a, b = x.chunk(2, dim=-1)\n"
    "    cos, sin = cos[:, None], sin[:, None]\n"
    "    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)\n"
)


def rope(folder: Path, code: str, only: str = "by-hand") -> Any:
    file = folder / ROPE.file
    file.write_text(code, encoding="utf-8")
    options = Options(seed=7, only=only, models=("tiny",))
    return Grader(ROPE, learner_source(ROPE, file), options).run().results[0]


WRONG_TENSORS = {
    "a subclass that equals all": (
        "class T(torch.Tensor):\n"
        "    @classmethod\n    def __torch_function__(cls, f, types, args=(), kwargs=None):\n"
        "        return True\n"
        "    def __repr__(self): return 'T'\n"
        "def apply_rope(x, cos, sin): return x.as_subclass(T)\n",
        "T",
    ),
    "a parameter": (
        RIGHT_ROPE.replace("return ", "return torch.nn.Parameter(") + "    )\n", "Parameter",
    ),
    "NaN": ("def apply_rope(x, cos, sin): return x * torch.nan\n", "NaN or infinite"),
    "infinity": ("def apply_rope(x, cos, sin): return x / 0\n", "NaN or infinite"),
    "a numpy array": ("def apply_rope(x, cos, sin): return x.numpy()\n", "numpy"),
    "its input": ("def apply_rope(x, cos, sin): return x\n", "first wrong"),
    "a sparse tensor": ("def apply_rope(x, cos, sin): return x[:, 0].to_sparse()\n", "Tensor"),
    "in place": (
        RIGHT_ROPE.replace("return ", "x[:] = ") + "    return x\n", "changed its argument x",
    ),
    "nothing": ("def apply_rope(x, cos, sin): x[:] = 0\n", "None"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_TENSORS)
def test_only_the_right_tensor_passes(name: str, tmp_path: Path) -> None:
    code, words = WRONG_TENSORS[name]
    result = rope(tmp_path, f"import torch\n{code}")
    assert result.status == "wrong", result.lines
    assert words in "\n".join(result.lines)


@pytest.mark.parametrize(
    "patch",
    [
        "torch.allclose = torch.equal = lambda *a, **k: True",
        "torch.Tensor.__eq__ = lambda *a: True",
        "import numpy; numpy.allclose = numpy.array_equal = lambda *a, **k: True",
        "import time; time.time = time.monotonic = time.perf_counter = lambda: 0.0",
        "torch.Tensor.numpy = lambda self, **k: __import__('numpy').zeros(1, 'uint8')",
        "import json; json.loads = lambda *a, **k: {'number': 2, 'answer': None}",
        "import judge.tensor_calls as c; c._placed = lambda *a: None",
        "import judge.tensor_compare as c; c.against = lambda *a, **k: None",
    ],
)
def test_patches_of_libraries_do_not_turn_wrong_into_right(patch: str, tmp_path: Path) -> None:
    code = f"import torch\n{patch}\ndef apply_rope(x, cos, sin): return x + 1\n"
    assert rope(tmp_path, code).status in ("wrong", "error", "timeout", "crashed")


def test_an_answer_may_share_memory_with_the_input_where_that_is_right(tmp_path: Path) -> None:
    code = "def apply_rope(x, cos, sin): return x[:]\n"
    assert rope(tmp_path, f"import torch\n{code}", "position-0").status == "passed"


def test_one_buffer_for_all_answers_spoils_none(tmp_path: Path) -> None:
    code = RIGHT_ROPE.replace("    return ", "    new = ") + (
        "    out = kept.setdefault(new.shape, torch.empty_like(new))\n"
        "    out.copy_(new)\n    return out\nkept = {}\n"
    )
    assert rope(tmp_path, code, "random").status == "passed"
