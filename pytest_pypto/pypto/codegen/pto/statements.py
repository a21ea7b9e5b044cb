"""Statements: assignments, loops, branches, and what crosses their borders."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import stmt as s
from ...ir.dtypes import DataType
from ...ir.expr import Call, Expr, IterArg, Submit, TupleGetItemExpr, Var, const_value
from ...ir.types import ArrayType, ScalarType, TensorType, TileType
from .dispatch import allocate_result, emit_call
from .emitter import Emitter, Handle, same_memory
from .scalars import arith, element_of, index_of, is_nonnegative, scalar
from .tiles import allocate, copy_tile, hoist
from .types import element_text


def emit_body(em: Emitter, body: s.Stmt | None) -> tuple[Expr, ...]:
    """Write a body; returns the values of its final yield."""
    statements = s.stmts_of(body)
    for place, stmt in enumerate(statements):
        if isinstance(stmt, s.YieldStmt):
            if place != len(statements) - 1:
                raise em.fail("a yield in the middle of a body", stmt.span)
            return stmt.value
        with em.at(stmt.span):
            _emit(em, stmt)
    return ()


def check_returns(em: Emitter, body: s.Stmt | None, end: bool = True) -> None:
    """A kernel runs to its end: only returns may follow a return, in its own body or behind the branch it stands in.

    Raises:
        CodegenError: at the return.
    """
    stmts = s.stmts_of(body)
    for place, stmt in enumerate(stmts):
        last = end and all(isinstance(x, s.ReturnStmt) for x in stmts[place + 1 :])
        if isinstance(stmt, s.ReturnStmt) and not last:
            raise em.fail("return is only possible at the end of a kernel", stmt.span)
        if isinstance(stmt, s.IfStmt):
            check_returns(em, stmt.then_body, last)
            check_returns(em, stmt.else_body, last)
        elif isinstance(stmt, s.ScopeStmt):
            check_returns(em, stmt.body, last)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            check_returns(em, stmt.body, False)


def _emit(em: Emitter, stmt: s.Stmt) -> None:
    if isinstance(stmt, s.AssignStmt):
        _assign(em, stmt)
    elif isinstance(stmt, s.EvalStmt):
        _evaluate(em, stmt.expr)
    elif isinstance(stmt, s.ForStmt):
        _for(em, stmt)
    elif isinstance(stmt, s.WhileStmt):
        _while(em, stmt)
    elif isinstance(stmt, s.IfStmt):
        _if(em, stmt)
    elif isinstance(stmt, s.ReturnStmt):
        for value in stmt.value:
            if isinstance(value.type, TensorType):
                em.tensor(value)
    elif isinstance(stmt, s.ScopeStmt) and isinstance(stmt, (s.RuntimeScopeStmt, s.SplitAivScopeStmt)):
        emit_body(em, stmt.body)
    else:
        raise em.fail(
            f"{type(stmt).__name__} cannot be written as .pto; the passes before code generation should have "
            "replaced it (compile with the Default strategy)",
            stmt.span,
        )


def _evaluate(em: Emitter, expr: Expr) -> None:
    if isinstance(expr, Submit):
        raise em.fail("a kernel cannot submit tasks; do it in the orchestration function", expr.span)
    if isinstance(expr, Call):
        with em.at(expr.span):
            emit_call(em, expr, None)


def _assign(em: Emitter, stmt: s.AssignStmt) -> None:
    var, value = stmt.var, stmt.value
    if isinstance(value, Call):
        if value.op.name == "tile.alloc":
            return
        if var not in em.reserved:
            em.reserved[var] = em.names.take(var.name_hint)
        allocate_result(em, value, var)
        with em.at(value.span):
            emit_call(em, value, var)
    elif isinstance(var.type, TileType):
        if not (isinstance(value, TupleGetItemExpr) and var in em.tiles):
            _alias(em, var, value)
    elif isinstance(var.type, TensorType):
        em.roots[var] = em.tensor_shape(value)
    elif isinstance(var.type, ArrayType):
        em.arrays[var] = em.array(value)
    elif isinstance(value, (Submit, TupleGetItemExpr)):
        raise em.fail(f"{type(value).__name__} cannot be written as .pto", value.span)
    else:
        dtype = var.type.dtype if isinstance(var.type, ScalarType) else None
        with em.at(value.span):
            em.scalars[var] = scalar(em, value) if dtype is None else element_of(em, value, dtype)
        if is_nonnegative(em, value):
            em.nonnegative.add(var)


def _alias(em: Emitter, var: Var, value: Expr) -> None:
    """`a = b` for tiles: another handle on the same bytes."""
    assert isinstance(var.type, TileType)
    source = em.tile(value)
    if var.type.memref is None or source.is_subview:
        em.tiles[var] = source
        return
    handle = allocate(em, var)
    if not same_memory(handle.memory, source.memory):
        copy_tile(em, source, handle)


def _is_scalar(var: Var) -> bool:
    return isinstance(var.type, ScalarType)


def _bind(em: Emitter, target: Var, source: Expr) -> None:
    """Make `target` another name of a tile, tensor or array."""
    if isinstance(target.type, TileType):
        em.tiles[target] = em.tile(source)
    elif isinstance(target.type, TensorType):
        em.roots[target] = em.tensor_shape(source)
    elif isinstance(target.type, ArrayType):
        em.arrays[target] = em.array(source)
    else:
        raise em.fail(f"'{target.name_hint}' of type {target.type} cannot cross a loop or branch", target.span)


def _scalar_type(var: Var) -> str:
    assert isinstance(var.type, ScalarType)
    return element_text(var.type.dtype)


def _dtype(var: Var) -> DataType:
    assert isinstance(var.type, ScalarType)
    return var.type.dtype


def _settle(em: Emitter, targets: Sequence[Var], values: Sequence[Expr]) -> None:
    """Carry tiles and tensors over the end of a body: nothing when they share their bytes, else copies."""
    moves: list[tuple[Handle, Handle]] = []
    for target, value in zip(targets, values, strict=True):
        if isinstance(target.type, TileType):
            source, destination = em.tile(value), em.tiles[target]
            if source.name != destination.name and not same_memory(source.memory, destination.memory):
                moves.append((source, destination))
        elif isinstance(target.type, TensorType):
            if em.tensor_shape(value) is not em.roots[target]:
                raise em.fail(
                    f"'{target.name_hint}' would stand for different tensors depending on control flow; "
                    "store into one tensor, or select in the orchestration function",
                    value.span,
                )
        elif isinstance(target.type, ArrayType) and em.array(value) != em.arrays[target]:
            raise em.fail(f"array '{target.name_hint}' would be two arrays at once; update one array", value.span)
    for source, destination in _in_order(em, moves):
        copy_tile(em, source, destination)


def _in_order(em: Emitter, moves: list[tuple[Handle, Handle]]) -> list[tuple[Handle, Handle]]:
    """Order parallel copies so that none overwrites what another still has to read."""
    ordered: list[tuple[Handle, Handle]] = []
    waiting = list(moves)
    while waiting:
        free = next(
            (m for m in waiting if not any(o is not m and same_memory(m[1].memory, o[0].memory) for o in waiting)),
            None,
        )
        if free is None:
            raise em.fail(
                "carried tiles exchange their values, which needs a spare tile; "
                "write `tmp = pl.move(a, target_memory=...)` in the loop"
            )
        waiting.remove(free)
        ordered.append(free)
    return ordered


def _yield_scalars(em: Emitter, targets: Sequence[Var], values: Sequence[Expr]) -> None:
    """The `scf.yield` of a region with scalar results."""
    made = [element_of(em, v, _dtype(t)) for t, v in zip(targets, values, strict=True) if _is_scalar(t)]
    if made:
        em.plain(f"scf.yield {', '.join(m.name for m in made)} : {', '.join(m.type_text for m in made)}")


def _for(em: Emitter, loop: s.ForStmt) -> None:
    carried = [a for a in loop.iter_args if _is_scalar(a)]
    for arg in loop.iter_args:
        if not _is_scalar(arg):
            _bind(em, arg, arg.initValue)
    stride = const_value(loop.step)
    counts = _counts_turns(em, loop)
    (low, high, step), factor = _turns(em, loop) if counts else ([index_of(em, x) for x in _range(loop)], "")
    initial = [element_of(em, a.initValue, _dtype(a)) for a in carried]
    name = em.names.take(f"{loop.loop_var.name_hint}_turn" if counts else loop.loop_var.name_hint)
    if not counts:
        em.define_scalar(loop.loop_var, name, "index")
        if stride is not None and is_nonnegative(em, loop.start):
            em.nonnegative.add(loop.loop_var)
    head = _results(em, [r for r in loop.return_vars if _is_scalar(r)])
    text = f"{head}scf.for {name} = {low} to {high} step {step}"
    if carried:
        inits = ", ".join(f"{_carry_name(em, a)} = {v.name}" for a, v in zip(carried, initial, strict=True))
        text += f" iter_args({inits}) -> ({', '.join(_scalar_type(a) for a in carried)})"
    em.plain(text + " {")
    with em.nested():
        if counts:
            _at_turn(em, loop, name, factor)
        values = emit_body(em, loop.body)
        if loop.iter_args:
            _settle(em, loop.iter_args, values)
            _yield_scalars(em, loop.iter_args, values)
    em.plain("}")
    for arg, result in zip(loop.iter_args, loop.return_vars, strict=True):
        if not _is_scalar(arg):
            _bind(em, result, arg)


def _range(loop: s.ForStmt) -> tuple[Expr, Expr, Expr]:
    return loop.start, loop.stop, loop.step


def _counts_turns(em: Emitter, loop: s.ForStmt) -> bool:
    """`scf.for` steps upwards only: a loop that falls, or may fall, counts its turns."""
    stride = const_value(loop.step)
    return stride < 0 if stride is not None else not is_nonnegative(em, loop.step)


def _turns(em: Emitter, loop: s.ForStmt) -> tuple[list[str], str]:
    """Bounds and step of a loop that rises in place of one that does not, and what its index is multiplied with.

    With a constant step the new loop counts turns: the way to go over the length of a step, rounded up. Else it goes
    the way itself, by steps of their length, so that a step of zero still is one.
    """
    stride = const_value(loop.step)
    zero, one = em.index(0), em.index(1)
    if stride is None:
        low, high, step = (index_of(em, x) for x in _range(loop))
        length = _index(em, "maxsi", step, _index(em, "subi", zero, step))
        sign = _index(em, "divsi", step, length)
        return [zero, _index(em, "muli", _index(em, "subi", high, low), sign), length], sign
    first, last, factor = const_value(loop.start), const_value(loop.stop), em.index(stride)
    if first is not None and last is not None:
        return [zero, em.index(max(-(-(first - last) // -stride), 0)), one], factor
    way = _index(em, "subi", index_of(em, loop.start), index_of(em, loop.stop))
    turns = _index(em, "divsi", _index(em, "addi", way, em.index(-stride - 1)), em.index(-stride))
    return [zero, turns, one], factor


def _index(em: Emitter, op: str, left: str, right: str) -> str:
    return arith(em, op, [left, right], "index").name


def _at_turn(em: Emitter, loop: s.ForStmt, turn: str, factor: str) -> None:
    """The index of the loop as written."""
    stride, stop = const_value(loop.step), const_value(loop.stop)
    way, name = _index(em, "muli", turn, factor), em.names.take(loop.loop_var.name_hint)
    em.line(f"{name} = arith.addi {index_of(em, loop.start)}, {way} : index")
    em.define_scalar(loop.loop_var, name, "index")
    if stride is not None and stop is not None and stop >= -1:
        em.nonnegative.add(loop.loop_var)


def _carry_name(em: Emitter, arg: IterArg) -> str:
    name = em.names.take(arg.name_hint)
    em.define_scalar(arg, name, _scalar_type(arg))
    return name


def _results(em: Emitter, variables: Sequence[Var]) -> str:
    """`%a, %b = `, or nothing."""
    names = []
    for var in variables:
        name = em.names.take(var.name_hint)
        em.define_scalar(var, name, _scalar_type(var))
        names.append(name)
    return f"{', '.join(names)} = " if names else ""


def _while(em: Emitter, loop: s.WhileStmt) -> None:
    carried = [a for a in loop.iter_args if _is_scalar(a)]
    results = [r for a, r in zip(loop.iter_args, loop.return_vars, strict=True) if _is_scalar(a)]
    for arg in loop.iter_args:
        if not _is_scalar(arg):
            _bind(em, arg, arg.initValue)
    initial = [element_of(em, a.initValue, _dtype(a)).name for a in carried]
    before, after, out = ([em.names.take() for _ in carried] for _ in range(3))
    types = [_scalar_type(a) for a in carried]
    listed = ", ".join(types)
    head = f"{', '.join(out)} = " if out else ""
    inits = ", ".join(f"{n} = {v}" for n, v in zip(before, initial, strict=True))
    em.plain(f"{head}scf.while ({inits}) : ({listed}) -> ({listed}) {{")
    with em.nested():
        _define(em, carried, before)
        condition = scalar(em, loop.condition)
        passed = f" {', '.join(before)} : {listed}" if carried else ""
        em.plain(f"scf.condition({condition.name}){passed}")
    em.plain("} do {")
    em.plain("^bb0(" + ", ".join(f"{n} : {t}" for n, t in zip(after, types, strict=True)) + "):")
    with em.nested():
        _define(em, carried, after)
        values = emit_body(em, loop.body)
        if loop.iter_args:
            _settle(em, loop.iter_args, values)
            _yield_scalars(em, loop.iter_args, values)
        if not carried:
            em.plain("scf.yield")
    em.plain("}")
    _define(em, results, out)
    for arg, result in zip(loop.iter_args, loop.return_vars, strict=True):
        if not _is_scalar(arg):
            _bind(em, result, arg)


def _define(em: Emitter, variables: Sequence[Var], names: Sequence[str]) -> None:
    for var, name in zip(variables, names, strict=True):
        em.define_scalar(var, name, _scalar_type(var))


def _if(em: Emitter, branch: s.IfStmt) -> None:
    condition = scalar(em, branch.condition)
    scalars = [r for r in branch.return_vars if _is_scalar(r)]
    for var in branch.return_vars:
        if isinstance(var.type, TileType) and var.type.memref is not None:
            hoist(em, var, branch.span)
    head = _results(em, scalars)
    types = f" -> ({', '.join(_scalar_type(r) for r in scalars)})" if scalars else ""
    em.plain(f"{head}scf.if {condition.name}{types} {{")
    with em.nested():
        _branch(em, branch, branch.then_body)
    if branch.else_body is not None:
        em.plain("} else {")
        with em.nested():
            _branch(em, branch, branch.else_body)
    em.plain("}")


def _branch(em: Emitter, branch: s.IfStmt, body: s.Stmt) -> None:
    values = emit_body(em, body)
    if not branch.return_vars:
        return
    for var, value in zip(branch.return_vars, values, strict=True):
        known = var in em.roots or var in em.arrays or var in em.tiles or _is_scalar(var)
        if not known:
            _bind(em, var, value)
    _settle(em, branch.return_vars, values)
    _yield_scalars(em, branch.return_vars, values)
