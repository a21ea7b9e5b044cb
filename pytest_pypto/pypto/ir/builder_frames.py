"""What the context managers of `IRBuilder` give: one class per thing that nests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import expr as e
from . import stmt as s
from . import types as t
from .enums import ForKind, FunctionType, Level, ParamDirection, Role, ScopeKind, SplitMode
from .program import Function, Program
from .scalar_ops import as_scalar
from .span import Span


class _Frame:
    """Base: the place, and the result once the block is closed."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._result: Any = None

    def get_result(self) -> Any:
        """What was built.

        Raises:
            RuntimeError: the block is still open.
        """
        if self._result is None:
            raise RuntimeError("the block is still open: call get_result() after the `with` statement")
        return self._result


class ProgramBuilder(_Frame):
    """A program on its way."""

    def __init__(self, name: str, span: Span) -> None:
        super().__init__(span)
        self.name = name
        self._functions: list[Function] = []
        self._declared: dict[str, e.GlobalVar] = {}

    def declare_function(self, name: str) -> e.GlobalVar:
        """Name a function before it is built, so that others can call it."""
        return self._declared.setdefault(name, e.GlobalVar(name))

    def get_global_var(self, name: str) -> e.GlobalVar:
        """The callee that `declare_function` gave.

        Raises:
            KeyError: not declared.
        """
        if name not in self._declared:
            raise KeyError(f"function '{name}' is not declared; declared: {', '.join(self._declared) or 'none'}")
        return self._declared[name]

    def add_function(self, func: Function) -> None:
        """Put a function into the program."""
        self.declare_function(func.name)
        self._functions.append(func)

    def finish(self) -> None:
        """Close the program."""
        self._result = Program(self._functions, self.name, self.span)


class FunctionBuilder(_Frame):
    """A function on its way."""

    def __init__(
        self,
        name: str,
        span: Span,
        type: FunctionType,
        level: Level | None,
        role: Role | None,
        attrs: dict[str, Any],
        requires_runtime_binding: bool,
    ) -> None:
        super().__init__(span)
        self.name, self.type, self.level, self.role = name, type, level, role
        self.attrs = attrs
        self.requires_runtime_binding = requires_runtime_binding
        self._params: list[tuple[e.Var, ParamDirection]] = []
        self._returns: list[t.Type] = []

    def param(
        self, name: str, type: t.Type, span: Span | None = None, direction: ParamDirection = ParamDirection.In
    ) -> e.Var:
        """The next parameter."""
        var = e.Var(name, type, span or self.span)
        self._params.append((var, direction))
        return var

    def return_type(self, type: t.Type) -> None:
        """The next return type."""
        self._returns.append(type)

    def finish(self, block: list[s.Stmt]) -> None:
        """Close the function."""
        self._result = Function(
            self.name,
            self._params,
            self._returns,
            s.SeqStmts(tuple(block), self.span),
            self.span,
            self.type,
            self.level,
            self.role,
            self.attrs,
            self.requires_runtime_binding,
        )


