"""Interpreter of host functions: statements, calls, submissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import ArgDirection, FunctionType, ParamDirection
from ...ir.program import Function
from ...ir.types import ScalarType, TensorType
from ..findings import DeviceError, Site
from ..machine.bind import BindError
from .ops import HOST_OPS
from .program import KERNELS, HostProgram
from .scalars import converted, evaluate
from .values import INVALID, HostTensor, TaskId, storage

if TYPE_CHECKING:
    from .session import Session

Env = dict[e.Var, Any]
_MOST_BLOCKS = 1 << 16
_MOST_CALLS = 32
_DEFAULT = {
    ParamDirection.In: ArgDirection.Input,
    ParamDirection.Out: ArgDirection.OutputExisting,
    ParamDirection.InOut: ArgDirection.InOut,
}


class _Return(Exception):
    def __init__(self, values: list[Any]) -> None:
        self.values = values


class _Leave(Exception):
    """break or continue."""

    def __init__(self, again: bool) -> None:
        self.again = again


class Interpreter:
    """Executes host functions; tasks go to the session."""

    def __init__(self, program: HostProgram, session: Session) -> None:
        self.program, self.session = program, session
        self.env: Env = {}
        self.symbols: dict[str, int] = {}
        self.func: Function = program.entry
        self.node: Any = None
        self.rounds = self.depth = 0

    # ---- functions

    def call(self, func: Function, args: Sequence[Any]) -> Any:
        """Run a host function: None, one value, or a list of values."""
        if self.depth >= _MOST_CALLS:
            self.fail(f"calls of host functions are nested deeper than {_MOST_CALLS}; does {func.name} call itself?")
        saved = self.env, self.func
        self.env, self.func = {}, func
        self.depth += 1
        if len(args) != len(func.params):
            self.fail(f"{func.name} takes {len(func.params)} argument(s), the call has {len(args)}")
        for param, value in zip(func.params, args, strict=True):
            self.env[param] = value
            self._bind_symbols(param, value)
        try:
            scoped = func.func_type is FunctionType.Orchestration and func.attrs.get("auto_scope", True)
            outermost = not self.session.rings.scopes
            if scoped or outermost:
                self.session.rings.open(False, self.site(func), implicit=not scoped)
            try:
                self.run(func.body)
                values: list[Any] = []
            except _Return as done:
                values = done.values
            if scoped or outermost:
                self.session.rings.close()
        finally:
            self.env, self.func = saved
            self.depth -= 1
        return None if not values else values[0] if len(values) == 1 else values

    def _bind_symbols(self, param: e.Var, value: Any) -> None:
        if not isinstance(param.type, TensorType) or not isinstance(value, HostTensor):
            return
        if len(param.type.shape) != len(value.shape):
            self.fail(f"{param.name_hint} has rank {len(param.type.shape)}, the argument has rank {len(value.shape)}")
        for dim, n in zip(param.type.shape, value.shape, strict=True):
            if isinstance(dim, e.Var) and dim not in self.env:
                self.env[dim] = n
                self.symbols.setdefault(dim.name_hint, n)

    def fail(self, message: str) -> NoReturn:
        """Refuse the host program at the current node."""
        line = self.site(self.node).line or self.site(self.func).line
        raise DeviceError(f"host function {self.func.name}: {message}", file=self.program.file, line=line or None)

    def site(self, node: Any, op: str = "") -> Site:
        """The place of a node of the host program."""
        span = getattr(node, "span", None)
        valid = span is not None and span.is_valid()
        return Site(
            "", op or type(node).__name__, self.program.file, span.begin_line if valid and span else 0, None, "host"
        )

    # ---- statements

    def run(self, stmt: s.Stmt) -> None:
        """Execute one statement."""
        handler = _STATEMENTS.get(type(stmt))
        if not isinstance(stmt, s.SeqStmts):
            self.node = stmt
        if handler is None:
            self.fail(f"the device cannot execute a {type(stmt).__name__} on the host")
        handler(self, stmt)

    def _seq(self, stmt: s.SeqStmts) -> None:
        for item in stmt.stmts:
            self.run(item)

    def _assign(self, stmt: s.AssignStmt) -> None:
        self.env[stmt.var] = self.value(stmt.value)

    def _eval(self, stmt: s.EvalStmt) -> None:
        self.value(stmt.expr)

    def _return(self, stmt: s.ReturnStmt) -> None:
        raise _Return([self.value(v) for v in stmt.value])

    def _if(self, stmt: s.IfStmt) -> None:
        body = stmt.then_body if self.value(stmt.condition) else stmt.else_body
        values = self._body(body) if body is not None else []
        self._give(stmt.return_vars, values)

    def _body(self, body: s.Stmt) -> list[Any]:
        """Run a body; gives the values of its yield."""
        self._yielded: list[Any] = []
        self.run(body)
        values, self._yielded = self._yielded, []
        return values

    def _yield(self, stmt: s.YieldStmt) -> None:
        self._yielded = [self.value(v) for v in stmt.value]

    def _give(self, names: Sequence[e.Var], values: Sequence[Any]) -> None:
        if len(values) < len(names):
            self.fail(f"a body yields {len(values)} value(s) where {len(names)} are taken")
        for name, value in zip(names, values, strict=False):
            self.env[name] = value

    def _for(self, stmt: s.ForStmt) -> None:
        start, stop, step = (self.whole(x) for x in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            self.fail("the step of a loop is 0")
        self._count(max(-(-(stop - start) // step), 0))
        carried = [self.value(a.initValue) for a in stmt.iter_args]
        for i in range(start, stop, step):
            self.env[stmt.loop_var] = i
            done, carried = self._round(stmt.iter_args, stmt.body, carried)
            if done:
                break
        self._give(stmt.return_vars, carried)

    def _count(self, rounds: int) -> None:
        """Count rounds of loops; too many are taken for endless."""
        self.rounds += rounds
        limit = self.session.run.settings.while_limit
        if self.rounds > limit:
            self.fail(f"a loop has made {limit} rounds and does not end; raise while_limit if it should")

    def _round(self, names: Sequence[e.IterArg], body: s.Stmt, carried: list[Any]) -> tuple[bool, list[Any]]:
        self._give(names, carried)
        try:
            values = self._body(body)
        except _Leave as leave:
            return not leave.again, [self.env[n] for n in names]
        return False, values if names else carried

    def _while(self, stmt: s.WhileStmt) -> None:
        carried = [self.value(a.initValue) for a in stmt.iter_args]
        while True:
            self._give(stmt.iter_args, carried)
            if not self.value(stmt.condition):
                break
            self._count(1)
            done, carried = self._round(stmt.iter_args, stmt.body, carried)
            if done:
                break
        self._give(stmt.return_vars, carried)

    def _break(self, stmt: s.BreakStmt) -> None:
        raise _Leave(again=False)

    def _continue(self, stmt: s.ContinueStmt) -> None:
        raise _Leave(again=True)

    def _scope(self, stmt: s.RuntimeScopeStmt) -> None:
        rings = self.session.rings
        rings.open(stmt.manual, self.site(stmt, "scope"))
        self.run(stmt.body)
        rings.close()

    # ---- expressions

    def value(self, x: e.Expr) -> Any:
        """The value of an expression."""
        if isinstance(x, e.Var):
            return self._variable(x)
        if isinstance(x, e.Call):
            self.node = x
            return self._call(x)
        if isinstance(x, e.Submit):
            self.node = x
            return self._submit(x)
        if isinstance(x, e.MakeTuple):
            return tuple(self.value(v) for v in x.elements)
        if isinstance(x, e.TupleGetItemExpr):
            return self._item(x)
        try:
            return evaluate(x, self.value)
        except BindError as exc:
            self.fail(str(exc))

    def _variable(self, x: e.Var) -> Any:
        if x in self.env:
            return self.env[x]
        if x.name_hint in self.symbols:
            return self.symbols[x.name_hint]
        self.fail(f"{x.name_hint!r} is used but has no value")

    def _item(self, x: e.TupleGetItemExpr) -> Any:
        whole = self.value(x.tuple)
        if not isinstance(whole, (tuple, list)):
            whole = (whole,)
        if x.index >= len(whole):
            self.fail(f"item {x.index} of a tuple of {len(whole)}")
        return whole[x.index]

    def _call(self, x: e.Call) -> Any:
        if isinstance(x.op, e.GlobalVar):
            return self._call_function(x, [self.value(a) for a in x.args])
        handler = HOST_OPS.get(x.op.name)
        if handler is None:
            self.fail(
                f"the host cannot compute {x.op.name}; put it into a device region (pl.at) or use one of "
                f"{', '.join(sorted(HOST_OPS))}"
            )
        try:
            return handler(self, x)
        except (BindError, ValueError, IndexError, OverflowError, MemoryError) as exc:
            # numpy refuses what only the extents and numbers of this run show: shapes that do not broadcast, sizes
            self.node = x
            self.fail(f"{x.op.name}: {exc}")

    def _call_function(self, x: e.Call, args: list[Any]) -> Any:
        func = self.program.functions.get(x.op.name)
        if func is None:
            self.fail(f"calls {x.op.name!r}, which the program does not define")
        if func.func_type in KERNELS or func.func_type in (FunctionType.Group, FunctionType.Spmd):
            blocks = self._blocks(x.attrs.get("core_num"))
            return self._launch(func, x, args, blocks, self._edges(x.attrs))[0]
        return self.call(func, args)

    def _submit(self, x: e.Submit) -> Any:
        func = self.program.functions.get(x.op.name)
        if func is None:
            self.fail(f"submits {x.op.name!r}, which the program does not define")
        if x.predicate is not None and not self.value(x.predicate):
            return self._skipped(func, [self.value(a) for a in x.args])
        deps = [n for d in x.deps for n in self.task_numbers(self.value(d))]
        args = [self.value(a) for a in x.args]
        blocks = self._blocks(x.core_num if x.core_num is not None else x.attrs.get("core_num"))
        result, task = self._launch(func, x, args, blocks, [*deps, *self._edges(x.attrs)])
        results = result if isinstance(result, (tuple, list)) else () if result is None else (result,)
        return (*results, TaskId(task))

    def _skipped(self, func: Function, args: list[Any]) -> Any:
        from .launch import results_of

        return (*results_of(self, func, args, None), INVALID)

    def task_numbers(self, value: Any) -> list[int]:
        """Task numbers in a dependency: an id, None, or an array of ids."""
        if isinstance(value, TaskId):
            return [] if value.number is None else [value.number]
        if isinstance(value, (list, tuple)):
            return [n for v in value for n in self.task_numbers(v)]
        if isinstance(value, HostTensor):
            return [] if value.task is None else [value.task]
        if value is None or value == 0:
            return []
        self.fail(f"{value!r} is no task id")

    def _edges(self, attrs: dict[str, Any]) -> list[int]:
        found: list[int] = []
        for key in ("compiler_manual_dep_edges", "manual_dep_edges"):
            for v in attrs.get(key) or ():
                found += self.task_numbers(self.value(v) if isinstance(v, e.Expr) else v)
        return found

    def _blocks(self, given: Any) -> int | None:
        if given is None:
            return None
        blocks = self.whole(given) if isinstance(given, e.Expr) else self._whole(given)
        if not 1 <= blocks <= _MOST_BLOCKS:
            self.fail(f"core_num must be 1..{_MOST_BLOCKS}, got {blocks}")
        return blocks

    def _launch(self, func: Function, x: Any, args: list[Any], blocks: int | None, deps: list[int]) -> tuple[Any, int]:
        from .launch import launch

        directions = list(x.attrs.get("arg_directions") or [])
        if not directions:
            directions = [_DEFAULT[d] if isinstance(p.type, TensorType) else ArgDirection.Scalar for p, d in func.pairs]
        return launch(self, func, x, args, directions, blocks, deps)

    # ---- help for operations

    def tensor(self, x: e.Expr) -> HostTensor:
        """The value of an operand that must be a tensor."""
        found = self.value(x)
        if not isinstance(found, HostTensor):
            self.fail(f"expected a tensor, got {type(found).__name__}")
        return found

    def ints(self, x: e.Expr) -> tuple[int, ...]:
        """The value of a shape or offset operand."""
        found = self.value(x)
        return tuple(self._whole(v) for v in (found if isinstance(found, (tuple, list)) else (found,)))

    def number(self, x: e.Expr) -> int | float | bool:
        """The value of an operand that must be a number."""
        found = self.value(x)
        if not isinstance(found, (int, float)):
            self.fail(f"expected a number, got {type(found).__name__}")
        return found

    def whole(self, x: e.Expr) -> int:
        """The value of an operand that must be a whole number."""
        return self._whole(self.value(x))

    def _whole(self, found: Any) -> int:
        if isinstance(found, float) and found.is_integer():
            return int(found)
        if not isinstance(found, int):
            self.fail(f"expected a whole number, got {found if isinstance(found, float) else type(found).__name__}")
        return int(found)


def argument(value: Any, param: e.Var) -> Any:
    """A scalar argument as its parameter's type.

    Raises:
        BindError: it is no number.
    """
    if isinstance(param.type, ScalarType) and not isinstance(value, TaskId):
        if not isinstance(value, (int, float)):
            raise BindError(f"argument {param.name_hint!r} must be a number, got {type(value).__name__}")
        return converted(value, param.type.dtype)
    return value


_STATEMENTS: dict[type, Any] = {
    s.SeqStmts: Interpreter._seq,
    s.AssignStmt: Interpreter._assign,
    s.EvalStmt: Interpreter._eval,
    s.ReturnStmt: Interpreter._return,
    s.YieldStmt: Interpreter._yield,
    s.IfStmt: Interpreter._if,
    s.ForStmt: Interpreter._for,
    s.WhileStmt: Interpreter._while,
    s.BreakStmt: Interpreter._break,
    s.ContinueStmt: Interpreter._continue,
    s.RuntimeScopeStmt: Interpreter._scope,
}
__all__ = ["Interpreter", "argument", "storage"]
