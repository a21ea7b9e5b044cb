"""From operator names to the functions that write them."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.expr import Call, Var
from ...ir.types import TileType
from . import cube_ops as cube
from . import gathers
from . import memory_ops as memory
from . import pipe_ops as pipe
from . import system_ops as system
from .emitter import Emitter, Handle, tile_type
from .scalars import index_of
from .slices import assembles_in_place, emit_assemble, emit_extract, emit_slice
from .tensors import emit_view
from .tiles import allocate, check_view, set_valid
from .vector_ops import INSTRUCTIONS, emit_instruction, gather_mask

Effect = Callable[[Emitter, Call], None]
WithResult = Callable[[Emitter, Call, Var], None]
MaybeResult = Callable[[Emitter, Call, "Var | None"], None]

IN_PLACE = frozenset(
    {
        "tile.matmul_acc",
        "tile.gemv_acc",
        "tile.batch_matmul_acc",
        "tile.matmul_mx_acc",
        "tile.gather_row",
        "tile.scatter",
        "tile.scatter_mask",
        "tile.set_validshape",
        "tile.write",
    }
)
"""Operators whose result is an operand's own handle."""

POPS = frozenset({"tile.tpop_from_aic", "tile.tpop_from_aiv"})

DISTRIBUTED = ("pld.", "prefetch.", "builtin.", "dist.")

ELSEWHERE = {
    "tile.alloc": "storage, written with the tiles that lie in it",
    "tile.sin": "LowerCompositeOps replaces it",
    "tile.cos": "LowerCompositeOps replaces it",
    "tile.batch_matmul": "FlattenTileNdTo2D makes one product per batch",
    "tile.aiv_shard": "ExpandMixedKernel makes a pipe of it",
    "tile.aic_gather": "ExpandMixedKernel makes a pipe of it",
    "system.task_invalid": "belongs to orchestration functions",
    "system.task_dummy": "belongs to orchestration functions",
    "system.task_is_valid": "belongs to orchestration functions",
    "system.available_cluster_count": "belongs to orchestration functions",
    "system.available_aiv_count": "belongs to orchestration functions",
}
"""Operators that no finished kernel holds, with the reason."""


def _set_validshape(em: Emitter, call: Call, result: Var) -> None:
    handle = em.tile(call.args[0])
    set_valid(em, handle, (index_of(em, call.args[1]), index_of(em, call.args[2])))
    em.tiles[result] = handle


def _storage_only(em: Emitter, call: Call, result: Var) -> None:
    """Create and the pure views: their `alloc_tile` is all there is."""


def _view(em: Emitter, call: Call, result: Var) -> None:
    """A view is another `alloc_tile` at the same address; of something without an address it is a `treshape`."""
    check_view(em, call, result)
    if result in em.tiles:
        return
    source = em.tile(call.args[0])
    from .types import tile_text

    text = tile_text(tile_type(result))
    name = em.result_name(result)
    em.line(f"{name} = pto.treshape {source.name} : {source.type_text} -> {text}")
    em.tiles[result] = Handle(name, text, source.memory)