class _Results(_Frame):
    """Base of what has results: they can be read after the block."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self._return_vars: list[e.Var] = []

    def output(self, index: int = 0) -> e.Var:
        """Result number `index`.

        Raises:
            IndexError: there are fewer.
        """
        if not 0 <= index < len(self._return_vars):
            raise IndexError(f"result {index} of {len(self._return_vars)}: declare results with return_var()")
        return self._return_vars[index]

    def outputs(self) -> list[e.Var]:
        """All results."""
        return list(self._return_vars)


class _Loop(_Results):
    """Base of the loops: carried values."""

    what = "For"

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self._iter_args: list[e.IterArg] = []

    def iter_arg(
        self, name: str, init_value: e.Expr | int | float, type: t.Type | None = None, span: Span | None = None
    ) -> e.IterArg:
        """A carried value; the body sees it, `init_value` is what the first iteration sees."""
        place = span or self.span
        init = as_scalar(init_value, place)
        made = e.IterArg(name, init.type if type is None else type, init, place)
        self._iter_args.append(made)
        return made

    def return_var(self, name: str, type: t.Type | None = None, span: Span | None = None) -> e.Var:
        """The result of the carried value at the same position; its type is that value's unless given.

        Raises:
            IndexError: no carried value is left and no type is given.
        """
        place = len(self._return_vars)
        if type is None:
            if place >= len(self._iter_args):
                raise IndexError(f"return_var('{name}'): there is no iter_arg at position {place}; give its type")
            type = self._iter_args[place].type
        var = e.Var(name, type, span or self.span)
        self._return_vars.append(var)
        return var

    def check(self) -> None:
        """Refuse a loop whose carried values and results differ in number."""
        carried, results = len(self._iter_args), len(self._return_vars)
        if carried != results:
            raise ValueError(
                f"{self.what} loop has {carried} iteration arguments but {results} return variables. They must match."
            )


class ForLoopBuilder(_Loop):
    """A counted loop on its way."""

    def __init__(
        self, span: Span, loop_var: e.Var, bounds: tuple[e.Expr, ...], kind: ForKind, attrs: dict[str, Any]
    ) -> None:
        super().__init__(span)
        self.loop_var, self.bounds, self.kind, self.attrs = loop_var, bounds, kind, attrs

    def finish(self, block: list[s.Stmt]) -> s.ForStmt:
        """Close the loop."""
        self.check()
        body = s.SeqStmts(tuple(block), self.span)
        start, stop, step = self.bounds
        carried, results = tuple(self._iter_args), tuple(self._return_vars)
        made = s.ForStmt(self.loop_var, start, stop, step, carried, body, results, self.span, self.kind, self.attrs)
        self._result = made
        return made


class WhileLoopBuilder(_Loop):
    """A conditional loop on its way."""

    what = "While"

    def __init__(self, span: Span, condition: e.Expr) -> None:
        super().__init__(span)
        self.condition = condition

    def set_condition(self, condition: e.Expr | bool) -> None:
        """Replace the condition, once the carried values exist."""
        self.condition = as_scalar(condition, self.span)

    def finish(self, block: list[s.Stmt]) -> s.WhileStmt:
        """Close the loop."""
        self.check()
        body = s.SeqStmts(tuple(block), self.span)
        made = s.WhileStmt(self.condition, tuple(self._iter_args), body, tuple(self._return_vars), self.span)
        self._result = made
        return made


class IfStmtBuilder(_Results):
    """A branch on its way."""

    def __init__(self, span: Span, condition: e.Expr, blocks: list[list[s.Stmt]]) -> None:
        super().__init__(span)
        self.condition = condition
        self._blocks = blocks
        self._then: list[s.Stmt] = []
        self._else: list[s.Stmt] | None = None

    def start(self, block: list[s.Stmt]) -> None:
        """The open block is the then side."""
        self._then = block

    def else_(self, span: Span | None = None) -> None:
        """What follows belongs to the else side.

        Raises:
            RuntimeError: called twice.
        """
        if self._else is not None:
            raise RuntimeError("else_() was called already")
        self._else = []
        self._blocks[-1] = self._else

    def return_var(self, name: str, type: t.Type, span: Span | None = None) -> e.Var:
        """A result; both sides yield it at the same position."""
        var = e.Var(name, type, span or self.span)
        self._return_vars.append(var)
        return var

    def finish(self) -> s.IfStmt:
        """Close the branch."""
        other = None if self._else is None else s.SeqStmts(tuple(self._else), self.span)
        then = s.SeqStmts(tuple(self._then), self.span)
        made = s.IfStmt(self.condition, then, other, tuple(self._return_vars), self.span)
        self._result = made
        return made


_SCOPES: dict[ScopeKind, tuple[type[s.ScopeStmt], Sequence[str], Sequence[str]]] = {
    ScopeKind.InCore: (s.InCoreScopeStmt, (), ("split",)),
    ScopeKind.Cluster: (s.ClusterScopeStmt, (), ()),
    ScopeKind.Hierarchy: (s.HierarchyScopeStmt, ("level",), ("role",)),
    ScopeKind.Spmd: (s.SpmdScopeStmt, ("core_num",), ("sync_start",)),
    ScopeKind.SplitAiv: (s.SplitAivScopeStmt, ("split",), ()),
    ScopeKind.Runtime: (s.RuntimeScopeStmt, (), ("manual",)),
}
"""Kind -> (class, fields it needs, fields it may have)."""


class ScopeBuilder(_Frame):
    """A scope on its way."""

    def __init__(
        self, span: Span, kind: ScopeKind, name_hint: str, fields: dict[str, Any], attrs: dict[str, Any]
    ) -> None:
        super().__init__(span)
        if kind not in _SCOPES:
            known = ", ".join(k.name for k in _SCOPES)
            raise ValueError(f"scope kind {kind.name} cannot be built here; one of {known}")
        self.cls, needed, allowed = _SCOPES[kind]
        given = {k: v for k, v in fields.items() if v is not None and v is not SplitMode.NONE}
        if kind is ScopeKind.SplitAiv and fields.get("split") is not None:
            given["split"] = fields["split"]
        missing = [n for n in needed if n not in given]
        extra = [n for n in given if n not in (*needed, *allowed)]
        if missing or extra:
            what = f"needs {', '.join(missing)}" if missing else f"has no {', '.join(extra)}"
            raise ValueError(f"a {kind.name} scope {what}")
        self.fields: dict[str, Any] = {**given, "name_hint": name_hint, "attrs": attrs, "span": span}

    def finish(self, block: list[s.Stmt]) -> s.ScopeStmt:
        """Close the scope."""
        make: Any = self.cls
        made: s.ScopeStmt = make(**self.fields, body=s.SeqStmts(tuple(block), self.span))
        self._result = made
        return made
