"""Transfers between the cube core and the vector lanes."""

from __future__ import annotations

from ...ir.enums import FunctionType, MemorySpace
from ...ir.expr import Call, Expr, Var, const_value
from ...ir.types import TileType
from .emitter import Emitter, Handle, tile_type
from .scalars import scalar
from .tiles import set_valid, valid_operands
from .types import space_text, tile_box, tile_text, tile_valid

GM_PIPE_BUFFER = "__gm_pipe_buffer"


def _attributes(call: Call, *keys: str) -> str:
    """`{id = 1, split = 0}`: a nonzero pipe id first, then the listed keywords that are present."""
    parts = []
    if int(call.kwargs.get("id", 0) or 0):
        parts.append(f"id = {int(call.kwargs['id'])}")
    parts += [f"{key} = {int(call.kwargs.get(key, 0))}" for key in keys if key in call.kwargs or key == "split"]
    return "{" + ", ".join(parts) + "}"


def static_partial(type_: TileType) -> bool:
    """The valid region is constant, not empty, and smaller than the box."""
    extents = [v if isinstance(v, int) else const_value(v) for v in tile_valid(type_)]
    if any(v is None or v == 0 for v in extents):
        return False
    return tuple(extents) != tile_box(type_)


def emit_push(em: Emitter, call: Call) -> None:
    """Send a tile to the other core. A constant partial tile travels as its whole box."""
    handle = em.tile(call.args[0])
    type_ = tile_type(call.args[0])
    side = call.op.name.rsplit("_", 1)[1]
    widen = side == "aiv" and static_partial(type_)
    if widen:
        rows, cols = tile_box(type_)
        set_valid(em, handle, (em.index(rows), em.index(cols)))
    em.line(f"pto.tpush_to_{side}({handle.name} : {handle.type_text}) {_attributes(call, 'split', 'lane_stride')}")
    if widen:
        set_valid(em, handle, valid_operands(em, type_))


def emit_pop(em: Emitter, call: Call, result: Var) -> None:
    """Receive a tile; its storage is the slot of the ring, so nothing is allocated."""
    type_ = tile_type(result)
    side = call.op.name.rsplit("_", 1)[1]
    text = tile_text(type_)
    if side == "aic" and static_partial(type_):
        em.tiles[result] = _pop_whole_box(em, call, type_, side)
        return
    rows, cols = tile_valid(type_)
    full = tuple(v if isinstance(v, int) else const_value(v) for v in (rows, cols)) == tile_box(type_)
    operands = "" if full else "({}, {})".format(*valid_operands(em, type_))
    name = em.result_name(result)
    em.line(f"{name} = pto.tpop_from_{side}{operands} {_attributes(call, 'split', 'lane_stride')} -> {text}")
    em.tiles[result] = Handle(name, text, type_.memref)


def _pop_whole_box(em: Emitter, call: Call, type_: TileType, side: str) -> Handle:
    rows, cols = tile_box(type_)
    text = tile_text(type_)
    moved = em.names.take("tpop_transport")
    where = f"({em.index(rows)}, {em.index(cols)})"
    em.line(f"{moved} = pto.tpop_from_{side}{where} {_attributes(call, 'split', 'lane_stride')} -> {text}")
    extents = [v if isinstance(v, int) else const_value(v) for v in tile_valid(type_)]
    narrow = tile_text(type_, (extents[0] or 0, extents[1] or 0))
    name = em.names.take("tpop_logical")
    em.line(f"{name} = pto.treshape {moved} : {text} -> {narrow}")
    return Handle(name, narrow, type_.memref)


def emit_free(em: Emitter, call: Call) -> None:
    """Give the slot of a popped tile back to the sender."""
    side = call.op.name.rsplit("_", 1)[1]
    em.line(f"pto.tfree_from_{side} {_attributes(call, 'split')}")


