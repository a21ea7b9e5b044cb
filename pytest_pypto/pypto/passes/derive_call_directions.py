"""DeriveCallDirections: which way data flows at every call of a kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ArgDirection, ForKind, FunctionType, ParamDirection, is_incore_type
from ..ir.program import Function, Program
from ..ir.structural import exprs_equal
from ..ir.types import ArrayType, ScalarType, TensorType
from ..ir.visitor import IRMutator, calls_in, replace_call, replace_submit
from ._anti_dependencies import with_ordered_writers
from ._outline import strongest
from ._roots import last_values
from ._util import PassError, is_call
from .base import Pass
from .properties import SPLIT_ORCH

_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)
_DIRECT = {ParamDirection.In: ArgDirection.Input, ParamDirection.InOut: ArgDirection.InOut}


@dataclass(frozen=True)
class DeriveCallDirections(Pass):
    """Stamps `arg_directions` on every call and submit of a function of the program.

    Wrappers (Group, Spmd) first take the strongest direction of the kernels they call. Then, per argument: scalars are
    `scalar`, In is `input`, InOut is `inout`; Out is `inout` inside a sequential loop, for an argument whose buffer is
    not known for certain, after an earlier writer of the same buffer in this or an enclosing statement list, and for
    a buffer that comes from an InOut parameter; otherwise `output_existing`. Arguments marked without ordering are
    `no_dep`. Directions that are already there stay. An input, and a later write of the same tensor that nothing else
    keeps behind it, are `inout` both: the runtime remembers writers only.

    Raises (PassError): a call with too few or too many arguments.
    """

    name = "DeriveCallDirections"
    requires = frozenset({SPLIT_ORCH})
    produces = frozenset({"CallDirectionsResolved"})

    def apply(self, program: Program) -> Program:
        """The program with directions at every call."""
        program = _effective_wrappers(program)
        return program.with_functions([_directed(f, program) for f in program.functions.values()])


def _directed(func: Function, program: Program) -> Function:
    """A function with directions; those of a host function also keep writers behind readers."""
    given = any("arg_directions" in c.attrs for c in calls_in(func.body))
    made = _Deriver(func, program).function()
    host = func.func_type not in _WRAPPERS and not is_incore_type(func.func_type)
    return with_ordered_writers(made, program) if host and not given else made


def _effective_wrappers(program: Program) -> Program:
    """Directions of wrapper parameters, raised to those of the kernels they are passed to, until nothing changes."""
    functions = {f.name: f for f in program.functions.values()}
    changed = True
    while changed:
        changed = False
        for func in list(functions.values()):
            if func.func_type in _WRAPPERS:
                made = _raised(func, functions)
                changed |= made is not func
                functions[func.name] = made
    return program.with_functions(list(functions.values()))


def _raised(func: Function, functions: dict[str, Function]) -> Function:
    found = dict(func.pairs)
    for call in calls_in(func.body):
        callee = functions.get(call.op.name) if isinstance(call.op, e.GlobalVar) else None
        if callee is not None:
            for arg, direction in zip(call.args, callee.param_directions, strict=False):
                if isinstance(arg, e.Var) and arg in found and isinstance(arg.type, TensorType):
                    found[arg] = strongest(found[arg], direction)
    pairs = tuple((v, found[v]) for v in func.params)
    return func if pairs == func.pairs else func.with_(params=pairs)


Roots = frozenset[e.Var]


class _Deriver(IRMutator):
    """Walks one function; `earlier` are the buffers that preceding statements wrote."""

    def __init__(self, func: Function, program: Program) -> None:
        super().__init__()
        self.func = func
        self.program = program
        self.roots: dict[e.Var, Roots] = {p: frozenset({p}) for p in func.params}
        self.parts: dict[e.Var, list[Roots]] = {}
        self.inout = {p for p, d in func.pairs if d is ParamDirection.InOut}
        self.sequential = False
        self.earlier: set[e.Var] = set()
        self.writes: set[e.Var] = set()

    def function(self) -> Function:
        """The function with stamped calls."""
        if not any(isinstance(c.op, e.GlobalVar) for c in calls_in(self.func.body)):
            return self.func
        body = self.visit_stmt(self.func.body)
        return self.func if body is self.func.body else self.func.with_(body=body)

    # roots -----------------------------------------------------------------------------------------------------

    def of(self, value: e.Expr) -> Roots:
        """The buffers that a value may be."""
        if isinstance(value, e.Var):
            return self.roots.get(value, frozenset())
        if isinstance(value, e.TupleGetItemExpr) and isinstance(value.tuple, e.Var):
            parts = self.parts.get(value.tuple, [])
            return parts[value.index] if value.index < len(parts) else frozenset()
        if is_call(value, "tensor.assemble", "tile.store") and isinstance(value, e.Call):
            return self.of(value.args[0 if value.op.name == "tensor.assemble" else 2])
        return frozenset()

    def results(self, call: e.Call | e.Submit) -> list[Roots]:
        """Buffers of the values that a kernel gives back: its Out and InOut arguments in order."""
        callee = self.program.get_function(call.op.name)
        if callee is None:
            return []
        pairs = zip(call.args, callee.param_directions, strict=False)
        return [self.of(a) for a, d in pairs if d is not ParamDirection.In]

    def single_result(self, call: e.Call, type_: object) -> Roots:
        found = self.results(call)
        if len(found) <= 1:
            return found[0] if found else frozenset()
        callee = self.program.get_function(call.op.name)
        assert callee is not None
        outs = [p for p, d in callee.pairs if d is not ParamDirection.In]
        same = [r for p, r in zip(outs, found, strict=True) if _alike(p.type, type_)]
        if len(same) == 1:
            return same[0]
        return frozenset().union(*found)

    def define_roots(self, var: e.Var, value: e.Expr) -> None:
        if isinstance(value, (e.Call, e.Submit)) and isinstance(value.op, e.GlobalVar):
            self.parts[var] = self.results(value)
            self.roots[var] = self.single_result(value, var.type) if isinstance(value, e.Call) else frozenset()
        elif is_call(value, "tensor.create", "tensor.slice", "tensor.full"):
            self.roots[var] = frozenset({var})
        elif isinstance(var.type, TensorType):
            found = self.of(value)
            self.roots[var] = found if found else frozenset({var})

    # calls -----------------------------------------------------------------------------------------------------

    def visit_call(self, op: e.Call) -> e.Expr:
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        if not isinstance(made.op, e.GlobalVar):
            return made
        directions = self.directions(made)
        return made if directions is None else replace_call(made, attrs=made.attrs | {"arg_directions": directions})

    def visit_submit(self, op: e.Submit) -> e.Expr:
        made = super().visit_submit(op)
        assert isinstance(made, e.Submit)
        directions = self.directions(made)
        return made if directions is None else replace_submit(made, attrs=made.attrs | {"arg_directions": directions})

    def directions(self, call: e.Call | e.Submit) -> list[ArgDirection] | None:
        """Directions of the arguments; None when they are there already."""
        callee = self.program.get_function(call.op.name)
        if callee is None:
            return None
        if len(call.args) != len(callee.params):
            raise PassError(
                f"'{callee.name}' takes {len(callee.params)} argument(s), got {len(call.args)}", call, self.func
            )
        found = [self.direction(a, p, d) for a, (p, d) in zip(call.args, callee.pairs, strict=True)]
        for arg, direction in zip(call.args, callee.param_directions, strict=True):
            if direction is not ParamDirection.In:
                self.writes |= self.of(arg)
        self.earlier |= self.writes
        for i in call.attrs.get("arg_direction_overrides", ()):
            found[i] = ArgDirection.NoDep
        return None if "arg_directions" in call.attrs else found

    def direction(self, arg: e.Expr, param: e.Var, declared: ParamDirection) -> ArgDirection:
        if isinstance(param.type, (ScalarType, ArrayType)):
            return ArgDirection.Scalar
        if declared in _DIRECT:
            return _DIRECT[declared]
        roots = self.of(arg)
        if self.sequential or len(roots) != 1 or roots & self.earlier or roots & self.inout:
            return ArgDirection.InOut
        return ArgDirection.OutputExisting

    # statements ------------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        made = super().visit_assign_stmt(op)
        self.define_roots(op.var, op.value)
        return made

    def inner(self, body: s.Stmt, sequential: bool) -> tuple[s.Stmt, set[e.Var]]:
        """A body, and what it writes; its own writes are not visible outside before it ends."""
        kept = (self.sequential, self.earlier, self.writes)
        self.sequential = self.sequential or sequential
        self.earlier, self.writes = set(self.earlier), set()
        made = self.visit_stmt(body)
        writes = self.writes
        self.sequential, self.earlier, self.writes = kept
        return made, writes

    def wrote(self, found: Iterable[e.Var]) -> None:
        self.writes |= set(found)
        self.earlier |= self.writes

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        for arg in op.iter_args:
            self.roots[arg] = self.of(arg.initValue)
        body, writes = self.inner(op.body, op.kind is not ForKind.Parallel)
        self.join(op, _surely_runs(op))
        self.wrote(writes)
        return op if body is op.body else replace(op, body=body)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        for arg in op.iter_args:
            self.roots[arg] = self.of(arg.initValue)
        body, writes = self.inner(op.body, True)
        self.join(op, False)
        self.wrote(writes)
        return op if body is op.body else replace(op, body=body)

    def join(self, loop: s.ForStmt | s.WhileStmt, surely: bool) -> None:
        for var, arg, value in zip(loop.return_vars, loop.iter_args, last_values(loop.body), strict=False):
            self.roots[var] = self.of(value) if surely else self.of(value) | self.of(arg.initValue)

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        then, first = self.inner(op.then_body, False)
        other, second = (None, set[e.Var]()) if op.else_body is None else self.inner(op.else_body, False)
        pairs = zip(op.return_vars, last_values(op.then_body), last_values(op.else_body), strict=False)
        for var, a, b in pairs:
            self.roots[var] = self.of(a) | self.of(b)
        self.wrote(first | second)
        same = then is op.then_body and other is op.else_body
        return op if same else replace(op, then_body=then, else_body=other)


def _alike(a: object, b: object) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype is not b.dtype:
        return False
    return exprs_equal(a.shape, b.shape)


def _surely_runs(loop: s.ForStmt) -> bool:
    bounds = e.static_dims((loop.start, loop.stop, loop.step))
    return bounds is not None and bounds[2] != 0 and len(range(*bounds)) > 0
