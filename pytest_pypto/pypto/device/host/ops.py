"""Operators of the host program: memory, views, scalars, task ids. Computing on tensors is in `compute`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.enums import AtomicType
from ...ir.expr import Call
from ...ir.types import ScalarType, TensorType
from ..machine.gm import GlobalBuffer, GmArg, dense_strides
from ..machine.numbers import converter, scalar_of
from .graph import Task
from .scalars import converted
from .values import INVALID, HostTensor, TaskId, storage

if TYPE_CHECKING:
    from .interp import Interpreter

_MOST_ELEMENTS = 1 << 20

HostOp = Callable[["Interpreter", Call], Any]


def _create(it: Interpreter, x: Call) -> HostTensor:
    dtype = x.kwargs["dtype"]
    shape = it.ints(x.args[0])
    name = f"created_{len(it.session.rings.local)}"
    kind = storage(dtype)
    if any(n < 0 for n in shape):
        it.fail(f"a tensor cannot have the extents {shape}")
    address = it.session.rings.allocate(it.site(x, "tensor.create"), math.prod(shape) * kind.itemsize)
    flat = np.zeros(math.prod(shape), kind)
    init = x.kwargs.get("init_value")
    if init is not None:
        flat[...] = scalar_of(init if isinstance(init, (int, float)) else it.number(init), kind)
    track = init is None and it.session.run.log
    root = GlobalBuffer(flat, name, "created", shape, track=track, address=address)
    root.manual_dep = bool(x.kwargs.get("manual_dep", False))
    it.session.created(root)
    return HostTensor(root.whole(), dtype)


def _slice(it: Interpreter, x: Call) -> HostTensor:
    """A window; extents are cut to what the parent has from the offset on."""
    t, shape, offset = it.tensor(x.args[0]), it.ints(x.args[1]), it.ints(x.args[2])
    drop = it.ints(x.args[4]) if len(x.args) > 4 else ()
    lead = len(t.shape) - len(shape)
    if lead < 0 or len(offset) != len(t.shape):
        it.fail(f"slice of {len(shape)} axes at {len(offset)} offsets of a tensor of rank {len(t.shape)}")
    wanted = (1,) * lead + shape
    if any(o < 0 for o in offset):
        it.fail(f"slice starts at the negative offset {offset}")
    cut = tuple(max(min(n, s - o), 0) for n, s, o in zip(wanted, t.shape, offset, strict=True))
    start = sum(o * s for o, s in zip(offset, t.arg.strides, strict=True)) if all(cut) else 0
    keep = [i for i in range(lead, len(t.shape)) if i - lead not in drop]
    found = t.part(start, tuple(cut[i] for i in keep), tuple(t.arg.strides[i] for i in keep))
    if len(x.args) > 3:
        valid = it.ints(x.args[3])
        found.arg.valid = valid or None
    return found


def _reshape(it: Interpreter, x: Call) -> HostTensor:
    t, shape = it.tensor(x.args[0]), it.ints(x.args[1])
    if not t.dense:
        it.fail("reshape of a tensor whose elements do not lie one after the other; copy it in a device region first")
    if math.prod(shape) != math.prod(t.shape):
        it.fail(f"reshape of {t.shape} to {shape} changes the number of elements")
    return t.part(0, shape, dense_strides(shape))


def _axis(it: Interpreter, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        it.fail(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def _transpose(it: Interpreter, x: Call) -> HostTensor:
    t = it.tensor(x.args[0])
    a, b = (_axis(it, it.whole(v), len(t.shape)) for v in x.args[1:3])
    order = list(range(len(t.shape)))
    order[a], order[b] = order[b], order[a]
    return t.part(0, tuple(t.shape[i] for i in order), tuple(t.arg.strides[i] for i in order))


def _view(it: Interpreter, x: Call) -> HostTensor:
    t = it.tensor(x.args[0])
    assert isinstance(x.type, TensorType)
    given = it.ints(x.args[1]) if len(x.args) > 1 else ()
    layout = x.kwargs.get("layout")
    column = layout is not None and getattr(layout, "name", "") == "DN"
    if not given:
        if not column:
            return t
        order = [*range(len(t.shape) - 2), len(t.shape) - 1, len(t.shape) - 2]
        return t.part(0, tuple(t.shape[i] for i in order), tuple(t.arg.strides[i] for i in order))
    if not t.dense:
        it.fail("a view with another shape needs a tensor whose elements lie one after the other")
    strides = list(dense_strides(given))
    if column:
        strides[-2:] = [1, given[-2]]
    return t.part(0, given, tuple(strides))


def _reinterpret(it: Interpreter, x: Call) -> HostTensor:
    t = it.tensor(x.args[0])
    assert isinstance(x.type, TensorType)
    if not t.dense:
        it.fail("reinterpret_view needs a tensor whose elements lie one after the other")
    kind = storage(x.type.dtype)
    first, size = t.arg.offset * t.root.dtype.itemsize, math.prod(t.shape) * t.root.dtype.itemsize
    bytes_ = t.root.flat.view(np.uint8)[first : first + size]
    shape = (
        it.ints(x.args[1]) if len(x.args) > 1 else (*t.shape[:-1], t.shape[-1] * t.root.dtype.itemsize // kind.itemsize)
    )
    if math.prod(shape) * kind.itemsize != bytes_.size:
        it.fail(f"reinterpret_view of {bytes_.size} bytes as {shape} of {kind.itemsize} bytes each")
    if first % kind.itemsize:
        it.fail(f"reinterpret_view of a window that starts at byte {first}, which is no multiple of {kind.itemsize}")
    whole = t.root.flat.view(np.uint8)
    whole = whole[: whole.size - whole.size % kind.itemsize].view(kind)
    root = GlobalBuffer(whole, f"{t.root.name} (reinterpreted)", t.root.role, whole.shape, base=t.root)
    it.session.buffers.append(root)
    arg = GmArg(root, first // kind.itemsize, shape, dense_strides(shape))
    return HostTensor(arg, x.type.dtype, t.task)


def _read(it: Interpreter, x: Call) -> Any:
    t, at = it.tensor(x.args[0]), it.ints(x.args[1])
    _inside(it, t, at)
    start = t.arg.offset + sum(i * s for i, s in zip(at, t.arg.strides, strict=True))
    spot = GmArg(t.root, start, (1,), (1,))
    it.session.wait_for(spot)
    it.session.host_reads(it.site(x, "tensor.read"), spot)
    assert isinstance(x.type, ScalarType)
    return converted(
        np.asarray(t.root.flat[start]).astype(np.float64 if x.type.dtype.is_float() else np.int64).item(), x.type.dtype
    )


def _write(it: Interpreter, x: Call) -> HostTensor:
    t, at, value = it.tensor(x.args[0]), it.ints(x.args[1]), it.number(x.args[2])
    _inside(it, t, at)
    start = t.arg.offset + sum(i * s for i, s in zip(at, t.arg.strides, strict=True))
    spot = GmArg(t.root, start, (1,), (1,))
    it.session.wait_for_all(spot)
    it.session.host_writes(it.site(x, "tensor.write"), spot)
    t.root.flat[start] = scalar_of(value, t.root.dtype)
    return t


def _inside(it: Interpreter, t: HostTensor, at: tuple[int, ...]) -> None:
    from ..findings import Finding, FindingKind

    if len(at) != len(t.shape) or any(not 0 <= i < n for i, n in zip(at, t.shape, strict=False)):
        message = f"element {list(at)} leaves {t.root.name!r}, which has {list(t.shape)} elements here"
        it.session.run.halt(Finding(FindingKind.OUT_OF_BOUNDS, "error", message, it.site(it.node)))


def _dim(it: Interpreter, x: Call) -> int:
    t = it.tensor(x.args[0])
    return t.shape[_axis(it, it.whole(x.args[1]), len(t.shape))]


def _assemble(it: Interpreter, x: Call) -> HostTensor:
    """A copy task: the source's valid part goes into the target at the offset."""
    from ...ir.enums import ArgDirection

    dst, src, offset = it.tensor(x.args[0]), it.tensor(x.args[1]), it.ints(x.args[2])
    lead = len(dst.shape) - len(src.shape)
    extents = (1,) * lead + (src.arg.valid or src.shape)
    if lead < 0 or any(o < 0 or o + n > d for o, n, d in zip(offset, extents, dst.shape, strict=True)):
        it.fail(f"assemble of {src.shape} at {offset} leaves a target of {dst.shape}")
    start = sum(o * s for o, s in zip(offset, dst.arg.strides, strict=True))
    window = dst.part(start, extents, dst.arg.strides)
    change = converter(src.root.dtype, dst.root.dtype)
    add = int(x.kwargs.get("atomic", 0) or 0) == int(AtomicType.Add)
    site = it.site(x, "tensor.assemble")

    def body() -> None:
        source = src.array()
        if src.arg.valid:
            source = source[tuple(slice(0, n) for n in src.arg.valid)]
        values = change(source).reshape(extents)
        it.session.host_reads(site, src.arg, task.number)
        it.session.host_writes(site, window.arg, task.number)
        target = window.array()
        target[...] = target + values if add else values

    number = len(it.session.graph.tasks)
    args = [(src.arg, ArgDirection.Input), (window.arg, ArgDirection.InOut)]
    task = Task(number, "tensor.assemble", args, body)
    it.session.submit(task, [], site)
    return dst.by(number)


