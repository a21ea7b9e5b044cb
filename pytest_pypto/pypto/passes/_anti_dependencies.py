"""Writers after readers and writers: what a host program does to one tensor stays in the order of the program.

The runtime puts a task behind the earlier writers of a tensor only when the task takes it as `input` or `inout`, and it
remembers no readers. So a task that reads a tensor and a later one that writes it, or two that write it through
different windows, may run in either order when there is no other path between them. A writer that is `inout` waits for
the writers before it, and a reader that is `inout` is remembered like one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.enums import ArgDirection, ForKind
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import IRMutator, exprs_of, replace_call, replace_submit, walk_exprs
from ._roots import last_values, returned_params
from ._util import is_call

_READS = (ArgDirection.Input, ArgDirection.InOut)
_WRITES = (ArgDirection.InOut, ArgDirection.OutputExisting, ArgDirection.Output)
_DEEP = 3
"""Loops nested deeper are looked at for one turn only."""


def with_ordered_writers(func: Function, program: Program) -> Function:
    """The host function in which readers and writers that nothing orders are `inout`."""
    finder = _Finder(func, program)
    finder.body(func.body, 0)
    if not finder.unordered:
        return func
    return func.with_(body=_Promoter(finder.unordered).visit_stmt(func.body))


@dataclass(eq=False)
class _Task:
    """One run of a call. `after` has a bit for the number of every task that surely ends before it starts."""

    call: e.Call | e.Submit
    number: int
    after: int = 0

    def follows(self, other: _Task) -> bool:
        """True when the other task surely ends first."""
        return bool(self.after >> other.number & 1)


@dataclass(frozen=True, eq=False)
class _Use:
    """Argument `index` of a task; `roots` are the tensors and windows that it may be, `turn` numbers the loop turn."""

    task: _Task
    index: int
    roots: frozenset[e.Var]
    direction: ArgDirection
    turn: int

    @property
    def writes(self) -> bool:
        """The task writes it."""
        return self.direction in _WRITES


class _Finder:
    """Follows the host program; loops are run twice, so that the end of one turn meets the start of the next."""

    def __init__(self, func: Function, program: Program) -> None:
        self.program = program
        self.roots: dict[e.Var, frozenset[e.Var]] = {}
        self.parts: dict[e.Var, list[frozenset[e.Var]]] = {}
        self.window: dict[e.Var, tuple[e.Var | None, e.Call]] = {}
        self.writers: dict[e.Var, list[_Task]] = defaultdict(list)
        self.users: dict[e.Var, list[_Use]] = defaultdict(list)
        self.count = 0
        self.turn = 0
        self.carries: list[e.IterArg] = []
        self.task_of: dict[e.Var, _Task] = {}
        self.unordered: dict[e.Call | e.Submit, set[int]] = defaultdict(set)

    # what a value is -------------------------------------------------------------------------------------------

    def of(self, value: e.Expr) -> frozenset[e.Var]:
        """The tensors and windows that a value may be; itself when nothing else is known."""
        if isinstance(value, e.TupleGetItemExpr) and isinstance(value.tuple, e.Var):
            parts = self.parts.get(value.tuple, [])
            return parts[value.index] if value.index < len(parts) else frozenset()
        if is_call(value, "tensor.assemble") and isinstance(value, e.Call):
            return self.of(value.args[0])
        if isinstance(value, (e.Call, e.Submit)) and isinstance(value.op, e.GlobalVar):
            parts = self.results(value)
            return parts[0] if len(parts) == 1 else frozenset()
        return self.roots.get(value, frozenset({value})) if isinstance(value, e.Var) else frozenset()

    def results(self, call: e.Call | e.Submit) -> list[frozenset[e.Var]]:
        callee = self.program.get_function(call.op.name)
        found = [] if callee is None else returned_params(callee, self.program)
        return [frozenset() if i is None or i >= len(call.args) else self.of(call.args[i]) for i in found]

    def bind(self, var: e.Var, roots: frozenset[e.Var]) -> None:
        """A name gets a value; what is known of its last value is forgotten."""
        self.writers.pop(var, None)
        self.roots[var] = roots if roots else frozenset({var})

    def buffer(self, root: e.Var) -> e.Var:
        """What a window lies in, as far as that is known for certain."""
        while root in self.window and self.window[root][0] is not None:
            root = self.window[root][0]  # type: ignore[assignment]
        return root

    def buffers(self, roots: frozenset[e.Var]) -> set[e.Var]:
        return {self.buffer(r) for r in roots}

    # statements ------------------------------------------------------------------------------------------------

    def body(self, body: s.Stmt | None, depth: int) -> None:
        for stmt in s.stmts_of(body):
            if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                self.loop(stmt, depth)
            elif isinstance(stmt, s.IfStmt):
                self.branches(stmt, depth)
            elif isinstance(stmt, s.RuntimeScopeStmt) and stmt.manual:
                continue  # the author orders these tasks
            elif isinstance(stmt, s.ScopeStmt):
                self.body(stmt.body, depth)
            else:
                self.plain(stmt)

    def loop(self, stmt: s.ForStmt | s.WhileStmt, depth: int) -> None:
        before = self.snapshot()
        once = depth >= _DEEP or (isinstance(stmt, s.ForStmt) and stmt.kind is ForKind.Parallel)
        carried = [self.of(a.initValue) for a in stmt.iter_args]
        self.carries += stmt.iter_args
        for _ in range(1 if once else 2):
            self.turn += 1
            for arg, roots in zip(stmt.iter_args, carried, strict=True):
                self.bind(arg, roots)
            self.body(stmt.body, depth + 1)
            yielded = [self.of(v) for v in last_values(stmt.body)]
            carried = [a | b for a, b in zip(carried, yielded, strict=False)] or carried
        self.turn += 1
        del self.carries[len(self.carries) - len(stmt.iter_args) :]
        for var, roots in zip(stmt.return_vars, carried, strict=False):
            self.bind(var, roots)
        self.join(before)  # the loop may not run

    def branches(self, stmt: s.IfStmt, depth: int) -> None:
        """Either side sees what was before; afterwards both may have been."""
        before = self.snapshot()
        self.body(stmt.then_body, depth)
        values = [self.of(v) for v in last_values(stmt.then_body)]
        then, self.users = self.users, before
        self.body(stmt.else_body, depth)
        others = [self.of(v) for v in last_values(stmt.else_body)]
        for var, a, b in zip(stmt.return_vars, values, others, strict=False):
            self.bind(var, a | b)
        self.join(then)

    def snapshot(self) -> dict[e.Var, list[_Use]]:
        return defaultdict(list, {k: list(v) for k, v in self.users.items()})

    def join(self, other: dict[e.Var, list[_Use]]) -> None:
        for buffer, uses in other.items():
            have = set(self.users[buffer])
            self.users[buffer] += [u for u in uses if u not in have]

    def plain(self, stmt: s.Stmt) -> None:
        for root in exprs_of(stmt):
            for x in walk_exprs(root):
                if isinstance(x, (e.Call, e.Submit)) and isinstance(x.op, e.GlobalVar):
                    task = self.task(x)
                    if isinstance(stmt, s.AssignStmt) and x is root:
                        self.task_of[stmt.var] = task
        if isinstance(stmt, s.AssignStmt):
            self.assign(stmt)

    def assign(self, stmt: s.AssignStmt) -> None:
        value = stmt.value
        if is_call(value, "tensor.create") and not any(stmt.var in self.of(c) for c in self.carries):
            self.users.pop(stmt.var, None)  # every turn of a loop makes another tensor
        if is_call(value, "tensor.slice") and isinstance(value, e.Call):
            parents = self.of(value.args[0])
            self.bind(stmt.var, frozenset({stmt.var}))
            self.window[stmt.var] = (next(iter(parents)) if len(parents) == 1 else None, value)
            return
        if isinstance(value, (e.Call, e.Submit)) and isinstance(value.op, e.GlobalVar):
            self.parts[stmt.var] = self.results(value)
        elif isinstance(value, e.TupleGetItemExpr) and isinstance(value.tuple, e.Var) and value.tuple in self.task_of:
            self.task_of[stmt.var] = self.task_of[value.tuple]
        self.bind(stmt.var, self.of(value))

    # tasks -----------------------------------------------------------------------------------------------------

    def task(self, call: e.Call | e.Submit) -> _Task:
        """Note one task, and the earlier ones that it may overtake."""
        task = _Task(call, self.count)
        self.count += 1
        directions = call.attrs.get("arg_directions", ())
        tensors = [
            (i, a, d)
            for i, (a, d) in enumerate(zip(call.args, directions, strict=False))
            if isinstance(a, e.Var) and isinstance(a.type, TensorType) and d is not ArgDirection.NoDep
        ]
        before = [self.task_of[v] for v in getattr(call, "deps", ()) if isinstance(v, e.Var) and v in self.task_of]
        for _, arg, direction in tensors:
            if direction in _READS:
                before += [t for key in self.keys(arg) for t in self.writers[key]]
        for other in before:
            task.after |= other.after | 1 << other.number
        for i, arg, direction in tensors:
            self.use(_Use(task, i, self.of(arg), direction, self.turn), arg)
        return task

    def keys(self, arg: e.Var) -> list[e.Var]:
        """Names under which the writers of surely the same memory are found."""
        roots = self.of(arg)
        return [arg, *(r for r in roots if r is not arg)] if len(roots) == 1 else [arg]

    def use(self, use: _Use, arg: e.Var) -> None:
        if use.writes:
            waits = self.overtakes(use) or use.direction is ArgDirection.InOut
            for key in self.keys(arg):
                self.writers[key] = [use.task] if waits else [*self.writers[key], use.task]
            (root, *more) = use.roots
            if waits and not more and self.buffer(root) is root and root not in self.window:
                self.users[root] = []  # whoever comes after this one comes after all before it
        for buffer in self.buffers(use.roots):
            self.users[buffer].append(use)

    def overtakes(self, use: _Use) -> bool:
        """Note the earlier uses that a write may overtake; False when there are none."""
        found = False
        for buffer in self.buffers(use.roots):
            for other in self.users[buffer]:
                if other.task is use.task or use.task.follows(other.task):
                    continue
                if other.writes and use.direction is ArgDirection.InOut:
                    continue  # found by the runtime when the two really meet
                if self.apart(other, use):
                    continue
                found = True
                self.unordered[use.task.call].add(use.index)
                if not other.writes:
                    self.unordered[other.task.call].add(other.index)
        return found

    def apart(self, a: _Use, b: _Use) -> bool:
        """Two windows of one tensor that surely share no element; a name means the same in one turn of a loop only."""
        if len(a.roots) != 1 or len(b.roots) != 1:
            return False
        one, two = (self.window.get(next(iter(x.roots))) for x in (a, b))
        if one is None or two is None or one[0] is None or one[0] is not two[0] or one[1] is two[1]:
            return False
        (shape, offset), (other_shape, other_offset) = (_rectangle(x[1]) for x in (one, two))
        for n, o, m, p in zip(shape, offset, other_shape, other_offset, strict=False):
            known = a.turn == b.turn or None not in (e.const_value(o), e.const_value(p))
            if known and (extents.at_most(extents.add(o, n), p) or extents.at_most(extents.add(p, m), o)):
                return True
        return False


def _rectangle(call: e.Call) -> tuple[tuple[e.Expr, ...], tuple[e.Expr, ...]]:
    """Shape and offset of a window."""
    shape, offset = call.args[1:3]
    assert isinstance(shape, e.MakeTuple)
    assert isinstance(offset, e.MakeTuple)
    lead = len(offset.elements) - len(shape.elements)
    return (*[e.index(1)] * lead, *shape.elements), offset.elements


class _Promoter(IRMutator):
    """Makes arguments `inout`."""

    def __init__(self, chosen: dict[e.Call | e.Submit, set[int]]) -> None:
        super().__init__()
        self.chosen = chosen

    def visit_call(self, op: e.Call) -> e.Expr:
        attrs = self.attrs(op)
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        return made if attrs is None else replace_call(made, attrs=attrs)

    def visit_submit(self, op: e.Submit) -> e.Expr:
        attrs = self.attrs(op)
        made = super().visit_submit(op)
        assert isinstance(made, e.Submit)
        return made if attrs is None else replace_submit(made, attrs=attrs)

    def attrs(self, op: e.Call | e.Submit) -> dict[str, object] | None:
        if op not in self.chosen:
            return None
        wanted = self.chosen[op]
        directions = [ArgDirection.InOut if i in wanted else d for i, d in enumerate(op.attrs["arg_directions"])]
        return op.attrs | {"arg_directions": directions}
