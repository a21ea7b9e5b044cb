"""Traffic with global memory, and single elements of tensors, tiles and arrays."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.expr import Call, Expr, MakeTuple, Var
from ...ir.types import ArrayType, TileType
from .emitter import Emitter, ScalarValue, tile_type
from .scalars import element_of, index_of, scalar
from .slices import elements, two_dimensional
from .tensors import flat_offset, offsets, window
from .types import element_text, pointer_text, tile_box, tile_valid


def emit_load(em: Emitter, call: Call, result: Var) -> None:
    """`partition_view` + `tload`; the window has the valid extents, not those of the tile."""
    tensor = call.args[0]
    target = em.tiles[result]
    at = offsets(em, elements(call.args[1]))
    sizes = elements(call.args[3] if len(call.args) > 3 else call.args[2])
    names = [index_of(em, s) for s in sizes]
    name, text = window(em, tensor, at, sizes, names)
    em.line(f"pto.tload ins({name} : {text}) outs({target.name} : {target.type_text})")


def emit_store(em: Emitter, call: Call, result: Var | None) -> None:
    """`partition_view` + `tstore` of the valid region."""
    tile, tensor = call.args[0], call.args[2]
    source = em.tile(tile)
    root = em.tensor(tensor)
    sizes = _store_window(em, call, len(root.type.shape))
    names = [index_of(em, s) for s in sizes]
    at = offsets(em, elements(call.args[1]))
    name, text = window(em, tensor, at, sizes, names)
    atomic = int(call.kwargs.get("atomic", 0))
    suffix = " {atomicType = #pto<atomic_type atomic_add>}" if atomic else ""
    em.line(f"pto.tstore ins({source.name} : {source.type_text}) outs({name} : {text}){suffix}")
    if result is not None:
        em.roots[result] = root


def _store_window(em: Emitter, call: Call, rank: int) -> Sequence[Expr | int]:
    """Extents of the window a store writes: its own operand when given, else the tile's valid region."""
    if len(call.args) > 3 and isinstance(call.args[3], MakeTuple):
        return call.args[3].elements
    valid: tuple[Expr | int, ...] = tile_valid(tile_type(call.args[0]))
    if rank == 1:
        return valid[1:]
    return (1,) * (rank - 2) + valid


def emit_tensor_read(em: Emitter, call: Call, result: Var) -> None:
    """One element of global memory."""
    arg = em.tensor(call.args[0])
    place = flat_offset(em, elements(call.args[1]), arg.type.shape)
    text = element_text(arg.type.dtype)
    name = em.result_name(result)
    em.line(f"{name} = pto.load_scalar {arg.pointer}[{place}] : {pointer_text(arg.type.dtype)} -> {text}")
    em.scalars[result] = ScalarValue(name, text)


def emit_tensor_write(em: Emitter, call: Call, result: Var | None) -> None:
    """One element into global memory."""
    arg = em.tensor(call.args[0])
    place = flat_offset(em, elements(call.args[1]), arg.type.shape)
    value = element_of(em, call.args[2], arg.type.dtype)
    em.line(
        f"pto.store_scalar {value.name}, {arg.pointer}[{place}] : {pointer_text(arg.type.dtype)}, {value.type_text}"
    )
    if result is not None:
        em.roots[result] = arg


def emit_tensor_dim(em: Emitter, call: Call, result: Var) -> None:
    """An extent: a constant or the argument that carries it."""
    arg = em.tensor_shape(call.args[0])
    axis = call.args[1]
    place = getattr(axis, "value", None)
    if place is None or not -len(arg.type.shape) <= place < len(arg.type.shape):
        raise em.fail(f"axis {axis} is no constant axis of tensor '{arg.param.name_hint}'", call.span)
    em.scalars[result] = scalar(em, arg.type.shape[place])
    em.nonnegative.add(result)