def emit_reserve(em: Emitter, call: Call, result: Var) -> None:
    """On-chip room for the slots of a ring."""
    cube = em.func.func_type is FunctionType.AIC
    base = int(call.kwargs.get("base", -1))
    auto = not em.options.baked_addresses and base < 0
    place = "auto = true" if auto else f"auto = false, base = {max(base, 0)}"
    name = em.result_name(result)
    where = space_text(MemorySpace.Mat if cube else MemorySpace.Vec)
    em.line(
        f'{name} = pto.reserve_buffer {{name = "{call.kwargs["name"]}", size = {int(call.kwargs["size"])}, '
        f"location = {where}, {place}}} -> i32"
    )
    em.define_scalar(result, name, "i32")


def emit_import(em: Emitter, call: Call, result: Var) -> None:
    """The ring that the peer function reserved."""
    name = em.result_name(result)
    em.line(
        f'{name} = pto.import_reserved_buffer {{name = "{call.kwargs["name"]}", '
        f"peer_func = @{call.kwargs['peer_func']}}} -> i32"
    )
    em.define_scalar(result, name, "i32")


def emit_initialize(em: Emitter, call: Call) -> None:
    """Set up one pipe; on 910B it also names its part of the buffer in global memory."""
    core = call.op.name.split(".")[1][:3]
    rings = [scalar(em, a).name for a in call.args[:2]]
    consumers = f"c2v_consumer_buf = {rings[0]} : i32, v2c_consumer_buf = {rings[1]} : i32"
    header = f"pto.{core}_initialize_pipe {_attributes_pipe(call)}"
    buffer = _gm_pointer(em, call)
    if buffer is None:
        em.line(f"{header} ({consumers})")
        return
    em.plain(header)
    em.line(f"    (gm_slot_buffer = {buffer}, {consumers})")


def _attributes_pipe(call: Call) -> str:
    parts = []
    if int(call.kwargs.get("id", 0) or 0):
        parts.append(f"id = {int(call.kwargs['id'])}")
    for key in ("dir_mask", "slot_size", "slot_num", "local_slot_num"):
        if call.kwargs.get(key) is not None:
            parts.append(f"{key} = {int(call.kwargs[key])}")
    return "{" + ", ".join(parts) + "}"


def _gm_pointer(em: Emitter, call: Call) -> str | None:
    """The pointer of this pipe's rings in global memory with its type, or None where pipes need none."""
    if not em.handler.gm_pipe_buffer:
        return None
    param = next((p for p in em.func.params if p.name_hint == GM_PIPE_BUFFER), None)
    if param is None:
        raise em.fail(
            f"pipes of this architecture go through global memory, but the kernel has no parameter {GM_PIPE_BUFFER}; "
            "run InjectGMPipeBuffer before code generation",
            call.span,
        )
    pointer = em.roots[param].pointer
    skipped = em.pipe_offsets.get(_pipe_key(call), 0)
    if not skipped:
        return f"{pointer} : !pto.ptr<f32>"
    moved = em.names.take()
    em.line(f"{moved} = pto.addptr {pointer}, {em.index(skipped)} : <f32> -> <f32>")
    return f"{moved} : !pto.ptr<f32>"


def _pipe_key(call: Call) -> tuple[int, int]:
    return int(call.kwargs.get("id", 0) or 0), int(call.kwargs["dir_mask"])


def ring_floats(call: Call) -> int:
    """32-bit words that the rings of one pipe take in global memory (without slot_num: 8 slots, or 4 each way)."""
    both = int(call.kwargs["dir_mask"]) == 3
    slots = int(call.kwargs.get("slot_num") or (4 if both else 8))
    return -(-(2 if both else 1) * slots * int(call.kwargs["slot_size"]) // 4)


def pipe_offsets(calls: list[Call]) -> dict[tuple[int, int], int]:
    """Where each pipe of a unit starts in the buffer, in 32-bit words: ordered by (id, dir_mask)."""
    sizes = {_pipe_key(c): ring_floats(c) for c in calls}
    made, at = {}, 0
    for key in sorted(sizes):
        made[key] = at
        at += sizes[key]
    return made


def is_pop(expr: Expr) -> bool:
    """True for the two receiving operators."""
    return isinstance(expr, Call) and expr.op.name in ("tile.tpop_from_aic", "tile.tpop_from_aiv")