def _array_create(it: Interpreter, x: Call) -> list[Any]:
    from ...ir.dtypes import DataType

    size = it.whole(x.args[0])
    if not 0 <= size <= _MOST_ELEMENTS:
        it.fail(f"an array has 0..{_MOST_ELEMENTS} elements, not {size}")
    return [INVALID if x.kwargs.get("dtype") is DataType.TASK_ID else 0] * size


def _array(it: Interpreter, x: Call) -> list[Any]:
    found = it.value(x.args[0])
    if not isinstance(found, list):
        it.fail(f"expected an array, got {type(found).__name__}")
    return found


def _array_get(it: Interpreter, x: Call) -> Any:
    array, i = _array(it, x), it.whole(x.args[1])
    if not 0 <= i < len(array):
        it.fail(f"element {i} leaves an array of {len(array)}")
    return array[i]


def _array_update(it: Interpreter, x: Call) -> list[Any]:
    array, i, value = _array(it, x), it.whole(x.args[1]), it.value(x.args[2])
    if not 0 <= i < len(array):
        it.fail(f"element {i} leaves an array of {len(array)}")
    return [*array[:i], value, *array[i + 1 :]]


def _task_dummy(it: Interpreter, x: Call) -> TaskId:
    """A task without work: it is done when its dependencies are."""
    given = [it.value(a) for a in x.args] + list(x.kwargs.get("deps") or []) + list(x.attrs.get("deps") or [])
    deps: list[int] = []
    for d in given:
        deps += it.task_numbers(it.value(d) if hasattr(d, "span") and not isinstance(d, (TaskId, list)) else d)
    number = len(it.session.graph.tasks)
    it.session.submit(Task(number, "task_dummy", (), lambda: None), deps, it.site(x, "task_dummy"))
    return TaskId(number)