def emit_tile_read(em: Emitter, call: Call, result: Var) -> None:
    """One element of a tile."""
    source = em.tile(call.args[0])
    place = _tile_offset(em, call)
    text = element_text(tile_type(call.args[0]).dtype)
    name = em.result_name(result)
    em.line(f"{name} = pto.tgetval ins({source.name}, {place} : {source.type_text}, index) outs : {text}")
    em.scalars[result] = ScalarValue(name, text)


def emit_tile_write(em: Emitter, call: Call, result: Var | None) -> None:
    """One element into a tile, in place."""
    target = em.tile(call.args[0])
    place = _tile_offset(em, call)
    value = element_of(em, call.args[2], tile_type(call.args[0]).dtype)
    em.line(
        f"pto.tsetval ins({place}, {value.name} : index, {value.type_text}) outs({target.name} : {target.type_text})"
    )
    if result is not None:
        em.tiles[result] = target


def _tile_offset(em: Emitter, call: Call) -> str:
    type_ = tile_type(call.args[0])
    row, col = two_dimensional(em, elements(call.args[1]))
    from ...ir.expr import index

    indices = [index(i) if isinstance(i, int) else i for i in (row, col)]
    rows, cols = tile_box(type_)
    return flat_offset(em, indices, [index(rows), index(cols)])


def emit_array_create(em: Emitter, call: Call, result: Var) -> None:
    """A small on-core list of scalars."""
    type_ = result.type
    assert isinstance(type_, ArrayType)
    extent = getattr(type_.extent, "value", None)
    text = f"!pto.local_array<{extent}x{element_text(type_.dtype)}>"
    name = em.result_name(result)
    em.line(f"{name} = pto.declare_local_array -> {text}")
    em.arrays[result] = (name, text)


def emit_array_set(em: Emitter, call: Call, result: Var) -> None:
    """One element into an array; the result is the same array."""
    name, text = em.array(call.args[0])
    place = index_of(em, call.args[1])
    type_ = call.args[0].type
    assert isinstance(type_, ArrayType)
    value = element_of(em, call.args[2], type_.dtype)
    em.line(f"pto.local_array_set {name}[{place}], {value.name} : {text}, {value.type_text}")
    em.arrays[result] = (name, text)


def emit_array_get(em: Emitter, call: Call, result: Var) -> None:
    """One element of an array."""
    name, text = em.array(call.args[0])
    place = index_of(em, call.args[1])
    type_ = call.args[0].type
    assert isinstance(type_, ArrayType)
    element = element_text(type_.dtype)
    made = em.result_name(result)
    em.line(f"{made} = pto.local_array_get {name}[{place}] : {text} -> {element}")
    em.scalars[result] = ScalarValue(made, element)


def emit_mscatter(em: Emitter, call: Call, result: Var | None) -> None:
    """Rows of a tile to places in global memory given by an index tile."""
    source, where = em.tile(call.args[0]), em.tile(call.args[1])
    root = em.tensor(call.args[2])
    rank = len(root.type.shape)
    at = [em.index(0)] * rank
    sizes = list(root.type.shape)
    name, text = window(em, call.args[2], at, sizes, [index_of(em, s) for s in sizes])
    em.line(
        f"pto.mscatter ins({source.name}, {where.name} : {source.type_text}, {where.type_text}) outs({name} : {text})"
    )
    if result is not None:
        em.roots[result] = root


def emit_mgather(em: Emitter, call: Call, result: Var) -> None:
    """Places in global memory given by an index tile, into a tile."""
    root = em.tensor(call.args[0])
    if not isinstance(call.args[1].type, TileType):
        raise em.fail("mgather takes its indices from a tile here; load the index tensor first", call.span)
    where, target = em.tile(call.args[1]), em.tiles[result]
    from .types import tensor_view_text

    modes = ("row", "elem")
    mode = modes[int(call.kwargs.get("coalesce", 0)) % 2]
    view = tensor_view_text(len(root.type.shape), root.type.dtype)
    em.line(
        f"pto.mgather ins({root.view}, {where.name} : {view}, {where.type_text}) "
        f"outs({target.name} : {target.type_text}) {{coalesce = #pto<coalesce {mode}>}}"
    )
