"""Strides of the windows that host functions pass to kernels."""

from __future__ import annotations

from dataclasses import replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType, is_incore_type
from ..ir.op_table import find_op, infer_type
from ..ir.program import Function, Program
from ..ir.types import TensorType, TensorView, Type
from ..ir.visitor import IRMutator, calls_in, deep_clone, replace_call, replace_submit
from ._assemble_fusion import fusions
from ._roots import last_values
from ._util import PassError, is_call
from .integers import key_of
from .materialize_tensor_strides import strides_of

Strides = tuple[e.Expr, ...] | None
"""Strides in elements; None for a packed tensor."""
_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)


def with_argument_strides(program: Program) -> Program:
    """The program with strides in the types of kernel parameters that get windows."""
    if not _has_windows(program):
        return program
    return _Specialiser(program).program()


def _has_windows(program: Program) -> bool:
    for func in program.functions.values():
        if func.func_type is FunctionType.Orchestration:
            for call in calls_in(func.body):
                if call.op.name in ("tensor.slice", "tensor.assemble"):
                    return True
    return False


class _Specialiser:
    """Walks from host functions to kernels; `variants` holds one function per name and strides."""

    def __init__(self, program: Program) -> None:
        self.source = program
        self.variants: dict[tuple[str, object], Function] = {}
        self.named: dict[str, list[object]] = {}
        self.taken = {f.name for f in program.functions.values()}
        self.called: set[str] = set()

    def program(self) -> Program:
        """All functions: rewritten hosts, one variant per strides of what they call, and what nobody calls."""
        hosts = [f for f in self.source.functions.values() if f.func_type is FunctionType.Orchestration]
        made = [self.host(f) for f in hosts]
        rest = [
            f
            for f in self.source.functions.values()
            if f.func_type is not FunctionType.Orchestration and f.name not in self.called
        ]
        return self.source.with_functions([*made, *self.variants.values(), *rest])

    def host(self, func: Function) -> Function:
        body = _Caller(self, func).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)

    def variant(self, name: str, args: list[Strides], like: e.IRNode) -> str | None:
        """The name of the callee for arguments with these strides; None for an unknown function."""
        func = self.source.get_function(name)
        if func is None or not (is_incore_type(func.func_type) or func.func_type in _WRAPPERS):
            return None
        self.called.add(name)
        wanted = [_for_param(p, a) for p, a in zip(func.params, args, strict=False)]
        key = tuple(None if w is None else tuple(_key(x) for x in w) for w in wanted)
        found = self.variants.get((name, key))
        if found is None:
            found = self.make(func, wanted, self.new_name(name, key))
            self.variants[(name, key)] = found
        return found.name

    def new_name(self, name: str, key: object) -> str:
        known = self.named.setdefault(name, [])
        known.append(key)
        if len(known) == 1:
            return name
        n = len(known) - 1
        made = f"{name}_s{n}"
        while made in self.taken:
            n += 1
            made = f"{name}_s{n}"
        self.taken.add(made)
        return made

    def make(self, func: Function, wanted: list[Strides], name: str) -> Function:
        if all(w is None for w in wanted):
            made = func if name == func.name else _renamed(func, name)
        else:
            made = _retyped(func, wanted, name)
        if func.func_type in _WRAPPERS:
            body = _Caller(self, made).visit_stmt(made.body)
            made = made if body is made.body else made.with_(body=body)
        return made


def _for_param(param: e.Var, strides: Strides) -> Strides:
    """What the parameter's type must say: nothing for scalars, packed tensors and types that say it already."""
    if strides is None or not isinstance(param.type, TensorType) or len(strides) != len(param.type.shape):
        return None
    view = param.type.tensor_view
    return None if view is not None and view.stride else strides


def _renamed(func: Function, name: str) -> Function:
    pairs: dict[e.Var, e.Expr] = {p: e.Var(p.name_hint, p.type, p.span) for p in func.params}
    body = deep_clone(func.body, pairs)
    params = [(pairs[p], d) for p, d in func.pairs]
    return func.with_(name=name, params=params, body=body)


