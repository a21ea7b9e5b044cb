"""An independent look at addresses: who lives where, when, and who overwrites whom.

Works on any program whose tiles carry addresses, through the public visitor API only, and shares nothing with the
compiler's planner: it does not ask which allocation two tiles belong to, but which bytes they occupy and whether the
older value is still needed when the younger is written.

* A *value* is the content some operator, carry or branch result gave to a range of bytes. Views (slice, reshape, ...)
  are other names of the value they look at.
* A value is *live* where a later read can see it; computed backwards over the structured body, loops to a fixpoint,
  branches apart.
* A *conflict* is a write into bytes of a value that is live after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_pypto.harness.memory_ir import (
    alloc_size,
    bodies,
    call_of,
    expressions,
    key,
    placement,
    plain,
    statements,
    variables,
    where,
    widens,
    yields,
)
from pytest_pypto.harness.memory_rules import ALIGN, capacity, forbidden_operands, in_place_operand, is_view
from pytest_pypto.harness.verdict import Finding

DEVICE_KINDS = frozenset({"AIC", "AIV", "InCore"})
RING_SPACE = {"AIC": "Mat", "AIV": "Vec"}
"""Where the ring buffers that a function reserves lie."""


@dataclass(frozen=True)
class MemoryReport:
    """Result for one program: findings, and how many values with addresses were looked at."""

    findings: tuple[Finding, ...]
    buffers: int


@dataclass(eq=False)
class Value:
    """Content of a range of bytes."""

    name: str
    space: str
    start: int
    end: int
    base: str
    place: str = ""
    slots: bool = False
    var: Any = None
    via: frozenset[Value] = frozenset()
    """Values of which this one updated a part, through a view."""

    def overlaps(self, other: Value) -> bool:
        """Whether the two share a byte."""
        return self.space == other.space and self.start < other.end and other.start < self.end

    def related(self, other: Value) -> bool:
        """Whether the two share bytes on purpose: slots of one buffer, or parts of one value updated through views."""
        return (self.slots and other.slots and self.base == other.base) or bool(self.via & other.via)

    def text(self) -> str:
        """`t__tile (Vec 0..8191)`."""
        return f"{self.name} ({self.space} {self.start}..{self.end - 1})"


def check_program(program: Any, platform: str, stage: str = "") -> MemoryReport:
    """Check every device function of an allocated program.

    Args:
        program: an `ir.Program` whose tiles carry addresses.
        platform: platform id; decides the capacities.
        stage: name of the stage, for the findings.
    """
    findings: list[Finding] = []
    buffers = 0
    for function in program.functions.values():
        if function.func_type.name in DEVICE_KINDS:
            checker = FunctionChecker(function, capacity(platform))
            where = f"{stage}, {function.name}" if stage else function.name
            findings += [Finding(kind, text, where) for kind, text in checker.run()]
            buffers += len(checker.values)
    return MemoryReport(tuple(findings), buffers)


@dataclass
class FunctionChecker:
    """Checks one function.

    Attributes:
        function: an `ir.Function`.
        limits: bytes per memory space.
        values: every value with an address, in order of definition.
        roots: for each variable, the values it may name.
    """

    function: Any
    limits: Mapping[str, int]
    values: list[Value] = field(default_factory=list)
    roots: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    made: dict[int, Value] = field(default_factory=dict)
    allocated: dict[str, int] = field(default_factory=dict)
    rings: list[Value] = field(default_factory=list)
    found: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def run(self) -> list[tuple[str, str]]:
        """All findings as (kind, sentence)."""
        for param in self.function.params:
            self._define(param, "parameter")
        self._collect(self.function.body)
        self._static()
        self._block(statements(self.function.body), set(self.rings))
        return [(kind, text) for (kind, _, _), text in self.found.items()]

    def report(self, kind: str, a: str, b: str, text: str) -> None:
        """Note a finding once."""
        self.found.setdefault((kind, a, b), text)

    # -- values ------------------------------------------------------------------------------------------------

    def _define(self, var: Any, place: str) -> Value | None:
        placed = placement(var)
        if placed is None:
            return None
        space, start, size, base, slots = placed
        value = Value(plain(var), space, start, start + size, base, place, slots, var)
        self.values.append(value)
        self.roots[key(var)] = (value,)
        self.made[key(var)] = value
        return value

    def _collect(self, body: Any) -> None:
        """Give every variable its values, in program order."""
        for stmt in statements(body):
            kind = type(stmt).__name__
            if kind == "AssignStmt":
                self._assigned(stmt)
            for var in (*getattr(stmt, "iter_args", ()),):
                self._define(var, where(stmt))
            for inner in bodies(stmt):
                self._collect(inner)
            for var in getattr(stmt, "return_vars", ()) or ():
                self._define(var, where(stmt))

    def _assigned(self, stmt: Any) -> None:
        name, args = call_of(stmt.value)
        if name == "tile.alloc":
            self.allocated[stmt.var.name_hint] = alloc_size(stmt.value)
        elif name == "system.reserve_buffer":
            self._reserve(stmt)
        elif name is None and key(stmt.value) in self.roots:
            self.roots[key(stmt.var)] = self.roots[key(stmt.value)]
        elif name is not None and is_view(name) and args and key(args[0]) in self.roots:
            self.roots[key(stmt.var)] = self.roots[key(args[0])]
            self._view(stmt.var, args[0], name)
        else:
            value = self._define(stmt.var, where(stmt))
            position = in_place_operand(name or "")
            if value is not None and position is not None and len(args) > position:
                value.via = self._parents(args[position])

    def _parents(self, target: Any) -> frozenset[Value]:
        """What an operator changes besides the variable that it updates."""
        made = self.made.get(key(target))
        return frozenset(self._used(target)) if made is None else made.via

    def _reserve(self, stmt: Any) -> None:
        kwargs = dict(stmt.value.kwargs)
        base, size = int(kwargs.get("base", -1)), int(kwargs.get("size", 0))
        space = RING_SPACE.get(self.function.func_type.name)
        if base < 0 or not size or space is None:
            return
        ring = Value(f"ring buffer {kwargs.get('name', plain(stmt.var))}", space, base, base + size, "", where(stmt))
        for other in self.rings:
            if ring.overlaps(other):
                self.report("overlap", ring.name, other.name, f"{ring.text()} and {other.text()} share bytes")
        self.rings.append(ring)

    # -- facts about single buffers ------------------------------------------------------------------------------

    def _static(self) -> None:
        origins: dict[str, int] = {}
        spaces: dict[str, str] = {}
        for value in self.values:
            if value.base:
                origins[value.base] = min(origins.get(value.base, value.start), value.start)
                if spaces.setdefault(value.base, value.space) != value.space:
                    text = f"{value.text()} lies in allocation {value.base}, which is in {spaces[value.base]}"
                    self.report("space", value.name, value.base, text)
        for value in (*self.values, *self.rings):
            self._bounds(value)
            if value.base in self.allocated:
                end = origins[value.base] + self.allocated[value.base]
                if value.end > end and not value.slots:
                    text = f"{value.text()} ends after its allocation {value.base} ({origins[value.base]}..{end - 1})"
                    self.report("outside its allocation", value.name, value.base, text)

    def _bounds(self, value: Value) -> None:
        limit = self.limits.get(value.space)
        if limit is not None and value.end > limit:
            self.report("capacity", value.name, "", f"{value.text()} ends after the {limit} bytes of {value.space}")
        if value.start < 0:
            self.report("address", value.name, "", f"{value.text()} starts before the memory")
        if value.start % ALIGN:
            self.report("alignment", value.name, "", f"{value.text()} is not aligned to {ALIGN} bytes")

    def _view(self, var: Any, source: Any, op: str) -> None:
        """A view must look at bytes of its parent."""
        mine = placement(var)
        if mine is None:
            return
        space, start, size, base, _ = mine
        view = Value(plain(var), space, start, start + size, base)
        for parent in self.roots[key(source)]:
            if space != parent.space or start < parent.start or view.end > parent.end:
                text = f"{view.text()} = {op}({plain(source)}) looks outside its parent {parent.text()}"
                self.report("view", view.name, parent.name, text)
        if start % ALIGN and space == "Vec":
            self.report("alignment", view.name, "", f"the view {view.text()} is not aligned to {ALIGN} bytes")

    # -- lifetimes -----------------------------------------------------------------------------------------------

    def _block(self, stmts: list[Any], live: set[Value]) -> set[Value]:
        """Go backwards through statements; `live` is what is needed after them, the result what is needed before."""
        for stmt in reversed(stmts):
            live = self._stmt(stmt, live)
        return live

    def _stmt(self, stmt: Any, live: set[Value]) -> set[Value]:
        kind = type(stmt).__name__
        if kind == "AssignStmt":
            return self._assign(stmt, live)
        if kind in ("ForStmt", "WhileStmt"):
            return self._loop(stmt, live)
        if kind == "IfStmt":
            return self._branch(stmt, live)
        used = {value for expr in expressions(stmt) for value in self._used(expr)}
        for inner in bodies(stmt):
            live = self._block(statements(inner), live)
        return live | used

    def _used(self, expr: Any) -> Iterator[Value]:
        for var in variables(expr):
            yield from self.roots.get(key(var), ())

    def _assign(self, stmt: Any, live: set[Value]) -> set[Value]:
        used = set(self._used(stmt.value))
        value = self.made.get(key(stmt.var))
        if value is None:
            return live | used
        name, args = call_of(stmt.value)
        position = in_place_operand(name or "")
        target = args[position] if position is not None and len(args) > position else None
        for other in live - {value} - value.via:
            if value.overlaps(other) and not value.related(other):
                self._clobbered(value, other, name)
        self._operands(name or "", args, value, target, live)
        return (live - {value}) | used

    def _clobbered(self, value: Value, other: Value, op: str | None) -> None:
        text = f"{value.text()} = {op or 'copy'}(...) at {value.place} overwrites {other.text()}, which is still needed"
        self.report("overlap", value.name, other.name, text)

    def _operands(self, op: str, args: list[Any], value: Value, target: Any, live: set[Value]) -> None:
        """Bytes that an operator reads and writes at once."""
        if target is not None:
            mine = placement(target)
            if mine is not None and mine[1] != value.start:
                text = f"{value.text()} is {plain(target)} updated by {op}, which lies at {mine[1]}"
                self.report("moved in place", value.name, plain(target), text)
        forbidden = forbidden_operands(op, args)
        if op == "tile.cast" and args and widens(args[0], value.var):
            forbidden = frozenset({0})
        for index, arg in enumerate(args):
            for operand in self._used(arg):
                if operand in live or arg is target or operand is value or not value.overlaps(operand):
                    continue
                if index in forbidden or placement_start(arg, operand) != value.start:
                    why = "cannot work in place" if index in forbidden else "would read what it has just written"
                    text = f"{op} at {value.place} writes {value.text()} over its operand {operand.text()}; it {why}"
                    self.report("in place", value.name, operand.name, text)

    def _loop(self, stmt: Any, live: set[Value]) -> set[Value]:
        results, carries = self._owned(stmt.return_vars), self._owned(stmt.iter_args)
        self._carried(stmt)
        after = live - results
        condition = set(self._used(stmt.condition)) if hasattr(stmt, "condition") else set()
        body = statements(stmt.body)
        at_end = after | condition
        while True:
            before = self._block(body, set(at_end))
            grown = at_end | (before - carries) | condition
            if grown == at_end:
                break
            at_end = grown
        used = {value for expr in expressions(stmt) for value in self._used(expr)}
        return (before - carries) | after | (used - carries)

    def _carried(self, stmt: Any) -> None:
        """Initial value, carry, yielded value and result are one place: nothing moves them."""
        yielded = yields(stmt.body)
        pairs = zip(stmt.iter_args, stmt.return_vars, strict=False)
        for index, (arg, result) in enumerate(pairs):
            carry = self.made.get(key(arg))
            if carry is None:
                continue
            others = [("initial value", arg.initValue), ("result", result)]
            if index < len(yielded):
                others.append(("yielded value", yielded[index]))
            for what, var in others:
                self._same_place("carry", carry, what, var)

    def _same_place(self, kind: str, value: Value, what: str, var: Any) -> None:
        placed = placement(var)
        if placed is not None and (placed[0], placed[1]) != (value.space, value.start):
            text = f"{value.text()} and its {what} {plain(var)} ({placed[0]} {placed[1]}) are in different places"
            self.report(kind, value.name, plain(var), text)

    def _branch(self, stmt: Any, live: set[Value]) -> set[Value]:
        after = live - self._owned(stmt.return_vars)
        before = set(self._used(stmt.condition))
        for body in (stmt.then_body, stmt.else_body):
            before |= self._block(statements(body), set(after))
            if body is not None:
                for result, var in zip(stmt.return_vars, yields(body), strict=False):
                    merged = self.made.get(key(result))
                    if merged is not None:
                        self._same_place("branch result", merged, "yielded value", var)
        return before

    def _owned(self, variables_: Any) -> set[Value]:
        return {self.made[key(v)] for v in variables_ if key(v) in self.made}


def placement_start(arg: Any, operand: Value) -> int:
    """First byte that an argument names: its own (a view) or the value's."""
    placed = placement(arg)
    return placed[1] if placed is not None else operand.start
