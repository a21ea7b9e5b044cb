"""What several passes share: errors at the user's place, and names of generated variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.span import UNKNOWN, Span
from ..ir.types import Type
from ..ir.visitor import exprs_of, walk_exprs, walk_stmts

_ROLE = re.compile(r"__(?:[A-Za-z0-9]+_)*?(?:ssa|iter|rv|phi|tile|tmp|out|store|idx)(?:_v\d+)?$")
_COPY = re.compile(
    r"(__\w*?(?:ssa|iter|rv|phi|tile|tmp|out|idx)(?:_v\d+)?)"
    r"(?:_(?:mat|Mat|Left|Right|Vec|Bias|Acc|mv|part|nz|t\d*|\d+|l0_\w+))+$"
)
_NAME = re.compile(r"\b[A-Za-z]\w*__\w+\b")


class PassError(ValueError):
    """A pass met something it cannot handle.

    The text begins with `file:line:col` and names variables as the author did; `span` is the place.
    """

    def __init__(self, message: str, *places: Span | e.IRNode | None) -> None:
        self.span = place_of(*places)
        message = _NAME.sub(lambda m: author_name(m[0]), message)
        super().__init__(f"{self.span}: {message}" if self.span.is_valid() else message)


def place_of(*places: Span | e.IRNode | None) -> Span:
    """The first known source place among spans and nodes."""
    for place in places:
        span = place if isinstance(place, Span) else place.span if place is not None else UNKNOWN
        if span.is_valid():
            return span
    return UNKNOWN


def base_name(hint: str) -> str:
    """The author's name in a generated one: `x` for `x__ssa_v3`, `x__tile`."""
    return _ROLE.sub("", hint) or hint


def author_name(hint: str) -> str:
    """The author's name of a value, for messages: `x` also for `x__tile_Left` and `x__ssa_v0_mat`."""
    return base_name(_COPY.sub(r"\1", hint))


def assign(name: str, value: e.Expr, span: Span = UNKNOWN, type_: Type | None = None) -> s.AssignStmt:
    """`name = value` with a fresh variable of the value's type."""
    place = span if span.is_valid() else value.span
    return s.AssignStmt(e.Var(name, value.type if type_ is None else type_, place), value, place)


def attr_vars(stmt: s.Stmt) -> Iterator[e.Var]:
    """Variables read by the attributes of a scope."""
    if isinstance(stmt, s.ScopeStmt):
        for value in stmt.attrs.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, e.Expr):
                    yield from (x for x in walk_exprs(item) if isinstance(x, e.Var))


def type_exprs(type_: Type) -> Iterator[e.Expr]:
    """Expressions in a type: extents, strides, offsets, buffer slots."""
    yield from getattr(type_, "shape", ())
    for view in (getattr(type_, "tile_view", None), getattr(type_, "tensor_view", None)):
        if view is not None:
            yield from view.valid_shape or ()
            yield from view.stride or ()
            offset = getattr(view, "start_offset", None)
            if offset is not None:
                yield offset
    memref = getattr(type_, "memref", None)
    if memref is not None:
        yield memref.byte_offset_
        if memref.slot_index_ is not None:
            yield memref.slot_index_
    for inner in getattr(type_, "types", ()):
        yield from type_exprs(inner)


def type_vars(type_: Type) -> Iterator[e.Var]:
    """Variables in a type."""
    for expr in type_exprs(type_):
        if not isinstance(expr, e.ConstInt):
            yield from (x for x in walk_exprs(expr) if isinstance(x, e.Var))


def expr_vars(expr: e.Expr) -> Iterator[e.Var]:
    """Variables an expression mentions, operands in the order of the text, then call attributes and result types."""
    calls: list[e.Call | e.Submit] = []
    for x in walk_exprs(expr):
        if isinstance(x, e.Var):
            yield x
        elif isinstance(x, (e.Call, e.Submit)):
            calls.append(x)
    for call in calls:
        for value in call.attrs.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, e.Expr):
                    yield from (v for v in walk_exprs(item) if isinstance(v, e.Var))
        yield from type_vars(call.type)


def stmt_uses(stmt: s.Stmt) -> Iterator[e.Var]:
    """Variables that a statement itself mentions without defining them, nested statements left out."""
    for root in exprs_of(stmt):
        yield from expr_vars(root)
    yield from attr_vars(stmt)


def all_uses(body: s.Stmt | None) -> Iterator[e.Var]:
    """Variables mentioned anywhere below `body`."""
    for stmt in walk_stmts(body):
        yield from stmt_uses(stmt)


def is_call(expr: e.Expr | None, *names: str) -> bool:
    """True for a call of one of these operators."""
    return isinstance(expr, e.Call) and expr.op.name in names


def unique_names(taken: Iterable[str]) -> NameSource:
    """A source of names that avoids `taken`."""
    return NameSource(set(taken))


class NameSource:
    """Gives names that are free: the wanted one, else `name_1`, `name_2`, ..."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self.taken = set() if taken is None else taken
        self._next: dict[str, int] = {}

    def take(self, name: str) -> str:
        """A free name; it is taken from now on."""
        made = name
        while made in self.taken:
            count = self._next.get(name, 0) + 1
            self._next[name] = count
            made = f"{name}_{count}"
        self.taken.add(made)
        return made