def _retyped(func: Function, wanted: list[Strides], name: str) -> Function:
    mutator = _Retyper()
    params = []
    for (param, direction), strides in zip(func.pairs, wanted, strict=True):
        if strides is not None:
            assert isinstance(param.type, TensorType)
            view = param.type.tensor_view or TensorView()
            made = replace(view, stride=strides)
            fresh = e.Var(param.name_hint, replace(param.type, tensor_view=made), param.span)
            mutator.var_map[param] = fresh
            param = fresh
        params.append((param, direction))
    body = mutator.visit_stmt(func.body)
    made_func = func.with_(params=params, body=body)
    return made_func if name == func.name else _renamed(made_func, name)


class _Retyper(IRMutator):
    """Results of stores and loops follow the types of the tensors they write."""

    def visit_call(self, op: e.Call) -> e.Expr:
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        spec = find_op(made.op.name)
        if made is op or spec is None or not isinstance(op.type, TensorType):
            return made
        return replace_call(made, type=infer_type(made.op.name, made.args, made.kwargs, made.span))

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = self.visit_expr(op.value)
        if value is op.value:
            return op
        if isinstance(op.var.type, TensorType) and isinstance(value.type, TensorType) and value.type != op.var.type:
            var = e.Var(op.var.name_hint, value.type, op.var.span)
            self.var_map[op.var] = var
            return replace(op, var=var, value=value)
        return replace(op, var=self.define(op.var), value=value)

    def define(self, var: e.Var) -> e.Var:
        """Carried tensors take the type of their initial value."""
        if isinstance(var, e.IterArg) and var not in self.var_map and isinstance(var.type, TensorType):
            init = self.visit_expr(var.initValue)
            if init is not var.initValue:
                fresh = e.IterArg(var.name_hint, init.type, init, var.span)
                self.var_map[var] = fresh
                return fresh
        return super().define(var)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        made = super().visit_for_stmt(op)
        assert isinstance(made, s.ForStmt)
        return self.results(op, made)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        made = super().visit_while_stmt(op)
        assert isinstance(made, s.WhileStmt)
        return self.results(op, made)

    def results(self, old: s.ForStmt | s.WhileStmt, made: s.ForStmt | s.WhileStmt) -> s.Stmt:
        if made is old:
            return made
        values = last_values(made.body)
        results = []
        for before, var, value in zip(old.return_vars, made.return_vars, values, strict=False):
            if isinstance(var.type, TensorType) and isinstance(value.type, TensorType) and var.type != value.type:
                var = e.Var(var.name_hint, value.type, var.span)
                self.var_map[before] = var
            results.append(var)
        return replace(made, return_vars=tuple(results))


