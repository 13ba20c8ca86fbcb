"""Owns the messages between the judge and the process that runs a learner's code.

A frame is a fixed header (magic, size of the JSON, size of the raw bytes), JSON, raw tensor bytes.
Every value carries its exact type, so that True is not 1 and a subclass of int is not an int; what
has no place in the format arrives as a `Foreign`, never as an object. Nothing is pickled.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAGIC = b"MEJ1"
HEADER = struct.Struct("<4sIQ")  # magic, bytes of JSON, bytes of tensors
MAX_JSON = 32 * 1024 * 1024
MAX_BLOB = 512 * 1024 * 1024
MAX_NODES = 2_000_000
MAX_TEXT = 200_000
MAX_DEPTH = 60
DTYPES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip


class WireError(Exception):
    """A message that is malformed, too large or of the wrong kind."""


@dataclass(frozen=True)
class Array:
    """A tensor on the wire: little-endian, row-major. `kind` is the library that it came from."""

    kind: str  # "torch" or "numpy"
    dtype: str
    shape: tuple[int, ...]
    device: str
    data: bytes = field(repr=False)

    def numpy(self) -> Any:
        """The numbers as a fresh numpy array; bfloat16 is widened to float32."""
        import numpy

        if self.dtype == "bfloat16":
            bits = numpy.frombuffer(self.data, dtype="<u2").astype("<u4") << 16
            return bits.view("<f4").reshape(self.shape)
        return numpy.frombuffer(self.data, dtype=self.dtype).reshape(self.shape).copy()


@dataclass(frozen=True)
class Frame:
    """One line of a traceback. `own` marks the learner's code."""

    file: str
    line: int
    function: str
    source: str
    own: bool


@dataclass(frozen=True)
class Raised:
    """An exception: the names of its class and base classes, most specific first, and where."""

    types: tuple[str, ...]
    message: str
    frames: tuple[Frame, ...] = ()

    @property
    def type_name(self) -> str:
        return self.types[0] if self.types else "Exception"


@dataclass(frozen=True)
class Foreign:
    """A value of a type that the wire does not carry: the type's name and a short text."""

    type_name: str
    text: str

    def __repr__(self) -> str:
        """Inside a list: as the learner's Python prints it, and never without the type."""
        name = self.type_name.rpartition(".")[2]
        return self.text if name in self.text else f"{name}({self.text})"


@dataclass(frozen=True)
class Ref:
    """In a script of calls: what call number `call` returned, or item `item` of it."""

    call: int
    item: int | None = None


def encode(value: Any) -> bytes:
    """One frame. Never raises for odd values: they become `Foreign`."""
    writer = _Writer()
    try:
        tree = writer.tree(value, 0)
    except RecursionError:
        tree = {"foreign": [type(value).__name__, "nested too deeply"]}
    text = json.dumps(tree, separators=(",", ":")).encode("utf-8", "surrogatepass")
    blob = b"".join(writer.chunks)
    if len(text) > MAX_JSON or len(blob) > MAX_BLOB:
        raise WireError(f"a message of {len(text) + len(blob):,} bytes is too large")
    return HEADER.pack(MAGIC, len(text), len(blob)) + text + blob


def sizes(header: bytes) -> tuple[int, int]:
    """(bytes of JSON, bytes of tensors) that follow a header. Raises WireError."""
    magic, text, blob = HEADER.unpack(header)
    if magic != MAGIC:
        raise WireError(f"the result channel holds something that is no answer: {header[:16]!r}")
    if text > MAX_JSON or blob > MAX_BLOB:
        raise WireError(f"an answer of {text + blob:,} bytes is too large")
    return text, blob


def decode(text: bytes, blob: bytes, arrays: Callable[[Array], Any] | None = None) -> Any:
    """The value of a frame's two parts. `arrays` turns each Array into what the reader wants."""
    try:
        tree = json.loads(text.decode("utf-8", "surrogatepass"))
        return _Reader(blob, arrays).value(tree, 0)
    except WireError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise WireError(f"an answer is malformed ({type(error).__name__}: {error})") from error


def copy(value: Any, arrays: Callable[[Array], Any] | None = None) -> Any:
    """A value as it arrives at the other end: every run of a part gets its own copy."""
    frame = encode(value)
    text, _ = sizes(frame[: HEADER.size])
    return decode(frame[HEADER.size : HEADER.size + text], frame[HEADER.size + text :], arrays)


