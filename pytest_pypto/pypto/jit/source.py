"""The source of a jit function: its `def` as an AST whose places are those of the author's file."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..language.parser.names import Closure
from ..language.parser.text import Source, comments_of


@dataclass(frozen=True)
class FunctionSource:
    """A `def` with what is needed to parse it: the text it lies in, its comments, the names around it."""

    node: ast.FunctionDef
    source: Source
    comments: dict[int, str]
    closure: Closure

    @property
    def params(self) -> list[ast.arg]:
        """The parameters, in order."""
        return [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]


def read(func: Callable[..., Any]) -> FunctionSource:
    """The source of a Python function.

    Raises:
        OSError: it cannot be found (made by `exec`, or typed at a prompt).
    """
    name = getattr(func, "__name__", repr(func))
    try:
        lines, first = inspect.getsourcelines(func)
    except (OSError, TypeError) as error:
        raise OSError(f"cannot read the source of jit function '{name}': {error}; define it in a file") from error
    indented = lines[0][:1].isspace()
    # An indented def keeps its columns when it is put below an `if`.
    text = ("if 1:\n" if indented else "") + "".join(lines)
    tree = ast.parse(text)
    node = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
    if node is None:
        raise OSError(f"the source of jit function '{name}' is no def statement; jit decorates a def")
    filename = inspect.getsourcefile(func) or func.__code__.co_filename
    whole = [line.rstrip("\n") for line in linecache.getlines(filename)] or text.splitlines()
    source = Source(text, filename, first - (2 if indented else 1), 0, file_lines=whole)
    return FunctionSource(node, source, comments_of(source, tree), Closure(*_layers(func)))


def _layers(func: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Values the function sees: cells of enclosing functions, then its globals."""
    cells: dict[str, Any] = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=False):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # a cell that is not filled yet
            continue
    yield cells
    yield func.__globals__