EFFECTS: dict[str, Effect] = {
    "tile.tpush_to_aic": pipe.emit_push,
    "tile.tpush_to_aiv": pipe.emit_push,
    "system.tfree_to_aic": pipe.emit_free,
    "system.tfree_to_aiv": pipe.emit_free,
    "system.aic_initialize_pipe": pipe.emit_initialize,
    "system.aiv_initialize_pipe": pipe.emit_initialize,
    "system.bar_all": system.emit_barrier,
    "system.bar_v": system.emit_barrier,
    "system.bar_m": system.emit_barrier,
    "system.syncall": system.emit_syncall,
    "system.fence": system.emit_fence,
    "system.cacheinvalid": system.emit_cacheinvalid,
    "system.sync_set": system.emit_sync_flag,
    "system.sync_wait": system.emit_sync_flag,
    "system.sync_src": system.emit_sync_pair,
    "system.sync_dst": system.emit_sync_pair,
    "system.set_ffts": system.emit_set_ffts,
}
EITHER: dict[str, MaybeResult] = {
    "tile.store": memory.emit_store,
    "tensor.write": memory.emit_tensor_write,
    "tile.write": memory.emit_tile_write,
    "tile.mscatter": memory.emit_mscatter,
}
RESULTS: dict[str, WithResult] = {
    "tile.load": memory.emit_load,
    "tensor.view": emit_view,
    "tensor.read": memory.emit_tensor_read,
    "tensor.dim": memory.emit_tensor_dim,
    "tile.read": memory.emit_tile_read,
    "tile.mgather": memory.emit_mgather,
    "array.create": memory.emit_array_create,
    "array.update_element": memory.emit_array_set,
    "array.get_element": memory.emit_array_get,
    "tile.create": _storage_only,
    "tile.reshape": _view,
    "tile.transpose_view": _view,
    "tile.reinterpret_view": _view,
    "tile.slice": emit_slice,
    "tile.extract": emit_extract,
    "tile.assemble": emit_assemble,
    "tile.gather_row": gathers.emit_gather_row,
    "tile.scatter_update": gathers.emit_scatter_update,
    "tile.set_validshape": _set_validshape,
    "tile.matmul_acc": cube.emit_accumulate,
    "tile.gemv_acc": cube.emit_accumulate,
    "tile.batch_matmul_acc": cube.emit_accumulate,
    "tile.matmul_mx": cube.emit_mx,
    "tile.matmul_mx_acc": cube.emit_mx,
    "tile.matmul_mx_bias": cube.emit_mx,
    "tile.scatter": cube.emit_scatter,
    "tile.scatter_mask": cube.emit_scatter,
    "tile.mrgsort_format2": cube.emit_merge,
    "tile.tri": cube.emit_triangle,
    "tile.gather_mask": gather_mask,
    "tile.gather_compare": gathers.emit_gather_compare,
    "tile.tpop_from_aic": pipe.emit_pop,
    "tile.tpop_from_aiv": pipe.emit_pop,
    "system.reserve_buffer": pipe.emit_reserve,
    "system.import_peer_buffer": pipe.emit_import,
    "tile.get_block_idx": system.emit_core_index,
    "tile.get_block_num": system.emit_core_index,
    "tile.get_subblock_idx": system.emit_core_index,
}


def needs_storage(call: Call, result: Var) -> bool:
    """True when the operator writes a tile of its own, which has to be allocated first."""
    if not isinstance(result.type, TileType) or result.type.memref is None:
        return False
    if call.op.name == "tile.assemble":
        return not assembles_in_place(call, result)
    return call.op.name not in IN_PLACE


def emit_call(em: Emitter, call: Call, result: Var | None) -> None:
    """Write one operator call; `result` is the variable it defines, if any.

    Raises:
        CodegenError: the operator has no `.pto` form.
    """
    name = call.op.name
    if name in EFFECTS:
        EFFECTS[name](em, call)
    elif name in EITHER:
        EITHER[name](em, call, result)
    elif result is not None and name in RESULTS:
        RESULTS[name](em, call, result)
    elif result is not None and name in INSTRUCTIONS:
        emit_instruction(em, call, em.tiles[result], INSTRUCTIONS[name])
    elif result is None and name in POPS:
        raise em.fail(f"the tile that '{name}' takes out of the pipe has no name; write `t = {name}(...)`", call.span)
    elif result is None and (name in RESULTS or name in INSTRUCTIONS):
        pass  # a value nobody uses: nothing to write
    else:
        raise em.fail(_unsupported(name), call.span)


def allocate_result(em: Emitter, call: Call, result: Var) -> None:
    """Write the storage of the result when it needs some."""
    if needs_storage(call, result):
        allocate(em, result)


def _unsupported(name: str) -> str:
    if name.startswith(DISTRIBUTED):
        return f"operator '{name}' moves data between devices; distributed kernels cannot be compiled to .pto here"
    if name.startswith("tensor."):
        return (
            f"tensor operator '{name}' reached code generation inside a kernel; "
            "run ConvertTensorToTileOps before it, or move the operation to the orchestration function"
        )
    if name in ELSEWHERE:
        return f"operator '{name}' cannot stay in a finished kernel: {ELSEWHERE[name]}"
    return f"operator '{name}' has no .pto instruction; `python -m pytest_pypto info` lists the known operators"
