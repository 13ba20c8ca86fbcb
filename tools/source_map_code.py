"""Owns what can be proved about Python files without running them: names, calls and parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from mini_engine.show.source_map import Reference

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.ClassDef | Function


class Sources:
    """The Python files of one version of an engine, below the folder that holds its package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._trees: dict[str, ast.Module | None] = {}

    def tree(self, file: str) -> ast.Module | None:
        """The parsed file, or None if there is no such file."""
        if file not in self._trees:
            path = self.folder / file
            text = path.read_text(encoding="utf-8") if path.is_file() else None
            self._trees[file] = None if text is None else ast.parse(text, file)
        return self._trees[file]

    def find(self, reference: Reference) -> ast.AST | None:
        """What defines the symbol: a class, a function, or the statement that assigns the name."""
        found: ast.AST | None = self.tree(reference.file)
        for name in filter(None, reference.symbol.split(".")):
            if not isinstance(found, Scope):
                return None
            found = next((node for key, node in _definitions(found) if key == name), None)
        return found

    def elsewhere(self, reference: Reference) -> list[Reference]:
        """Where a class or function of the same name is defined now; the nearest folder first."""
        name = (reference.symbol or Path(reference.file).name).rpartition(".")[2]
        if not reference.symbol:
            same = [file for file in self._files if Path(file).name == Path(reference.file).name]
            return [Reference(file) for file in _nearest_first(same, reference.file)]
        owner = reference.symbol.rpartition(".")[0]
        pattern = re.compile(rf"^\s*(class|def|async def) {re.escape(name)}\b", re.MULTILINE)
        files = [
            file
            for file in self._files
            if pattern.search((self.folder / file).read_text(encoding="utf-8"))
        ]
        found = []
        for file in _nearest_first(files, reference.file):
            tree = self.tree(file)
            symbols = [s for s in _qualified(tree) if s.rpartition(".")[2] == name] if tree else []
            symbols.sort(key=lambda symbol: symbol.rpartition(".")[0] != owner)
            found += [Reference(file, symbol) for symbol in symbols]
        return found

    @cached_property
    def _files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.py"))


def _nearest_first(files: list[str], file: str) -> list[str]:
    parts = Path(file).parts

    def shared(other: str) -> int:
        pairs = zip(parts, Path(other).parts, strict=False)
        return next((n for n, (a, b) in enumerate(pairs) if a != b), len(parts))

    return sorted(files, key=lambda other: (-shared(other), other))


def _definitions(scope: Scope) -> Iterator[tuple[str, ast.AST]]:
    """Names that a module, class or function defines; a class also has what `self.NAME =` sets."""
    for node in _statements(scope.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        for target in _targets(node):
            if isinstance(target, ast.Name):
                yield target.id, node
    if isinstance(scope, ast.ClassDef):
        for method in scope.body:
            for node in ast.walk(method) if isinstance(method, Function) else ():
                for target in _targets(node):
                    if isinstance(target, ast.Attribute) and _is_self(target.value):
                        yield target.attr, node


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those inside `if`, `try` and `with` too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for block in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, block, []))


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _qualified(scope: Scope, prefix: str = "") -> Iterator[str]:
    for node in _statements(scope.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from _qualified(node, f"{prefix}{node.name}.")


def calls(caller: ast.AST, name: str) -> bool:
    """Whether the code calls something whose last name is `name`: `x.name(...)` or `name(...)`."""
    for node in ast.walk(caller):
        if isinstance(node, ast.Call):
            function = node.func
            last = getattr(function, "attr", None) or getattr(function, "id", None)
            if last == name:
                return True
    return False


def parameters(function: Function) -> list[str]:
    """The parameters, each as it is written: name, annotation and default."""
    arguments = ast.unparse(function.args)
    wanted = ast.parse(f"def f({arguments}): ...").body[0]
    assert isinstance(wanted, ast.FunctionDef)
    return _one_by_one(wanted.args)


def _one_by_one(arguments: ast.arguments) -> list[str]:
    positional = arguments.posonlyargs + arguments.args
    missing = len(positional) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [None] * missing + list(arguments.defaults)
    found = [_written(a, d) for a, d in zip(positional, defaults, strict=True)]
    if arguments.vararg:
        found.append("*" + _written(arguments.vararg, None))
    elif arguments.kwonlyargs:
        found.append("*")
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [_written(argument, default) for argument, default in pairs]
    return found + (["**" + _written(arguments.kwarg, None)] if arguments.kwarg else [])


def _written(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    return text + (f" = {ast.unparse(default)}" if default is not None else "")


def quote_differs(text: str, function: Function) -> str:
    """Why the quoted parameters are not those of the function; empty if they are."""
    inner = text.strip().removeprefix("(").removesuffix(")").rstrip()
    open_end = inner.endswith("...")
    inner = inner.removesuffix("...").rstrip().removesuffix(",")
    try:
        quoted_function = ast.parse(f"def f({inner}): ...").body[0]
    except SyntaxError:
        return f"{text!r} is no list of parameters"
    assert isinstance(quoted_function, ast.FunctionDef)
    quoted, real = _one_by_one(quoted_function.args), parameters(function)
    if len(quoted) > len(real) or (len(quoted) < len(real) and not open_end):
        return f"it has {len(real)} parameters: {', '.join(map(_name, real))}"
    for mine, theirs in zip(quoted, real, strict=False):
        if not _fits(mine, theirs):
            return f"it has {theirs!r} where {mine!r} is quoted"
    return ""


def _name(parameter: str) -> str:
    return re.split(r"[:=\s]", parameter)[0]


def _fits(quoted: str, real: str) -> bool:
    """Same name; an annotation or default counts only if it is quoted."""
    name, annotation, default = _pieces(quoted)
    real_name, real_annotation, real_default = _pieces(real)
    return (
        name == real_name and annotation in ("", real_annotation) and default in ("", real_default)
    )


def _pieces(parameter: str) -> tuple[str, str, str]:
    before, _, default = parameter.partition(" = ")
    name, _, annotation = before.partition(": ")
    return name, annotation, default