def torch_tensor(array: Array) -> Any:
    """An Array as a fresh torch tensor on the CPU."""
    import torch

    dtype = getattr(torch, array.dtype)
    if not array.data:
        return torch.empty(array.shape, dtype=dtype)
    return torch.frombuffer(bytearray(array.data), dtype=dtype).reshape(array.shape)


class _Writer:
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.offset = 0
        self.nodes = 0

    def tree(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            return {"foreign": [type(value).__name__, "too large or nested too deeply"]}
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**64 else _foreign(value)
        if kind is str:
            return value if len(value) <= MAX_TEXT else {"foreign": ["str", value[:200] + "..."]}
        if (kind is list or kind is tuple or kind is dict) and len(value) > MAX_NODES - self.nodes:
            return {"foreign": [kind.__name__, f"{len(value):,} items, too many to look at"]}
        if kind is list:
            return [self.tree(item, depth + 1) for item in value]
        if kind is tuple:
            return {"tuple": [self.tree(item, depth + 1) for item in value]}
        if kind is dict:
            pairs = list(value.items())
            return {"dict": [[self.tree(k, depth + 1), self.tree(v, depth + 1)] for k, v in pairs]}
        if kind is Ref:
            return {"ref": [value.call, value.item]}
        if kind is Foreign:
            return {"foreign": [value.type_name, value.text]}
        if kind is Raised:
            frames = [[f.file, f.line, f.function, f.source, f.own] for f in value.frames]
            return {"raised": [list(value.types), value.message, frames]}
        array = value if kind is Array else _as_array(value)
        return _foreign(value) if array is None else self._array(array)

    def _array(self, array: Array) -> Any:
        entry = [array.kind, array.dtype, list(array.shape), array.device, self.offset]
        self.chunks.append(array.data)
        self.offset += len(array.data)
        return {"array": entry}


class _Reader:
    def __init__(self, blob: bytes, arrays: Callable[[Array], Any] | None) -> None:
        self.blob = blob
        self.arrays = arrays

    def value(self, tree: Any, depth: int) -> Any:
        if depth > 2 * MAX_DEPTH:
            raise WireError("an answer is nested too deeply")
        if isinstance(tree, list):
            return [self.value(item, depth + 1) for item in tree]
        if not isinstance(tree, dict):
            return tree
        ((tag, body),) = tree.items()
        if tag == "tuple":
            return tuple(self.value(item, depth + 1) for item in body)
        if tag == "dict":
            pairs = [(self.value(k, depth + 1), self.value(v, depth + 1)) for k, v in body]
            return dict(pairs)
        if tag == "ref":
            return Ref(int(body[0]), None if body[1] is None else int(body[1]))
        if tag == "foreign":
            return Foreign(str(body[0]), str(body[1]))
        if tag == "raised":
            frames = tuple(
                Frame(str(f), int(n), str(g), str(s), bool(o)) for f, n, g, s, o in body[2]
            )
            return Raised(tuple(str(name) for name in body[0]), str(body[1]), frames)
        if tag == "array":
            array = self._array(body)
            return self.arrays(array) if self.arrays else array
        raise WireError(f"an answer holds a value of the unknown kind {tag!r}")

    def _array(self, body: Any) -> Array:
        kind, dtype, shape, device, offset = body
        count = 1
        for size in shape:
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise WireError(f"a tensor of shape {shape!r}")
            count *= size
        end = int(offset) + count * DTYPES[dtype]
        if not 0 <= int(offset) <= end <= len(self.blob):
            raise WireError("a tensor's bytes are missing")
        data = self.blob[int(offset) : end]
        return Array(str(kind), str(dtype), tuple(shape), str(device), data)


def _foreign(value: Any) -> Any:
    try:
        text = repr(value)[:200]
    except BaseException:  # a learner's __repr__ may raise anything; the value has no text then
        text = "(its repr() raises)"
    return {"foreign": [_type_name(type(value)), text if type(text) is str else "(no text)"]}


def _type_name(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _as_array(value: Any) -> Array | None:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and type(value) is torch.Tensor:
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES or value.layout is not torch.strided:
            return None
        plain = value.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
        data = plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        return Array("torch", dtype, tuple(value.shape), str(value.device), data)
    if numpy is not None and type(value) is numpy.ndarray and value.dtype.name in DTYPES:
        shape = tuple(int(size) for size in value.shape)
        return Array("numpy", value.dtype.name, shape, "cpu", value.tobytes())
    return None
