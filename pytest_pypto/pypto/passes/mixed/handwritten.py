"""Functions whose author already chose the core: pushes in the right form, slots given back, one parameter list."""

from __future__ import annotations

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType
from ...ir.program import Function, Program
from ...ir.visitor import IRMutator, calls_in, walk_stmts
from ..device_ir import body_like, is_core_function, kernel_error, nested_bodies, op_call, op_name, with_bodies
from .prune import fractal_push
from .slot_order import POPS
from .tfree import place_frees


def finish_core_function(func: Function, handler: Handler) -> Function:
    """An AIC or AIV function with fractal pushes (where the architecture wants them) and every popped slot freed."""
    if not is_core_function(func):
        return func
    body = func.body
    names = {op_name(x) for x in walk_stmts(body)}
    if handler.v2c_fractal_adaptation and "tile.tpush_to_aic" in names:
        body = _fractal_pushes(body)
    if not names.isdisjoint(POPS):
        body = place_frees(body)
    return func if body is func.body else func.with_(body=body)


def _fractal_pushes(body: s.Stmt) -> s.Stmt:
    made: list[s.Stmt] = []
    for stmt in s.stmts_of(body):
        bodies = nested_bodies(stmt)
        call = op_call(stmt)
        if bodies:
            made.append(with_bodies(stmt, [_fractal_pushes(b) for b in bodies]))
        elif call is not None and call.op.name == "tile.tpush_to_aic":
            pushed = fractal_push(call.args[0], call.op.name, call.kwargs, stmt)
            made.extend(pushed if len(pushed) > 1 else [stmt])
        else:
            made.append(stmt)
    return body_like(body, made)


def unify_group_members(program: Program) -> Program:
    """The program in which both kernels of each hand-written group take the group's own parameter list.

    Raises:
        ValueError: the lists differ and a call passes something that is no parameter of the group.
    """
    changed: dict[str, Function] = {}
    for group in program.functions.values():
        if group.func_type is FunctionType.Group:
            _unify(group, program, changed)
    if not changed:
        return program
    return program.with_functions([changed.get(f.name, f) for f in program.functions.values()])


def _unify(group: Function, program: Program, changed: dict[str, Function]) -> None:
    calls = [c for c in calls_in(group.body) if isinstance(c, e.Call) and isinstance(c.op, e.GlobalVar)]
    members = [f for f in (program.get_function(c.op.name) for c in calls) if f is not None]
    if len(calls) != 2 or len(members) != 2 or not all(is_core_function(f) for f in members):
        return
    if len(calls[0].args) == len(calls[1].args) and all(
        a is b for a, b in zip(calls[0].args, calls[1].args, strict=True)
    ):
        return
    for call, member in zip(calls, members, strict=True):
        if any(a not in set(group.params) for a in call.args if isinstance(a, e.Var)) or not all(
            isinstance(a, e.Var) for a in call.args
        ):
            raise kernel_error(
                f"group '{group.name}' gives its kernels '{members[0].name}' and '{members[1].name}' different "
                "arguments, and not all of them are parameters of the group; pass both kernels the group's parameters",
                call.span,
            )
        changed[member.name] = _with_group_params(member, call, group)
    changed[group.name] = _call_with_all(group, {f.name for f in members})


def _with_group_params(member: Function, call: e.Call, group: Function) -> Function:
    own = {arg: (p, d) for arg, (p, d) in zip(call.args, member.pairs, strict=True)}
    mutator = IRMutator()
    pairs = []
    for param, direction in group.pairs:
        if param in own:
            pairs.append(own[param])
        else:
            pairs.append((e.Var(param.name_hint, param.type, param.span), direction))
    for arg, (param, _) in zip(call.args, member.pairs, strict=True):
        if own[arg][0] is not param:  # one argument given twice
            mutator.var_map[param] = own[arg][0]
    body = mutator.visit_stmt(member.body) if mutator.var_map else member.body
    return member.with_(params=pairs, body=body)


def _call_with_all(group: Function, members: set[str]) -> Function:
    class Args(IRMutator):
        def visit_call(self, op: e.Call) -> e.Expr:
            if isinstance(op.op, e.GlobalVar) and op.op.name in members:
                return e.Call(op.op, group.params, kwargs=op.kwargs, attrs=op.attrs, type=op.type, span=op.span)
            return super().visit_call(op)

    return group.with_(body=Args().visit_stmt(group.body))
