"""IR statements. Bodies are single statements, normally a `SeqStmts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .enums import ForKind, InlineLanguage, Level, Role, ScopeKind, SplitMode
from .expr import Expr, IRNode, IterArg, Var, WindowBuffer, index
from .span import UNKNOWN, Span


class Stmt(IRNode):
    """Base of all statements; `leading_comments` are the comment lines above it, without `# `."""

    __slots__ = ()
    leading_comments: tuple[str, ...]


def _comments() -> Any:
    return field(default=(), kw_only=True)


def _tuples(node: object, *names: str) -> None:
    for name in names:
        value = getattr(node, name)
        if not isinstance(value, tuple):
            object.__setattr__(node, name, tuple(value))


def _all(node: object, name: str, kind: type) -> None:
    """Refuse members that are no `kind` where the node is made, not where it is printed."""
    for part in getattr(node, name):
        if not isinstance(part, kind):
            raise TypeError(f"{name} of {type(node).__name__} must be ir.{kind.__name__}, got {part!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AssignStmt(Stmt):
    """var = value"""

    var: Var
    value: Expr
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        if not isinstance(self.var, Var) or not isinstance(self.value, Expr):
            raise TypeError(f"AssignStmt takes an ir.Var and an ir.Expr, got {self.var!r} and {self.value!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EvalStmt(Stmt):
    """An expression evaluated for its effect."""

    expr: Expr
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        if not isinstance(self.expr, Expr):
            raise TypeError(f"EvalStmt takes an ir.Expr, got {self.expr!r}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReturnStmt(Stmt):
    """return of zero, one or several values"""

    value: tuple[Expr, ...] = ()
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "value")
        _all(self, "value", Expr)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class YieldStmt(Stmt):
    """The values a loop body or branch hands on."""

    value: tuple[Expr, ...] = ()
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "value")
        _all(self, "value", Expr)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeqStmts(Stmt):
    """Statements one after the other."""

    stmts: tuple[Stmt, ...] = ()
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "stmts")
        _all(self, "stmts", Stmt)

    def __getitem__(self, i: int) -> Stmt:
        return self.stmts[i]

    def __len__(self) -> int:
        return len(self.stmts)

    def __iter__(self) -> Iterator[Stmt]:
        return iter(self.stmts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IfStmt(Stmt):
    """A branch; with `return_vars` both branches end in a yield of as many values."""

    condition: Expr
    then_body: Stmt
    else_body: Stmt | None = None
    return_vars: tuple[Var, ...] = ()
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "return_vars")
        _all(self, "return_vars", Var)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForStmt(Stmt):
    """A counted loop over `[start, stop)`; `return_vars[i]` is the last value of `iter_args[i]`."""

    loop_var: Var
    start: Expr
    stop: Expr
    step: Expr
    iter_args: tuple[IterArg, ...]
    body: Stmt
    return_vars: tuple[Var, ...] = ()
    span: Span = UNKNOWN
    kind: ForKind = ForKind.Sequential
    attrs: dict[str, Any] = field(default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "iter_args", "return_vars")
        object.__setattr__(self, "attrs", dict(self.attrs or {}))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WhileStmt(Stmt):
    """A loop that runs while `condition`, evaluated on the iter args, holds."""

    condition: Expr
    iter_args: tuple[IterArg, ...]
    body: Stmt
    return_vars: tuple[Var, ...] = ()
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "iter_args", "return_vars")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BreakStmt(Stmt):
    """break"""

    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ContinueStmt(Stmt):
    """continue"""

    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InlineStmt(Stmt):
    """Text in another language, kept as it is."""

    body: str
    language: InlineLanguage = InlineLanguage.Python
    span: Span = UNKNOWN
    leading_comments: tuple[str, ...] = _comments()


class ScopeStmt(Stmt):
    """Base of the scopes; `attrs` holds options such as `slot_num`, `task_id_var`, `manual_dep_edges`."""

    __slots__ = ()
    scope_kind: ClassVar[ScopeKind]
    name_hint: str
    body: Stmt
    attrs: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InCoreScopeStmt(ScopeStmt):
    """A device region, outlined to a kernel."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.InCore
    split: SplitMode = SplitMode.NONE
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClusterScopeStmt(ScopeStmt):
    """A region whose inner scopes become members of one group."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Cluster
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HierarchyScopeStmt(ScopeStmt):
    """A region that runs at another level of the machine."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Hierarchy
    level: Level
    role: Role | None = None
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpmdScopeStmt(ScopeStmt):
    """A launch of `core_num` blocks."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Spmd
    core_num: Expr
    sync_start: bool = False
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        if not isinstance(self.core_num, Expr):
            object.__setattr__(self, "core_num", index(self.core_num, self.span))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SplitAivScopeStmt(ScopeStmt):
    """A region run by each of the two vector lanes."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.SplitAiv
    split: SplitMode
    count: int = 2
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RuntimeScopeStmt(ScopeStmt):
    """A scope of task lifetimes; `manual` means only explicit dependencies count."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Runtime
    manual: bool = False
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CommDomainScopeStmt(ScopeStmt):
    """A region in which devices share window buffers."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.CommDomain
    devices: tuple[int, ...]
    slots: tuple[WindowBuffer, ...]
    name_hint: str = ""
    body: Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = _comments()

    def __post_init__(self) -> None:
        _tuples(self, "devices", "slots")


def stmts_of(body: Stmt | None) -> tuple[Stmt, ...]:
    """The statements of a body: the members of a sequence, or the statement itself; nested sequences are flattened."""
    if body is None:
        return ()
    if not isinstance(body, SeqStmts):
        return (body,)
    for s in body.stmts:
        if isinstance(s, SeqStmts):
            return tuple(inner for s in body.stmts for inner in stmts_of(s))
    return body.stmts


def seq(stmts: Sequence[Stmt], span: Span = UNKNOWN) -> SeqStmts:
    """A flat sequence of `stmts`."""
    return SeqStmts(tuple(inner for s in stmts for inner in stmts_of(s)), span)
