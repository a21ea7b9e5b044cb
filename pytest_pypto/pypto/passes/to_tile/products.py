"""Matrix products."""

from __future__ import annotations

from dataclasses import replace

from ...ir import expr as e
from ...ir import extents
from ...ir import stmt as s
from ...ir.dtypes import DataType
from ...ir.enums import MemorySpace, TensorLayout
from ...ir.types import TensorType, TileType
from ...ir.visitor import exprs_of, replace_call, uses_of, walk_stmts
from .._boxes import box_columns, has_whole_boxes
from .._util import base_name
from .elementwise import tile_type
from .kernel import Kernel, Window
from .table import handles

_CUBE = (MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right)


@handles("matmul")
def matmul(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Operands in Mat, product in Acc; a narrower `out_dtype` is rounded by the store, or where the value is used."""
    lhs, rhs = _operands(k, call, 0)
    op = "tile.matmul" if len(tile_type(lhs).shape) == len(tile_type(rhs).shape) == 2 else "tile.batch_matmul"
    product = k.emit(op, [lhs, rhs], name=f"{base}__tile", span=call.span)
    return _rounded(k, call, product, stmt)


@handles("matmul_acc")
def matmul_acc(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Accumulates in Acc; a running sum that lives in Vec gets the product added."""
    acc = k.tile(call.args[0])
    lhs, rhs = _operands(k, call, 1)
    batched = "batch_" if len(tile_type(lhs).shape) > 2 or len(tile_type(rhs).shape) > 2 else ""
    rest = [k.value(a) for a in call.args[3:]]
    if tile_type(acc).space is MemorySpace.Acc:
        return k.emit(f"tile.{batched}matmul_acc", [acc, lhs, rhs, *rest], name=f"{base}__tile", span=call.span)
    if rest:
        raise k.fail(
            "init_cond of pl.matmul_acc needs an accumulator on the cube core; start from pl.create_tensor(...) or "
            "from a product",
            call,
        )
    product = k.emit(f"tile.{batched}matmul", [lhs, rhs], name=f"{base}__tile", span=call.span)
    return k.emit("tile.add", [acc, product], name=f"{base}__tile", span=call.span)


def _operands(k: Kernel, call: e.Call, first: int) -> tuple[e.Var, e.Var]:
    """Both factors as tiles, transposed views last."""
    for arg in call.args[first : first + 2]:
        if isinstance(arg.type, TensorType) and len(arg.type.shape) < 2:
            raise k.fail(
                f"{call.op.name} of a rank-1 operand cannot be used in a kernel; reshape it to [1, K] or [K, 1]", call
            )
    left, right = call.args[first : first + 2]
    turned = (bool(call.kwargs.get("a_trans")), bool(call.kwargs.get("b_trans")))
    return _factor(k, left, turned[0], call), _factor(k, right, turned[1], call)


def _factor(k: Kernel, arg: e.Expr, turned: bool, call: e.Call) -> e.Var:
    """A factor, with rows and columns exchanged when `turned`.

    Whole boxes in Mat are looked at in the other layout. Other tiles have no fractal form whose bytes could be shared:
    they are read from a turned view of the memory they come from.
    """
    if not turned:
        return _operand(k, arg, call)
    window = _memory_of(k, arg)
    if window is not None and not has_whole_boxes(window.shape.elements[-2:], _dtype(window.source)):
        return _load_turned(k, window, call, _rank(arg))
    return _transposed(k, _operand(k, arg, call), call)


def _memory_of(k: Kernel, arg: e.Expr) -> Window | None:
    """The window of unchanged memory that a factor is, if it is one."""
    value = k.value(arg)
    if isinstance(value, e.Var) and isinstance(value.type, TensorType):
        return k.whole_window(value) if _layout(value) is TensorLayout.ND else None
    window = k.windows.get(value) if isinstance(value, e.Var) else None
    if window is None or k.facts.roots.of(window.source) in k.facts.written:
        return None
    return window if _layout(window.source) is TensorLayout.ND else None


def _layout(tensor: e.Var) -> TensorLayout:
    view = tensor.type.tensor_view if isinstance(tensor.type, TensorType) else None
    return TensorLayout.ND if view is None else view.layout


def _dtype(tensor: e.Var) -> DataType:
    assert isinstance(tensor.type, TensorType)
    return tensor.type.dtype


def _same_dtype(a: e.Expr, b: e.Expr) -> bool:
    return isinstance(a.type, TensorType) and isinstance(b.type, TensorType) and a.type.dtype is b.type.dtype


def _is_store(k: Kernel, root: e.Expr, var: e.Var) -> bool:
    """True for an assemble of the value into memory of its element type."""
    if not isinstance(root, e.Call) or root.op.name != "tensor.assemble" or root.args[1] is not var:
        return False
    return k.facts.in_memory(root.args[0]) and _same_dtype(root.args[0], var)


def _rank(arg: e.Expr) -> int:
    assert isinstance(arg.type, (TensorType, TileType))
    return len(arg.type.shape)


def _load_turned(k: Kernel, window: Window, call: e.Call, rank: int) -> e.Var:
    """Load a window of the memory seen with its last two axes exchanged, as a tile of the given rank."""
    source = window.source
    layout = {"layout": TensorLayout.DN}
    view = k.emit("tensor.view", [source], layout, name=f"{base_name(source.name_hint)}_dn", span=call.span)
    offset, shape, valid = (_swapped(t) for t in (window.offset, window.shape, window.valid))
    turned = Window(view, offset, shape, valid, window.clamp)
    loaded = k.load(turned, MemorySpace.Mat, f"{base_name(source.name_hint)}_mat_t", call.span)
    return loaded if len(tile_type(loaded).shape) == rank else _without_lead(k, loaded, rank)


def _without_lead(k: Kernel, loaded: e.Var, rank: int) -> e.Var:
    """The same load as a tile without the leading axes of extent 1."""
    last = k.out.pop()
    assert isinstance(last, s.AssignStmt)
    assert isinstance(last.value, e.Call)
    old = tile_type(loaded)
    eff = old.get_effective_tile_view()
    view = replace(eff, valid_shape=old.valid_shape[-rank:])
    var = e.Var(loaded.name_hint, TileType(old.shape[-rank:], old.dtype, None, view, old.space), loaded.span)
    k.out.append(replace(last, var=var, value=replace_call(last.value, type=var.type)))
    return var


def _swapped(values: e.MakeTuple) -> e.MakeTuple:
    *lead, rows, cols = values.elements
    return e.MakeTuple((*lead, cols, rows), values.span)


def _operand(k: Kernel, arg: e.Expr, call: e.Call) -> e.Var:
    """A factor: memory is loaded to Mat; a window that the vector core uses too is loaded a second time."""
    value = k.value(arg)
    if isinstance(value, e.Var) and isinstance(value.type, TensorType):
        return k.load_whole(value, MemorySpace.Mat, f"{value.name_hint}_mat")
    tile = k.tile(arg)
    window = k.windows.get(tile)
    if window is None or tile_type(tile).space is MemorySpace.Mat:
        return _typed(k, tile, arg, call)
    if k.facts.roots.of(window.source) in k.facts.written or len(tile_type(tile).shape) != len(window.shape.elements):
        return tile
    return k.load(window, MemorySpace.Mat, f"{base_name(tile.name_hint)}_mat", call.span)


def _typed(k: Kernel, tile: e.Var, arg: e.Expr, call: e.Call) -> e.Var:
    """A product that feeds a product is rounded to the type the program states."""
    assert isinstance(arg.type, TensorType)
    return k.cast(tile, arg.type.dtype, call.span, "rint")


def _transposed(k: Kernel, tile: e.Var, call: e.Call) -> e.Var:
    """A transposed view in Mat."""
    type_ = tile_type(tile)
    if not has_whole_boxes(type_.shape[-2:], type_.dtype):
        raise k.fail(
            "a_trans / b_trans of a value that is computed on the core needs whole boxes, but "
            f"{extents.text(type_.shape[-2:])} {type_.dtype.name} is no multiple of [16, {box_columns(type_.dtype)}]; "
            "use pl.transpose(x, 0, 1) and leave the flag out, or store the value to memory first",
            call,
        )
    if tile_type(tile).space not in _CUBE:
        name = f"{tile.name_hint}_mat"
        tile = k.emit("tile.move", [tile], {"target_memory": MemorySpace.Mat}, name=name, span=call.span)
    return k.emit("tile.transpose_view", [tile], name=f"{tile.name_hint}_t", span=call.span)


def _rounded(k: Kernel, call: e.Call, product: e.Var, stmt: s.Stmt) -> e.Expr:
    """The product itself when a store rounds it; else a tile of the stated element type."""
    assert isinstance(call.type, TensorType)
    stated, exact = call.type.dtype, tile_type(product).dtype
    if exact is stated:
        return product
    if stated is DataType.INT8:
        raise k.fail(
            f"{call.op.name} gives INT8 here, too small for its sums, and no instruction cuts them down to it: write "
            "pl.matmul(a, b, out_dtype=pl.INT32)",
            call,
        )
    assert isinstance(stmt, s.AssignStmt)
    if stated in _STORED_FROM_ACC and _only_stored(k, stmt.var):
        return product
    return k.cast(product, stated, call.span, "rint")


_STORED_FROM_ACC = frozenset({DataType.FP16, DataType.BF16})
"""Element types to which the store of an accumulator rounds."""


def _only_stored(k: Kernel, var: e.Var) -> bool:
    """Every use is the source of a store to memory of the same element type, or the return."""
    for stmt in walk_stmts(k.func.body):
        for root in exprs_of(stmt):
            if not any(v is var for v in uses_of(root)):
                continue
            if not isinstance(stmt, s.ReturnStmt) and not _is_store(k, root, var):
                return False
    return True
