"""The source of a jit function: its `def` as an AST whose places are those of the author's file."""

from __future__ import annotations

import ast
import inspect
import linecache
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ..language.parser.names import Closure
from ..language.parser.text import Source, comments_of


@dataclass(frozen=True)
class FunctionSource:
    """A `def` with what is needed to parse it: the text it lies in, its comments, the names around it."""

    func: FunctionType
    node: ast.FunctionDef
    source: Source
    comments: dict[int, str]

    @property
    def closure(self) -> Closure:
        """The names around the function, with the values they have now."""
        return Closure(*_layers(self.func))

    @property
    def params(self) -> list[ast.arg]:
        """The parameters, in order."""
        return [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]


def plain_function(func: Any) -> FunctionType:
    """The function that was written with `def`: decorators that only wrap it, and `@staticmethod`, are looked through.

    Raises:
        TypeError: there is none.
    """
    inner = inspect.unwrap(func.__func__ if isinstance(func, staticmethod) else func)
    if not isinstance(inner, FunctionType):
        kind = type(func).__name__
        raise TypeError(f"pl.jit decorates a function written with def, got the {kind} {reprlib.repr(func)}")
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        raise TypeError(f"pl.jit decorates a plain def; '{inner.__name__}' is an async def")
    return inner


def read(func: FunctionType) -> FunctionSource:
    """The source of a Python function.

    Raises:
        OSError: it cannot be found (made by `exec`, or typed at a prompt), or has changed since.
    """
    name = func.__name__
    try:
        lines, first = inspect.getsourcelines(func)
    except (OSError, TypeError) as error:
        raise OSError(f"cannot read the source of jit function '{name}': {error}; define it in a file") from error
    indented = lines[0][:1].isspace()
    # An indented def keeps its columns when it is put below an `if`.
    text = ("if 1:\n" if indented else "") + "".join(lines)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise OSError(f"the source of jit function '{name}' cannot be read: {error}; define it with def") from error
    node = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
    if node is None:
        raise OSError(f"the source of jit function '{name}' is no def statement; jit decorates a def")
    if node.name != func.__code__.co_name:
        raise OSError(
            f"the file of jit function '{name}' has changed since it was imported: where it was there is "
            f"'{node.name}' now; import the file again"
        )
    filename = inspect.getsourcefile(func) or func.__code__.co_filename
    whole = [line.rstrip("\n") for line in linecache.getlines(filename)] or text.splitlines()
    source = Source(text, filename, first - (2 if indented else 1), 0, file_lines=whole)
    return FunctionSource(func, node, source, comments_of(source, tree))


def _layers(func: FunctionType) -> Iterator[dict[str, Any]]:
    """Values the function sees: cells of enclosing functions, then its globals."""
    cells: dict[str, Any] = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=False):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # a cell that is not filled yet
            continue
    yield cells
    yield func.__globals__
