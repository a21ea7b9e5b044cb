"""Barriers, fences, core indices and other operators without tile results."""

from __future__ import annotations

from ...ir.enums import PipeType
from ...ir.expr import Call, Var
from .emitter import Emitter
from .scalars import index_of, scalar
from .slices import elements
from .tensors import offsets, window

_BARRIERS = {"system.bar_all": "PIPE_ALL", "system.bar_v": "PIPE_V", "system.bar_m": "PIPE_M"}
_SYNC_CORES = {"mix": "mix", "aiv_only": "aiv_only", "aic_only": "aic_only"}


def emit_barrier(em: Emitter, call: Call) -> None:
    """Wait until one queue of the core (or all of them) is empty."""
    em.line(f"pto.barrier <{_BARRIERS[call.op.name]}>")


def emit_syncall(em: Emitter, call: Call) -> None:
    """Wait for the other cores of the launch."""
    cores = str(call.kwargs.get("core_type", "mix"))
    mode = str(call.kwargs.get("mode", "hard"))
    if cores not in _SYNC_CORES or mode not in ("hard", "soft"):
        raise em.fail(
            f"syncall(core_type={cores!r}, mode={mode!r}) is unknown; core_type is one of "
            f"{', '.join(_SYNC_CORES)}, mode is hard or soft",
            call.span,
        )
    attributes = f"mode = #pto.sync_all_mode<{mode}>, core_type = #pto.sync_core_type<{_SYNC_CORES[cores]}>"
    operands = ""
    if call.args:
        root = em.tensor(call.args[0])
        sizes = list(root.type.shape)
        names = [index_of(em, s) for s in sizes]
        name, text = window(em, call.args[0], [em.index(0)] * len(sizes), sizes, names)
        operands = f"{name} : {text}"
        if len(call.args) > 1:
            used = scalar(em, call.args[1])
            operands = f"{name}, {used.name} : {text}, {used.type_text}"
    em.line(f"pto.syncall({operands}) {attributes}")


def emit_fence(em: Emitter, call: Call) -> None:
    """Make earlier stores visible."""
    em.line("pto.fence.barrier_all #pto.fence_scope<gm>")


def emit_cacheinvalid(em: Emitter, call: Call) -> None:
    """Forget cached lines: of one window, or all."""
    if not call.args:
        em.line("pto.cmo.cacheinvalid all #pto.address_space<gm>")
        return
    sizes = elements(call.args[1])
    at = offsets(em, elements(call.args[2]))
    name, text = window(em, call.args[0], at, sizes, [index_of(em, s) for s in sizes])
    em.line(f"pto.cmo.cacheinvalid {name} single_cache_line : {text}")


def emit_sync_flag(em: Emitter, call: Call) -> None:
    """Set or await a flag between queues of one core, or between cores."""
    kind = call.op.name.rsplit("_", 1)[1]
    pipe = PipeType(int(call.kwargs["pipe"])).name
    event = scalar(em, call.args[0]).name if call.args else str(int(call.kwargs.get("event_id", 0)))
    mode = call.kwargs.get("ffts_mode")
    suffix = f" {{ffts_mode = {int(mode)} : i32}}" if mode is not None and kind == "set" else ""
    em.line(f"pto.sync.{kind} <PIPE_{pipe}>, {event}{suffix}")


def emit_sync_pair(em: Emitter, call: Call) -> None:
    """`set_flag` or `wait_flag` between two queues."""
    op = "set_flag" if call.op.name == "system.sync_src" else "wait_flag"
    first, second = (PipeType(int(call.kwargs[k])).name for k in ("set_pipe", "wait_pipe"))
    em.line(f"pto.{op} <PIPE_{first}>, <PIPE_{second}>, {int(call.kwargs['event_id'])}")


def emit_set_ffts(em: Emitter, call: Call) -> None:
    """Point the cross-core flags at their workspace."""
    root = em.tensor(call.args[0])
    em.line(f"pto.set_ffts {root.pointer} : !pto.ptr<i64>")


def emit_core_index(em: Emitter, call: Call, result: Var) -> None:
    """Block index, number of blocks or lane, passed as an argument of the kernel."""
    what = {"get_block_idx": "block_idx", "get_block_num": "block_num", "get_subblock_idx": "subblock_idx"}
    argument = em.spmd[what[call.op.name.split(".")[1]]]
    name = em.result_name(result)
    em.line(f"{name} = arith.index_cast {argument} : i32 to index")
    em.define_scalar(result, name, "index")
    em.nonnegative.add(result)