class _Caller(IRMutator):
    """Follows strides through one host function or wrapper and redirects its calls."""

    def __init__(self, specialiser: _Specialiser, func: Function) -> None:
        super().__init__()
        self.specialiser = specialiser
        self.strides: dict[e.Var, Strides] = {p: _stated(p.type) for p in func.params}
        self.unclear: set[e.Var] = set()
        self.place: e.IRNode = func
        host = func.func_type is FunctionType.Orchestration
        found = fusions(func, specialiser.source) if host else []
        self.windows = {f.create.var: f for f in found}

    def of(self, value: e.Expr) -> Strides:
        return self.strides.get(value) if isinstance(value, e.Var) else None

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        self.place = stmt
        return super().visit_stmt(stmt)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        made = super().visit_assign_stmt(op)
        if isinstance(op.var.type, TensorType):
            self.strides[op.var] = self.result(op)
            if isinstance(op.value, e.Var) and op.value in self.unclear:
                self.unclear.add(op.var)
        return made

    def result(self, op: s.AssignStmt) -> Strides:
        value = op.value
        found = self.windows.get(op.var)
        if found is not None:
            assert isinstance(op.var.type, TensorType)
            return _window_strides(self.full(found.target), op.var.type)
        if is_call(value, "tensor.slice") and isinstance(value, e.Call):
            assert isinstance(op.var.type, TensorType)
            return _window_strides(self.full(value.args[0]), op.var.type, value)
        if is_call(value, "tensor.assemble") and isinstance(value, e.Call):
            return self.of(value.args[0])
        if isinstance(value, e.Call) and isinstance(value.op, e.GlobalVar):
            return self.call_result(value)
        if isinstance(value, e.TupleGetItemExpr):
            return None
        return self.of(value)

    def call_result(self, call: e.Call) -> Strides:
        """The strides of the only argument of the result's shape that is a window."""
        if not isinstance(call.type, TensorType):
            return None
        shape = [_key(x) for x in call.type.shape]
        same = [
            self.of(a) for a in call.args if isinstance(a.type, TensorType) and [_key(x) for x in a.type.shape] == shape
        ]
        return same[-1] if same else None

    def full(self, value: e.Expr) -> tuple[e.Expr, ...]:
        """Strides of a tensor, those of a packed one when nothing is known."""
        found = self.of(value)
        assert isinstance(value.type, TensorType)
        return found if found is not None else strides_of(value.type.shape)

    def carried(self, loop: s.ForStmt | s.WhileStmt) -> None:
        for arg in loop.iter_args:
            self.strides[arg] = self.of(arg.initValue)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        self.carried(op)
        made = super().visit_for_stmt(op)
        self.leave(op)
        return made

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        self.carried(op)
        made = super().visit_while_stmt(op)
        self.leave(op)
        return made

    def leave(self, op: s.ForStmt | s.WhileStmt) -> None:
        for var, value in zip(op.return_vars, last_values(op.body), strict=False):
            self.strides[var] = self.of(value)

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        made = super().visit_if_stmt(op)
        pairs = zip(op.return_vars, last_values(op.then_body), last_values(op.else_body), strict=False)
        for var, a, b in pairs:
            if isinstance(var.type, TensorType):
                self.strides[var] = self.of(a)
                if not _same(self.of(a), self.of(b), var.type):
                    self.unclear.add(var)
        return made

    def visit_call(self, op: e.Call) -> e.Expr:
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        name = self.target(made)
        return made if name is None or name == made.op.name else replace_call(made, op=e.GlobalVar(name))

    def visit_submit(self, op: e.Submit) -> e.Expr:
        made = super().visit_submit(op)
        assert isinstance(made, e.Submit)
        name = self.target(made)
        return made if name is None or name == made.op.name else replace_submit(made, op=e.GlobalVar(name))

    def target(self, call: e.Call | e.Submit) -> str | None:
        if not isinstance(call.op, e.GlobalVar):
            return None
        for arg in call.args:
            if isinstance(arg, e.Var) and arg in self.unclear:
                raise PassError(
                    f"'{arg.name_hint}' is a window of tensors of different strides, depending on a branch; call the "
                    "kernel in the branches, or copy the window into a tensor of its own",
                    call,
                    self.place,
                )
        return self.specialiser.variant(call.op.name, [self.of(a) for a in call.args], call)


def _stated(type_: Type) -> Strides:
    if isinstance(type_, TensorType) and type_.tensor_view is not None and type_.tensor_view.stride:
        return type_.tensor_view.stride
    return None


def _window_strides(parent: tuple[e.Expr, ...], type_: TensorType, call: e.Call | None = None) -> Strides:
    """Strides of a slice: those of the parent, without the axes that the slice drops."""
    kept = list(parent)
    if call is not None and len(call.args) > 4 and isinstance(call.args[4], e.MakeTuple):
        window = call.args[1]
        assert isinstance(window, e.MakeTuple)
        kept = kept[len(kept) - len(window.elements) :]
        gone = {e.const_value(x) for x in call.args[4].elements}
        kept = [k for i, k in enumerate(kept) if i not in gone]
    return tuple(kept[len(kept) - len(type_.shape) :])


def _same(a: Strides, b: Strides, type_: TensorType) -> bool:
    first = a if a is not None else strides_of(type_.shape)
    second = b if b is not None else strides_of(type_.shape)
    return [_key(x) for x in first] == [_key(x) for x in second]


def _key(x: e.Expr) -> object:
    value = e.const_value(x)
    return key_of(x) if value is None else value
