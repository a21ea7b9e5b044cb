"""Operators between ranks, and the compiler-made forms of collectives."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import INT64, DataType
from ..op_table import Inference
from ..types import CommCtxType, DistributedTensorType, PtrType, Type
from .common import Facts, dtype_kwarg, no_value, op, same_as, scalar, tile

CATEGORY, INTERNAL = "distributed", "distributed-internal"


def _window(i: Inference) -> Type:
    return DistributedTensorType(i.extents(1), dtype_kwarg(i))


def _remote_load(i: Inference) -> Type:
    source, offset, shape = i.tensor(0), i.dims(2), i.extents(3)
    valid = i.dims(4) if i.has(4) else shape
    if not len(offset) == len(shape) == len(valid) == len(source.shape):
        i.fail(f"requires offsets, shape and valid_shape of the rank of {x.text(source.shape)}")
    return tile(shape, source.dtype, valid, None)


def _system() -> None:
    facts: Facts = {"category": CATEGORY}
    op("pld.system.world_size", "", scalar(INT64), doc="number of devices of the run (host code)", **facts)
    ctx = CommCtxType.get()
    op("pld.system.get_comm_ctx", "dist_tensor:tensor", lambda i: ctx, doc="context of a window tensor", **facts)
    for name, doc in (("rank", "own rank"), ("nranks", "number of ranks")):
        op(f"pld.system.{name}", "ctx:handle", scalar(DataType.INT32), doc=doc, **facts)
    operands, doc = "target:tensor peer:index offsets:tuple value:int32", "a signal slot of the peer changed"
    op("pld.system.notify", operands, no_value, "op:int", doc=doc, **facts)
    operands, doc = "signal:tensor offsets:tuple expected:int32", "wait until a local signal slot compares"
    op("pld.system.wait", operands, no_value, "cmp:int", doc=doc, **facts)
    doc = "completion of this task deferred until a signal slot is reached"
    op("pld.system.defer_wait", operands, no_value, "cmp:int", doc=doc, **facts)


def _collectives() -> None:
    facts: Facts = {"category": CATEGORY}
    three = "input:tensor target:tensor signal:tensor"
    op("pld.tensor.allreduce", "target:tensor signal:tensor", same_as(0), "op:int mode:str core_num:int=-", inplace=0,
       doc="reduction over all ranks, in place", **facts)  # fmt: skip
    op("pld.tensor.reduce_scatter", "target:tensor signal:tensor", same_as(0), "op:int", inplace=0,
       doc="row r of the reduction on rank r", **facts)  # fmt: skip
    op("pld.tensor.broadcast", "target:tensor signal:tensor", same_as(0), "root:int", inplace=0,
       doc="the root's data on every rank", **facts)  # fmt: skip
    op("pld.tensor.barrier", "signal:tensor", same_as(0), inplace=0, doc="barrier over all ranks", **facts)
    op("pld.tensor.allgather", three, same_as(1), inplace=1, doc="the inputs of all ranks on every rank", **facts)
    op("pld.tensor.all_to_all", three, same_as(1), inplace=1, doc="block d of each rank sent to rank d", **facts)
    op("pld.tensor.all_to_all_v", f"{three} send_counts:tensor recv_counts:tensor", same_as(1), inplace=1,
       doc="all_to_all with counts", **facts)  # fmt: skip


def _windows() -> None:
    facts: Facts = {"category": CATEGORY}
    ptr = PtrType.get()
    doc = "shared memory of `size` bytes on each rank"
    op("pld.tensor.alloc_window_buffer", "size:index", lambda i: ptr, "name:str=-", doc=doc, **facts)
    op("pld.tensor.window", "buf:any shape:tuple", _window, "dtype:dtype", doc="typed view of shared memory", **facts)
    copy = "dst:tensor peer:index src:tensor dst_offsets:tuple src_offsets:tuple shape:tuple"
    chunks = "chunk_rows:int=- chunk_cols:int=- pipeline:bool=-"
    op("pld.tensor.get", copy, no_value, chunks, core="vector", doc="a region of the peer copied here", **facts)
    op(
        "pld.tensor.put",
        copy,
        no_value,
        f"atomic:int {chunks}",
        core="vector",
        doc="a region copied to the peer",
        **facts,
    )
    staged = "dst:tensor peer:index src:tensor stage:tile stage2:tile dst_offsets:tuple src_offsets:tuple shape:tuple"
    op("pld.tile.get", staged, no_value, core="vector", doc="get through staging tiles", **facts)
    op("pld.tile.put", staged, no_value, "atomic:int", core="vector", doc="put through staging tiles", **facts)
    operands = "target:tensor peer:index offsets:tuple"
    op("pld.tensor.remote_store", f"src:tensor {operands}", same_as(1), "atomic:int", inplace=1,
       doc="a tensor stored at the peer", **facts)  # fmt: skip
    op("pld.tile.remote_store", f"src_tile:tile@Vec,Acc {operands}", same_as(1), "atomic:int", inplace=1,
       doc="a tile stored at the peer", **facts)  # fmt: skip
    op("pld.tile.remote_load", f"{operands} shape:tuple valid_shape:tuple?", _remote_load,
       "allow_physical_tail_padding:bool=-", doc="a window of the peer as a tile", **facts)  # fmt: skip


_BUILTIN = (
    ("all_to_all", "input:tensor target:tensor signal:tensor", "dtype:dtype"),
    ("all_to_all_v", "input:tensor target:tensor signal:tensor send_counts:tensor recv_counts:tensor", "dtype:dtype"),
    ("allgather", "input:tensor target:tensor signal:tensor", "dtype:dtype"),
    ("allreduce", "src:tensor signal:tensor", "op:int dtype:dtype core_num:int=-"),
    ("allreduce_ring", "src:tensor signal:tensor", "op:int dtype:dtype"),
    ("barrier", "signal:tensor", ""),
    ("broadcast", "target:tensor signal:tensor", "root:int dtype:dtype"),
    ("reduce_scatter", "target:tensor signal:tensor", "op:int dtype:dtype"),
)
_HOST = (
    ("make_tensor", "rt:any count:any", "run-time tensor of a handle"),
    ("submit_orchestrator", "rt:any", "start of an orchestrator task"),
    ("submit_worker", "rt:any", "start of a worker task"),
    ("future_get", "future:any", "wait for a future"),
    ("tree_reduce", "rt:any leaves:any", "reduction tree over leaves"),
)


def register_all() -> None:
    """Add the records of this module."""
    _system()
    _collectives()
    _windows()
    for name, operands, kw in _BUILTIN:
        doc = f"compiler-made dispatch of pld.tensor.{name}"
        op(f"builtin.tensor.{name}", operands, no_value, kw, category=INTERNAL, doc=doc)
    for name, operands, doc in _HOST:
        op(f"dist.{name}", operands, no_value, category=INTERNAL, doc=doc)
