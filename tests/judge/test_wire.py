"""The wire carries types exactly, survives anything and never builds an object of the learner's."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge import wire
from judge.api import Case
from judge.compare import array_difference, function_answer, same, show, value_lines
from judge.wire import Array, Foreign, Frame, Raised, Ref, WireError

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=12,
)


def identical(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)


@settings(deadline=None)
@given(plain)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    assert identical(wire.copy(value), value)


def test_special_values() -> None:
    frame = Frame("f.py", 3, "g", "return 1", True)
    for value in (Ref(1, 2), Ref(0), Raised(("A", "B"), "text", (frame,)), Foreign("t", "x")):
        assert wire.copy(value) == value
    assert math.isnan(wire.copy(math.nan))
    assert wire.copy([math.inf, "\ud800"]) == [math.inf, "\ud800"]


def test_what_has_no_place_is_foreign() -> None:
    class MyInt(int):
        pass

    loop: list[Any] = []
    loop.append(loop)
    for value in (object(), MyInt(3), {1}, 2**70, b"bytes", numpy.int64(3), print):
        assert isinstance(wire.copy(value), Foreign)
    assert "too large or nested too deeply" in repr(wire.copy(loop))
    assert isinstance(wire.copy("x" * 10**6), Foreign)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]
)
def test_arrays_keep_shape_and_dtype(dtype: str) -> None:
    array = numpy.arange(6).reshape(2, 3).astype(dtype)
    found = wire.copy(array)
    assert isinstance(found, Array)
    assert (found.kind, found.dtype, found.shape) == ("numpy", dtype, (2, 3))
    assert numpy.array_equal(found.numpy(), array)


def test_empty_arrays_and_many_arrays() -> None:
    first, second = numpy.zeros((0, 3), "float32"), numpy.ones(2, "int64")
    found = wire.copy([first, second])
    assert found[0].shape == (0, 3)
    assert found[1].numpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    "text",
    [
        b"[1,",
        b'{"a":1,"b":2}',
        b'{"unknown":1}',
        b'{"array":["torch","float32",[4],"cpu",0]}',
        b'{"array":["torch","float32",[-1],"cpu",0]}',
        b'{"array":["torch","object",[1],"cpu",0]}',
        b'{"dict":[[[],1]]}',
        b'{"raised":3}',
        b"[" * 5000 + b"]" * 5000,
        b"9" * 5000,
        b"\xff\xfe",
    ],
)
def test_malformed_messages_are_refused(text: bytes) -> None:
    with pytest.raises(WireError):
        wire.decode(text, b"")


def test_headers_are_checked() -> None:
    with pytest.raises(WireError, match="no answer"):
        wire.sizes(b"x" * wire.HEADER.size)
    with pytest.raises(WireError, match="too large"):
        wire.sizes(wire.HEADER.pack(wire.MAGIC, wire.MAX_JSON + 1, 0))


def test_types_count_in_comparisons() -> None:
    assert same(1, 1)
    assert not same(1, True)
    assert not same(1, 1.0)
    assert not same([1], (1,))
    assert not same(None, 0)
    assert not same(math.nan, math.nan)
    assert same(0.1 + 0.2, 0.3)
    assert not same(Foreign("A", "x"), Foreign("A", "x"))
    assert not same({"a": 1}, {"a": 1, "b": 2})


def test_a_subclass_of_the_expected_error_is_right() -> None:
    wanted = Raised(("ValueError", "Exception"), "a")
    assert same(wanted, Raised(("Mine", "ValueError", "Exception"), "b"))
    assert not same(wanted, Raised(("Exception",), "b"))
    assert not same(wanted, None)


def array(values: Any, dtype: str = "float32", device: str = "cpu") -> Array:
    data = numpy.asarray(values, dtype)
    return Array("torch", dtype, data.shape, device, data.tobytes())


def test_tensor_differences_have_their_own_sentences() -> None:
    right = array([[1.0, 2.0], [3.0, 4.0]])
    assert array_difference(right, right) is None
    assert array_difference(right, array([[1.0, 2.0], [3.0, 4.0 + 1e-5]])) is None
    (shape,) = array_difference(right, array([1.0, 2.0, 3.0, 4.0])) or ()
    assert shape == "the shape is [4], expected [2, 2]"
    (dtype,) = array_difference(right, array([[1, 2], [3, 4]], "float64")) or ()
    assert dtype == "the dtype is float64, expected float32"
    (device,) = array_difference(right, array([[1, 2], [3, 4]], device="cuda:0")) or ()
    assert device == "it is on cuda:0, expected cpu"
    lines = array_difference(right, array([[1.0, 2.0], [3.5, 4.0]])) or ()
    assert lines[0] == "1 of 4 numbers are wrong, the first at [1, 0]: expected 3, got 3.5"
    assert lines[1] == "largest absolute error 0.5, relative 0.167"


def test_nan_and_infinity_in_a_tensor_are_wrong() -> None:
    right = array([1.0, 2.0])
    for bad in (math.nan, math.inf):
        lines = array_difference(right, array([1.0, bad])) or ()
        assert "NaN or infinite" in lines[1]
    assert array_difference(array([math.nan]), array([math.nan])) is not None


def test_bfloat16_is_read_as_float32() -> None:
    ones = numpy.asarray([0x3F80, 0xC000], "<u2").tobytes()
    assert Array("torch", "bfloat16", (2,), "cpu", ones).numpy().tolist() == [1.0, -2.0]


def test_lines_say_what_surprises() -> None:
    assert value_lines(1, True)[-1] == "expected the type int, got bool"
    assert "without a return" in value_lines([1], None)[-1]
    assert value_lines(Raised(("ValueError",), ""), 3) == (
        "expected ValueError, but it returned 3",
    )
    assert show(Raised(("ValueError",), "")) == "ValueError"


def test_a_tampered_answer_of_another_form_is_an_error() -> None:
    case = Case("f(1)", {})
    found = function_answer(case, {"value": 1}, 5)
    assert found is not None


def test_a_column_of_one_row_arrives_whole() -> None:
    """It counts as contiguous whatever its stride, but its bytes can't be viewed then."""
    torch = pytest.importorskip("torch")
    column = torch.arange(7)[None][:, 3]
    assert column.stride() == (7,)
    assert wire.copy(column).numpy().tolist() == [3]
