"""Cross-core transfers, synchronisation, tasks, on-core arrays and prefetches."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import BOOL, INDEX, TASK_ID, DataType
from ..enums import MemorySpace
from ..expr import Expr, const_value, index
from ..op_table import Inference, Rule
from ..types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    PrefetchAsyncContextType,
    ScalarType,
    TileType,
    Type,
    UnknownType,
)
from .common import VEC, Dims, Facts, dtype_kwarg, is_one, no_value, op, scalar, tensor, tile

_SPLIT_AXIS = {1: 0, 2: 1, 3: 0, 4: 1}
"""Axis that each split code divides: 1 rows, 2 columns, 3 and 4 the same with odd extents; 0 divides nothing."""


# --- cross-core ------------------------------------------------------------------------------------------------------


def _divided(join: bool) -> Rule:
    def rule(i: Inference) -> Type:
        a, code = i.shaped(0), i.kwargs["split"]
        shape, valid = a.shape, a.valid_shape
        if code != 0:
            if code not in _SPLIT_AXIS:
                i.fail(f"takes split 0 (whole), 1 or 3 (rows), 2 or 4 (columns), but got {code}")
            if len(shape) != 2:
                i.fail(f"requires rank 2 to split, but got {x.text(shape)}")
            k = _SPLIT_AXIS.get(code, 0)
            shape, valid = (_at(d, k, x.mul(d[k], index(2)) if join else x.ceil_div(d[k], 2)) for d in (shape, valid))
        if not isinstance(a, TileType):
            return tensor(shape, a.dtype, valid)
        return tile(shape, a.dtype, valid, MemorySpace.Mat if join else VEC)

    return rule


def _at(dims: Dims, k: int, value: Expr) -> Dims:
    return (*dims[:k], value, *dims[k + 1 :])


def _pipe(codes: tuple[int, ...]) -> Rule:
    """Pushes, pops and releases: the type of a popped tile comes from its annotation."""

    def rule(i: Inference) -> Type:
        if i.kwargs.get("split", 0) not in codes:
            i.fail(f"takes split {', '.join(map(str, codes))}, but got {i.kwargs['split']}")
        return UnknownType.get()

    return rule


_TO_VECTOR, _TO_CUBE = _pipe((0, 1, 2, 3, 4)), _pipe((0, 1, 2))


def _cross_core() -> None:
    cat = "cross-core"
    for ns, t in (("tensor", "tensor:tensor"), ("tile", "tile:tile")):
        facts: Facts = {"category": cat}
        shard, gather = ("tile:tile@Acc,Mat,Vec", "tile:tile@Vec") if ns == "tile" else (t, t)
        doc = "this lane's part of a cube result"
        kw = "split:int lane_stride:int=-" if ns == "tile" else "split:int"
        op(f"{ns}.aiv_shard", shard, _divided(False), kw, doc=doc, space=VEC if ns == "tile" else None, **facts)
        doc = "the two lanes' parts joined for the cube"
        space = MemorySpace.Mat if ns == "tile" else None
        op(f"{ns}.aic_gather", gather, _divided(True), "split:int", doc=doc, space=space, **facts)
    pipe: Facts = {"category": cat}
    doc, kw = "a tile sent from the cube to the vector lanes", "split:int lane_stride:int=- id:int=-"
    op("tile.tpush_to_aiv", "tile:tile", _TO_VECTOR, kw, core="cube", doc=doc, **pipe)
    doc = "a tile sent from a vector lane to the cube"
    op("tile.tpush_to_aic", "tile:tile", _TO_CUBE, "split:int id:int=-", core="vector", doc=doc, **pipe)
    doc, kw = "this lane's part of a tile sent by the cube", "split:int=0 lane_stride:int=- id:int=-"
    op("tile.tpop_from_aic", "", _TO_VECTOR, kw, core="vector", space=VEC, doc=doc, **pipe)
    doc = "a tile sent by the vector lanes, merged"
    op("tile.tpop_from_aiv", "", _TO_CUBE, "split:int=0 id:int=-", core="cube", space=MemorySpace.Mat, doc=doc, **pipe)


# --- system ----------------------------------------------------------------------------------------------------------


def _set_ffts(i: Inference) -> Type:
    a = i.tensor(0)
    size = const_value(a.shape[0]) if len(a.shape) == 1 else None
    if a.dtype is not DataType.INT64 or size is None or size < 256:
        i.fail(f"requires a 1-D INT64 workspace of at least 256 elements, but got {a}")
    return UnknownType.get()


def _syncall(i: Inference) -> Type:
    mode, core = i.kwargs.get("mode", "hard"), i.kwargs.get("core_type", "mix")
    if mode not in ("hard", "soft"):
        i.fail(f"takes mode 'hard' or 'soft', but got {mode!r}")
    if core not in ("aiv_only", "aic_only", "mix"):
        i.fail(f"takes core_type 'aiv_only', 'aic_only' or 'mix', but got {core!r}")
    if mode == "hard" and i.args:
        i.fail("takes a workspace only with mode='soft'")
    if mode == "soft":
        if not i.args:
            i.fail("requires gm_workspace with mode='soft'")
        size = const_value(x.volume(i.tensor(0).shape))
        if i.tensor(0).dtype is not DataType.INT32 or (size is not None and size < 16):
            i.fail(f"requires an INT32 workspace of at least 16 elements, but got {i.tensor(0)}")
    return UnknownType.get()


_PIPE_KW = "dir_mask:int slot_size:int slot_num:int=- local_slot_num:int=- id:int=-"


def _init_pipe(i: Inference) -> Type:
    mask, size = i.kwargs["dir_mask"], i.kwargs["slot_size"]
    if mask not in (1, 2, 3):
        i.fail(f"takes dir_mask 1 (cube to vector), 2 (vector to cube) or 3 (both), but got {mask}")
    if size <= 0:
        i.fail(f"requires a positive slot_size in bytes, but got {size}")
    return UnknownType.get()


def _system() -> None:
    sys: Facts = {"category": "system"}
    ends = "c2v_consumer_buf:int32 v2c_consumer_buf:int32"
    for side, core in (("aic", "cube"), ("aiv", "vector")):
        doc = f"set-up of the {core} side of a cross-core pipe"
        op(f"system.{side}_initialize_pipe", ends, _init_pipe, _PIPE_KW, core=core, doc=doc, **sys)
        other = "vector" if side == "aic" else "cube"
        doc = f"a popped slot given back to the {core} core"
        rule = _TO_VECTOR if side == "aic" else _TO_CUBE
        op(f"system.tfree_to_{side}", "tile:tile", rule, "split:int=- id:int=-", core=other, doc=doc, **sys)
    int32 = scalar(DataType.INT32)
    doc = "INT32 base of a named ring buffer of this core; -1 until it is placed"
    op("system.reserve_buffer", "", int32, "name:str size:int base:int=-1", doc=doc, **sys)
    doc = "INT32 base of a buffer reserved in another function"
    op("system.import_peer_buffer", "", int32, "name:str peer_func:str", doc=doc, **sys)
    for name, doc in (("bar_v", "vector"), ("bar_m", "cube"), ("bar_all", "every")):
        op(f"system.{name}", "", no_value, doc=f"barrier of {doc} pipe", **sys)
    op("system.fence", "", no_value, doc="global-memory fence", **sys)
    operands = "tensor:tensor? shapes:tuple? offsets:tuple?"
    op("system.cacheinvalid", operands, no_value, doc="cache invalidation of a region, or of everything", **sys)
    op("system.set_ffts", "workspace:tensor", _set_ffts, doc="workspace of cross-core flags", **sys)
    flags = "set_pipe:int wait_pipe:int event_id:int"
    op("system.sync_src", "", no_value, flags, doc="a flag set from one pipe to another", **sys)
    op("system.sync_dst", "", no_value, flags, doc="wait for a flag between pipes", **sys)
    kw = "pipe:int event_id:int=- ffts_mode:int=- core_type:str=-"
    op("system.sync_set", "event_id_dyn:index?", no_value, kw, doc="cross-core event set", **sys)
    kw = "pipe:int event_id:int=- core_type:str=-"
    op("system.sync_wait", "event_id_dyn:index?", no_value, kw, doc="cross-core event wait", **sys)
    kw, doc = "mode:str=hard core_type:str=mix", "barrier over all participating cores"
    op("system.syncall", "gm_workspace:tensor? used_cores:index?", _syncall, kw, doc=doc, **sys)


def _tasks() -> None:
    task: Facts = {"category": "task"}
    op("system.task_invalid", "", scalar(TASK_ID), doc="the id of no task", **task)
    op(
        "system.task_dummy",
        "deps:scalar|array*",
        scalar(TASK_ID),
        doc="an empty task that joins its dependencies",
        **task,
    )
    op("system.task_is_valid", "task_id:scalar", scalar(BOOL), doc="True when the id names a task", **task)
    int32 = scalar(DataType.INT32)
    op("system.available_cluster_count", "", int32, doc="core groups of the running device", **task)
    op("system.available_aiv_count", "", int32, doc="vector cores of the running device", **task)


# --- arrays, prefetch ------------------------------------------------------------------------------------------------


def _array_create(i: Inference) -> Type:
    extent, dtype = i.args[0], dtype_kwarg(i)
    size = const_value(extent)
    if size is None or size <= 0:
        i.fail(f"requires a positive constant extent, but got {extent}")
    if not (dtype.is_int() or dtype in (BOOL, TASK_ID)):
        i.fail(f"holds integers, BOOL or TASK_ID, but got {dtype.name}")
    return ArrayType(dtype, extent)


def _array(i: Inference) -> ArrayType:
    found = i.args[0].type
    if not isinstance(found, ArrayType):
        raise TypeError(f"The operator {i.op} requires an array, but got {found}")
    size, at = const_value(found.extent), const_value(i.args[1])
    if not i.scalar(1).is_int() or (at is not None and not 0 <= at < (size or at + 1)):
        i.fail(f"requires an integer index within the {size} elements, but got {i.args[1]}")
    return found


def _get_element(i: Inference) -> Type:
    return ScalarType(_array(i).dtype)


def _update_element(i: Inference) -> Type:
    found, value = _array(i), i.scalar(2)
    if value is not found.dtype and not (value is INDEX and found.dtype.is_int()):
        i.fail(f"requires a value of type {found.dtype.name}, but got {value.name}; convert it with pl.cast")
    return found


def _arrays() -> None:
    cat: Facts = {"category": "array"}
    op("array.create", "extent:index", _array_create, "dtype:dtype", doc="list of zeros on the core", **cat)
    op("array.get_element", "array:array index:index", _get_element, doc="one element", **cat)
    doc = "the array with one element replaced"
    op("array.update_element", "array:array index:index value:number", _update_element, doc=doc, **cat)


def _async_prefetch(i: Inference) -> Type:
    shape = i.tensor(0).shape
    if not all(map(is_one, shape[:-1])) or any(const_value(d) is None for d in shape):
        i.fail(f"requires a constant shape of one row, but got {x.text(shape)}")
    return AsyncEventType.get()


def _prefetch() -> None:
    facts: Facts = {"category": "prefetch", "core": "vector"}
    made = PrefetchAsyncContextType.get()
    op("prefetch.make_context", "", lambda i: made, doc="context of asynchronous prefetches", **facts)
    session = AsyncSessionType.get()
    op("prefetch.session", "ctx:handle", lambda i: session, doc="session of a context", **facts)
    doc = "start of pulling a row into the cache"
    op("prefetch.async_prefetch", "src:tensor ctx:handle", _async_prefetch, doc=doc, **facts)
    op("prefetch.wait", "event:handle session:handle", scalar(BOOL), doc="wait for an event", **facts)


def register_all() -> None:
    """Add the records of this module."""
    for group in (_cross_core, _system, _tasks, _arrays, _prefetch):
        group()
