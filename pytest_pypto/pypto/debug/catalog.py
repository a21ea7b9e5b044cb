"""The preamble as text: the helper modules cut into pieces, and the pieces that a script needs.

A piece is one top-level statement of a helper module. A script carries the pieces it mentions, and what they mention.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MODULES = (
    *("regions", "windows", "elements", "layout", "reduce", "products", "masks", "generate", "sorting", "gathering"),
    *("state", "pipes", "lanes", "blocks", "checks", "tasks", "loops"),
)
"""Helper modules in the order of the preamble; a piece may mention earlier and later ones."""

ALWAYS = ("torch", "_tile_load", "_tile_store")
"""What every script carries."""

HEAD = "from __future__ import annotations\n"
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Piece:
    """One top-level statement: its text, the names it binds and the words it contains."""

    text: str
    names: tuple[str, ...]
    words: frozenset[str]

    @property
    def is_import(self) -> bool:
        """True for import statements."""
        return self.text.startswith(("import ", "from "))


def _bound(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return (node.name,)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return tuple(alias.asname or alias.name for alias in node.names)
    if isinstance(node, ast.AnnAssign):
        return (ast.unparse(node.target),)
    if isinstance(node, ast.Assign):
        return tuple(ast.unparse(target) for target in node.targets)
    return ()


def _cut(source: str) -> Iterable[Piece]:
    """The pieces of a module; docstrings of constants stay with the constant, local imports are left out."""
    lines = source.splitlines()
    body = ast.parse(source).body
    for k, node in enumerate(body):
        if isinstance(node, ast.Expr) or (
            isinstance(node, ast.ImportFrom) and (node.level or node.module == "__future__")
        ):
            continue
        last = node.end_lineno or node.lineno
        if k + 1 < len(body) and isinstance(body[k + 1], ast.Expr) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            last = body[k + 1].end_lineno or last
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        text = "\n".join(lines[first - 1 : last])
        yield Piece(text, _bound(node), frozenset(_WORD.findall(_code_only(node))))


def _code_only(node: ast.stmt) -> str:
    """The source of a statement without docstrings and comments, in which words are dependencies."""
    stripped = ast.parse(ast.unparse(node))
    for inner in ast.walk(stripped):
        body = getattr(inner, "body", None)
        if isinstance(body, list):
            kept = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            inner.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(stripped)


@functools.cache
def pieces() -> tuple[Piece, ...]:
    """All pieces: every import once, sorted, then the rest in the order of the modules."""
    folder = Path(__file__).parent / "preamble"
    found = [p for name in MODULES for p in _cut((folder / f"{name}.py").read_text(encoding="utf-8"))]
    imports = {p.text: p for p in found if p.is_import}
    ordered = sorted(imports.values(), key=lambda p: (p.text.startswith("from "), p.text))
    return (*ordered, *(p for p in found if not p.is_import))


@functools.cache
def helper_names() -> frozenset[str]:
    """Every name that the preamble binds."""
    return frozenset(name for piece in pieces() for name in piece.names)


@functools.cache
def _owners() -> dict[str, int]:
    return {name: k for k, piece in enumerate(pieces()) for name in piece.names}


def _render(chosen: Iterable[Piece]) -> str:
    """The pieces as text, with the blank lines of ordinary code."""
    parts = [HEAD]
    previous_plain = True
    for piece in chosen:
        plain = not piece.text.startswith(("def ", "class ", "@"))
        parts.append(("" if plain and previous_plain else "\n\n") + piece.text + "\n")
        previous_plain = plain
    return "".join(parts)


@functools.cache
def whole() -> str:
    """The complete preamble."""
    return _render(pieces())


@functools.lru_cache(maxsize=256)
def _needed(words: frozenset[str]) -> str:
    owners, all_pieces = _owners(), pieces()
    todo = [owners[w] for w in (*ALWAYS, *words) if w in owners]
    chosen: set[int] = set()
    while todo:
        k = todo.pop()
        if k not in chosen:
            chosen.add(k)
            todo += [owners[w] for w in all_pieces[k].words if w in owners]
    return _render(all_pieces[k] for k in sorted(chosen))


def needed_by(text: str) -> str:
    """The part of the preamble that `text`, the functions of a script, uses."""
    return _needed(helper_names() & frozenset(_WORD.findall(text)))