def _task_is_valid(it: Interpreter, x: Call) -> bool:
    found = it.value(x.args[0])
    return isinstance(found, TaskId) and found.number is not None


def _clusters(per: int) -> HostOp:
    def run(it: Interpreter, x: Call) -> int:
        settings, platform = it.session.run.settings, it.session.run.platform
        return (settings.clusters or platform.clusters) * per

    return run


def _same(it: Interpreter, x: Call) -> Any:
    return it.value(x.args[0])


def _set_valid(it: Interpreter, x: Call) -> HostTensor:
    t = it.tensor(x.args[0])
    sizes = tuple(it.whole(v) for v in x.args[1:])
    found = t.part(0, t.shape, t.arg.strides)
    found.arg.valid = t.shape[: len(t.shape) - len(sizes)] + sizes
    return found


def _nothing(it: Interpreter, x: Call) -> None:
    return None


HOST_OPS: dict[str, HostOp] = {
    "tensor.create": _create,
    "tensor.slice": _slice,
    "tensor.reshape": _reshape,
    "tensor.transpose": _transpose,
    "tensor.view": _view,
    "tensor.reinterpret_view": _reinterpret,
    "tensor.read": _read,
    "tensor.write": _write,
    "tensor.dim": _dim,
    "tensor.assemble": _assemble,
    "tensor.set_validshape": _set_valid,
    "tensor.alloc": _nothing,
    "tensor.get_block_idx": lambda it, x: 0,
    "tensor.get_block_num": lambda it, x: 1,
    "tensor.get_subblock_idx": lambda it, x: 0,
    "array.create": _array_create,
    "array.get_element": _array_get,
    "array.update_element": _array_update,
    "system.task_dummy": _task_dummy,
    "system.task_invalid": lambda it, x: INVALID,
    "system.task_is_valid": _task_is_valid,
    "system.available_cluster_count": _clusters(1),
    "system.available_aiv_count": _clusters(2),
}


def _add_computations() -> None:
    from .compute import COMPUTE

    HOST_OPS.update(COMPUTE)


_add_computations()
