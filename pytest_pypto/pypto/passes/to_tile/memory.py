"""Operators that make, cut, join, read and write tensors."""

from __future__ import annotations

from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.op_table import create_op_call
from ...ir.span import Span
from ...ir.types import TensorType, TileType, TileView
from ...ir.visitor import replace_call
from .elementwise import kept_kwargs, tile_type
from .facts import too_large
from .kernel import Kernel, Window
from .table import handles


@handles("create")
def create(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """A tile: an accumulator where a product accumulates into it, else in Vec."""
    assert isinstance(stmt, s.AssignStmt)
    if too_large(stmt.var):
        raise k.fail(
            f"'{stmt.var.name_hint}' of type {stmt.var.type} does not fit the vector buffer of a core; make it "
            "smaller, or create it outside of the region and write windows of it",
            call,
        )
    dtype = call.kwargs["dtype"]
    if call.kwargs.get("init_value") is not None:
        number = call.kwargs["init_value"]
        value: e.Expr = e.ConstFloat(float(number), dtype) if dtype.is_float() else e.ConstInt(int(number), dtype)
        return k.emit("tile.full", [call.args[0], value], {"dtype": dtype}, name=f"{base}__tile", span=call.span)
    space = MemorySpace.Acc if k.facts.is_accumulator(stmt.var) else MemorySpace.Vec
    kwargs = {"dtype": dtype, "target_memory": space}
    return k.emit("tile.create", call.args, kwargs, name=f"{base}__tile", span=call.span)


@handles("create_l1")
def create_l1(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """A tile in Mat."""
    kwargs: dict[str, Any] = {"dtype": call.kwargs["dtype"], "target_memory": MemorySpace.Mat}
    if call.kwargs.get("transpose"):
        kwargs["transpose"] = True
    return k.emit("tile.create", call.args, kwargs, name=f"{base}__tile", span=call.span)


@handles("full", "ci", "random", "get_block_idx", "get_block_num", "get_subblock_idx")
def generator(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """No tensor operands: the same operator for tiles."""
    op = call.op.name.replace("tensor.", "tile.")
    args = k.visit_exprs(call.args)
    return k.emit(op, args, kept_kwargs(call, op), name=f"{base}__tile", span=call.span)


_ON_TILES = ("fillpad", "fillpad_expand", "set_validshape", "reinterpret_view", "aiv_shard", "aic_gather", "transpose")


@handles(*_ON_TILES)
def on_tile(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """One tensor operand, further scalars and shapes: the same operator for tiles."""
    op = call.op.name.replace("tensor.", "tile.")
    rest = k.visit_exprs(call.args[1:])
    if op == "tile.transpose":
        rest = rest[:2]
    return k.emit(op, [k.tile(call.args[0]), *rest], kept_kwargs(call, op), name=f"{base}__tile", span=call.span)


@handles("concat")
def concat(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Two tiles side by side."""
    return k.emit("tile.concat", [k.tile(a) for a in call.args], name=f"{base}__tile", span=call.span)


@handles("reshape")
def reshape(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """On the core a reshape; of memory that is only cut or multiplied afterwards, a view of the memory."""
    assert isinstance(stmt, s.AssignStmt)
    rest = k.visit_exprs(call.args[1:])
    if not k.is_tile(call.args[0]) and k.facts.only_windows(stmt.var):
        return k.emit("tensor.view", [k.tensor(call.args[0]), *rest], name=base, span=call.span)
    return k.emit("tile.reshape", [k.tile(call.args[0]), rest[0]], name=f"{base}__tile", span=call.span)


@handles("view")
def view(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """A view of memory stays one; of a tile only a new shape is possible."""
    rest = k.visit_exprs(call.args[1:])
    if not k.is_tile(call.args[0]):
        return k.emit("tensor.view", [k.tensor(call.args[0]), *rest], call.kwargs, name=base, span=call.span)
    if "layout" in call.kwargs or not rest:
        raise k.fail("pl.tensor.view changes the layout of a value that is on the core; use pl.transpose", call)
    return k.emit("tile.reshape", [k.tile(call.args[0]), rest[0]], name=f"{base}__tile", span=call.span)


# windows -------------------------------------------------------------------------------------------------------------


@handles("slice")
def slice_(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """A window of memory is loaded (to Mat when only the cube core reads it); a window of a tile stays a view."""
    assert isinstance(stmt, s.AssignStmt)
    if k.is_tile(call.args[0]):
        args = [k.tile(call.args[0]), *k.visit_exprs(call.args[1:])]
        kwargs = kept_kwargs(call, "tile.slice")
        return k.emit("tile.slice", args, kwargs, name=f"{base}__tile", span=call.span)
    window = _window(k, call)
    space = MemorySpace.Mat if k.facts.only_mat(stmt.var) else MemorySpace.Vec
    loaded = k.load(window, space, f"{base}__tile", call.span)
    k.windows[loaded] = window
    return _finish(k, call, loaded, base)


def _window(k: Kernel, call: e.Call) -> Window:
    """What a slice of memory reads, in the rank of the memory."""
    source = k.tensor(call.args[0])
    shape, offset, *rest = k.visit_exprs(call.args[1:])
    assert isinstance(shape, e.MakeTuple)
    assert isinstance(offset, e.MakeTuple)
    assert isinstance(source.type, TensorType)
    valid = rest[0] if rest and isinstance(rest[0], e.MakeTuple) and rest[0].elements else shape
    assert isinstance(valid, e.MakeTuple)
    missing = len(source.type.shape) - len(shape.elements)
    if missing:
        one, zero = e.index(1, call.span), e.index(0, call.span)
        shape = e.MakeTuple((one,) * missing + shape.elements, call.span)
        valid = e.MakeTuple((one,) * missing + valid.elements, call.span)
        if len(offset.elements) < len(source.type.shape):
            offset = e.MakeTuple((zero,) * missing + offset.elements, call.span)
    return Window(source, offset, shape, valid, bool(call.kwargs.get("clamp")))


def _finish(k: Kernel, call: e.Call, loaded: e.Var, base: str) -> e.Expr:
    """The loaded window in the promised rank, marked with its padding."""
    assert isinstance(call.type, TensorType)
    made = loaded
    if len(tile_type(made).shape) != len(call.type.shape):
        shape = e.MakeTuple(call.type.shape, call.span)
        made = k.emit("tile.reshape", [made, shape], name=f"{base}__tile", span=call.span)
        k.windows[made] = k.windows[loaded]
    pad = call.kwargs.get("pad_value")
    return made if pad is None else _padded(k, made, pad)


def _padded(k: Kernel, tile: e.Var, pad: Any) -> e.Var:
    """The same statement with the padding mode in its result type."""
    last = k.out.pop()
    assert isinstance(last, s.AssignStmt)
    assert isinstance(last.value, e.Call)
    old = tile_type(tile)
    eff = old.get_effective_tile_view()
    view = TileView(old.valid_shape, None, None, eff.blayout, eff.slayout, eff.fractal, pad, eff.compact)
    type_ = TileType(old.shape, old.dtype, None, view, old.space)
    var = e.Var(tile.name_hint, type_, tile.span)
    k.out.append(s.AssignStmt(var, replace_call(last.value, type=type_), last.span))
    if tile in k.windows:
        k.windows[var] = k.windows[tile]
    return var


@handles("assemble")
def assemble(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Into memory a store, into a tile an assemble."""
    target, source, offset = call.args
    place = k.value(offset)
    if k.is_tile(target):
        args = [k.tile(target), k.tile(source), place]
        return k.emit("tile.assemble", args, name=f"{base}__tile", span=call.span)
    kwargs = {key: v for key, v in call.kwargs.items() if key == "atomic"}
    return k.store(k.tile(source), place, k.tensor(target), f"{base}__tile", call.span, kwargs)


# elements ------------------------------------------------------------------------------------------------------------


@handles("read")
def read(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """One element of memory or of a tile."""
    source, indices = k.value(call.args[0]), k.value(call.args[1])
    op = "tile.read" if isinstance(source.type, TileType) else "tensor.read"
    return k.emit(op, [source, indices], name=f"{base}__tile", span=call.span)


@handles("write")
def write(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr | None:
    """One element of memory or of a tile."""
    target, indices, value = k.visit_exprs(call.args)
    op = "tile.write" if isinstance(target.type, TileType) else "tensor.write"
    if isinstance(stmt, s.AssignStmt):
        return k.emit(op, [target, indices, value], name=f"{base}__tile", span=call.span)
    made = create_op_call(op, [target, indices, value], span=call.span)
    k.out.append(s.EvalStmt(made, stmt.span, leading_comments=stmt.leading_comments))
    return None


@handles("dim")
def dim(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """An extent: a constant, or asked of the memory at run time."""
    source, axis = call.args
    at = e.const_value(axis)
    extent = source.type.shape[at] if isinstance(source.type, TensorType) and at is not None else None
    if isinstance(extent, e.ConstInt):
        return extent
    return k.emit("tensor.dim", [k.tensor(source), k.value(axis)], name=base, span=call.span)


def offsets(k: Kernel, rank: int, span: Span) -> e.MakeTuple:
    """The origin."""
    return e.make_tuple([0] * rank, span)
