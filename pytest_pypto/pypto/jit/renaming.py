"""New names for variables that are assigned again.

A second assignment at the nesting depth of the first gives the variable the name `v_v1`, then `v_v2`, and so on, so
that it may change its type. Deeper assignments keep the name, and so does everything under an `if`, whose branches
must agree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Block = tuple[tuple[int, str], ...]
"""A place in the nesting: (statement number, kind) per level, outermost first."""

ROOT: Block = ()


@dataclass
class Names:
    """Which name each variable of one function has at the moment."""

    taken: set[str] = field(default_factory=set)
    first: dict[str, Block] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    """New name -> the author's name."""
    ahead: set[str] = field(default_factory=set)
    """Variables whose next assignment already has its name (see `enter_loop`)."""

    def read(self, name: str) -> str:
        """The name to read `name` by."""
        return self.current.get(name, name)

    def assign(self, name: str, block: Block) -> str:
        """The name under which an assignment in `block` stores."""
        if name in self.ahead:
            self.ahead.discard(name)
        elif name not in self.first:
            self.first[name], self.current[name] = block, name
        elif self._renews(name, block):
            self._renew(name)
        return self.current[name]

    def keep(self, name: str, block: Block) -> None:
        """A binding that never gets a new name: parameters, loop variables, carried values."""
        self.first.setdefault(name, block)
        self.current[name] = name

    def _renews(self, name: str, block: Block) -> bool:
        first = self.first[name]
        if len(first) != len(block):
            return False
        shared = sum(1 for _ in _common(first, block))
        return not any(kind == "if" for _, kind in (*block, *first[shared:]))

    def _renew(self, name: str) -> None:
        k = 1
        while f"{name}_v{k}" in self.taken:
            k += 1
        new = f"{name}_v{k}"
        self.taken.add(new)
        self.given[new] = name
        self.current[name] = new

    def enter_loop(self, body: list[ast.stmt], block: Block) -> list[tuple[str, str]]:
        """Rename what the loop carries over from an earlier sibling block; gives the (new, old) pairs to bridge.

        Such a variable is read in the body before it is written there, so the new name needs a value before the loop.
        """
        bridges = []
        for name in read_before_write(body):
            known = name in self.first and self.first[name] != block
            if known and len(self.first[name]) == len(block) and self._renews(name, block):
                old = self.current[name]
                self._renew(name)
                self.ahead.add(name)
                bridges.append((self.current[name], old))
        return bridges


def _common(a: Block, b: Block) -> Iterator[tuple[int, str]]:
    for x, y in zip(a, b, strict=False):
        if x != y:
            return
        yield x


def stored(stmt: ast.stmt) -> list[str]:
    """Names that a statement itself assigns (not its body)."""
    if isinstance(stmt, ast.Assign):
        return [n for target in stmt.targets for n in _targets(target)]
    return _targets(stmt.target) if isinstance(stmt, ast.AnnAssign) else []


def _targets(node: ast.expr) -> list[str]:
    if isinstance(node, (ast.Tuple, ast.List)):
        return [n for e in node.elts for n in _targets(e)]
    return [node.id] if isinstance(node, ast.Name) else []


def read_before_write(body: list[ast.stmt]) -> list[str]:
    """Names assigned directly in `body` that are read in it before that."""
    assigned = {name for stmt in body for name in stored(stmt)}
    written: set[str] = set()
    early: list[str] = []
    for stmt in body:
        value = stmt.value if isinstance(stmt, (ast.Assign, ast.AnnAssign)) else stmt
        reads = {n.id for n in ast.walk(value or stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        early += sorted((reads & assigned) - written - set(early))
        written.update(stored(stmt))
    return early
