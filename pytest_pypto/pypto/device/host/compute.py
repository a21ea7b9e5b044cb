"""Computing on tensors in host functions: programs without device regions run entirely here.

Operands are converted to the result's element type (as the type rule found it), arithmetic runs in FP32 for the small
floats, and one rounding ends it. Only valid elements of a tensor with a valid shape are computed; the others are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.enums import CAST_MODES, PadValue
from ...ir.expr import Call, MakeTuple
from ...ir.types import ScalarType, TensorType
from ..machine.dtypes import F32, Array, DType, is_float
from ..machine.elementwise import BINARY, UNARY, compute_type
from ..machine.numbers import converter, pad_value, scalar_of
from ..machine.select import COMPARE
from .values import HostTensor, fresh, storage

if TYPE_CHECKING:
    from .interp import Interpreter

HostOp = Callable[["Interpreter", Call], Any]
Fn = Callable[..., Any]


def _operand(it: Interpreter, x: Any, kind: DType) -> Any:
    """A tensor operand as an array in the computing type of `kind`, or a scalar."""
    value = it.value(x)
    work = compute_type(kind)
    if isinstance(value, HostTensor):
        it.session.wait_for(value.arg)
        return converter(value.root.dtype, work)(np.array(value.array()))
    if not isinstance(value, (int, float)):
        it.fail(f"expected a tensor or a number, got {type(value).__name__}")
    return np.asarray(scalar_of(value, kind)).astype(work)[()]


def _result(it: Interpreter, x: Call, values: Any, work: DType) -> Any:
    if isinstance(x.type, ScalarType):
        return np.asarray(values).item()
    assert isinstance(x.type, TensorType)
    kind = storage(x.type.dtype)
    return fresh(converter(work, kind)(np.asarray(values, work)), x.type.dtype, x.op.name)


def _kind(it: Interpreter, x: Call) -> DType:
    if not isinstance(x.type, (TensorType, ScalarType)):
        it.fail(f"{x.op.name} has no known result type")
    return storage(x.type.dtype)


def elementwise(floats: Fn, integers: Fn) -> HostOp:
    """Operands broadcast like numpy arrays."""

    def run(it: Interpreter, x: Call) -> Any:
        kind = _kind(it, x)
        args = [_operand(it, a, kind) for a in x.args]
        fn = floats if is_float(kind) else integers
        args = [np.asarray(a, compute_type(kind)) for a in args]
        return _result(it, x, fn(*args), compute_type(kind))

    return run


def _cast(it: Interpreter, x: Call) -> HostTensor:
    t = it.tensor(x.args[0])
    it.session.wait_for(t.arg)
    target = x.kwargs["target_type"]
    mode = CAST_MODES[int(x.kwargs.get("mode", 2))].upper()
    return fresh(converter(t.root.dtype, storage(target), mode)(np.array(t.array())), target, x.op.name)


def _compare(it: Interpreter, x: Call) -> HostTensor:
    kind = _kind(it, x)
    a, b = (_operand(it, v, kind) for v in x.args)
    test = list(COMPARE.values())[int(x.kwargs.get("cmp_type", 0))]
    return _result(it, x, test(a, b).astype(compute_type(kind)), compute_type(kind))  # type: ignore[no-any-return]


def _axis(x: Call, default: int) -> int:
    given = x.kwargs.get("axis")
    return default if given is None else int(given)


def reduction(fn: np.ufunc, default: int) -> HostOp:
    """Reduce one axis; `keep_dim=False` drops it."""

    def run(it: Interpreter, x: Call) -> Any:
        kind = _kind(it, x)
        values = _operand(it, x.args[0], kind)
        work = compute_type(kind)
        out = fn.reduce(values, axis=_axis(x, default), dtype=work, keepdims=bool(x.kwargs.get("keep_dim", True)))
        return _result(it, x, out, work)

    return run


def position(fn: Fn, default: int) -> HostOp:
    """Index of the largest or smallest element along one axis; the lowest index on ties."""

    def run(it: Interpreter, x: Call) -> Any:
        t = it.tensor(x.args[0])
        it.session.wait_for(t.arg)
        values = np.array(t.array())
        values = values.astype(F32) if is_float(values.dtype) else values
        out = fn(values, axis=_axis(x, default), keepdims=bool(x.kwargs.get("keep_dim", True)))
        return _result(it, x, out.astype(np.int32), np.dtype(np.int32))

    return run


def _matmul(it: Interpreter, x: Call) -> Any:
    acc = x.op.name == "tensor.matmul_acc"
    tensors = [it.tensor(a) for a in (x.args[1:3] if acc else x.args[:2])]
    arrays = []
    for t, key in zip(tensors, ("a_trans", "b_trans"), strict=True):
        it.session.wait_for(t.arg)
        m = np.array(t.array())
        m = m.astype(F32) if is_float(m.dtype) else m.astype(np.int64)
        arrays.append(np.swapaxes(m, -1, -2) if x.kwargs.get(key) else m)
    product = np.matmul(*arrays)
    if acc and not _fresh_start(it, x):
        product = product + np.array(it.tensor(x.args[0]).array()).astype(product.dtype)
    return _result(it, x, product, product.dtype)


def _fresh_start(it: Interpreter, x: Call) -> bool:
    return len(x.args) > 3 and bool(it.value(x.args[3]))


def _full(it: Interpreter, x: Call) -> Any:
    kind = _kind(it, x)
    return _result(it, x, np.full(it.ints(x.args[0]), scalar_of(it.number(x.args[1]), kind)), kind)


def _ci(it: Interpreter, x: Call) -> Any:
    kind = _kind(it, x)
    shape = next(it.ints(a) for a in x.args if isinstance(a, MakeTuple))
    start = next(it.whole(a) for a in x.args if not isinstance(a, MakeTuple))
    step = -1 if x.kwargs.get("descending") else 1
    return _result(it, x, (start + step * np.arange(shape[-1])).reshape(shape).astype(kind), kind)


def _expands(it: Interpreter, x: Call) -> Any:
    kind = _kind(it, x)
    shape = it.tensor(x.args[0]).shape
    return _result(it, x, np.full(shape, scalar_of(it.number(x.args[1]), kind)), kind)


def _repeat(it: Interpreter, x: Call) -> Any:
    kind = _kind(it, x)
    shape = it.tensor(x.args[0]).shape
    return _result(it, x, np.broadcast_to(_operand(it, x.args[1], kind), shape), compute_type(kind))


def _concat(it: Interpreter, x: Call) -> Any:
    kind = _kind(it, x)
    return _result(it, x, np.concatenate([_operand(it, a, kind) for a in x.args], axis=-1), compute_type(kind))


_PADS = {PadValue.null: 0, PadValue.zero: 1, PadValue.max: 2, PadValue.min: 3}


def _fillpad(it: Interpreter, x: Call) -> Any:
    t, kind = it.tensor(x.args[0]), _kind(it, x)
    it.session.wait_for(t.arg)
    shape = it.ints(x.args[1]) if len(x.args) > 1 else t.shape
    out = np.full(shape, pad_value(kind, _PADS.get(x.kwargs.get("pad_value", PadValue.zero), 1)))
    box = tuple(slice(0, n) for n in (t.arg.valid or t.shape))
    out[box] = t.array()[box]
    return _result(it, x, out, kind)


def _gather(it: Interpreter, x: Call) -> Any:
    kind = _kind(it, x)
    values = _operand(it, x.args[0], kind)
    index = it.tensor(x.args[1])
    it.session.wait_for(index.arg)
    axis = int(x.kwargs.get("dim", -1))
    return _result(
        it, x, np.take_along_axis(values, np.array(index.array()).astype(np.int64), axis), compute_type(kind)
    )


def _named(names: Sequence[str], op: HostOp) -> dict[str, HostOp]:
    return {f"tensor.{n}": op for n in names}


def _expdif(a: Any, b: Any) -> Any:
    return np.exp(a - b)


def _table() -> dict[str, HostOp]:
    table: dict[str, HostOp] = {}
    pairs = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "fmod": "fmod", "maximum": "max"}
    pairs |= {"minimum": "min", "and": "and", "or": "or", "xor": "xor", "shl": "shl", "shr": "shr"}
    for name, key in pairs.items():
        op = elementwise(*BINARY[key])
        table |= _named([name, f"{name}s"], op)
    for key in ("add", "sub", "mul", "div", "max", "min"):
        table |= _named([f"row_expand_{key}", f"col_expand_{key}"], elementwise(*BINARY[key]))
    table |= _named(["row_expand_expdif", "col_expand_expdif"], elementwise(_expdif, _expdif))
    for name in ("exp", "log", "sqrt", "rsqrt", "recip", "neg", "abs", "not"):
        table |= _named([name], elementwise(*UNARY[name]))
    table |= _named(["sin"], elementwise(np.sin, np.sin)) | _named(["cos"], elementwise(np.cos, np.cos))
    for key, fn in (("sum", np.add), ("max", np.maximum), ("min", np.minimum), ("prod", np.multiply)):
        table[f"tensor.row_{key}"], table[f"tensor.col_{key}"] = reduction(fn, -1), reduction(fn, -2)
    for key, pick in (("argmax", np.argmax), ("argmin", np.argmin)):
        table[f"tensor.row_{key}"], table[f"tensor.col_{key}"] = position(pick, -1), position(pick, -2)
    table |= _named(["cast"], _cast) | _named(["cmp"], _compare) | _named(["matmul", "matmul_acc"], _matmul)
    table |= _named(["full"], _full) | _named(["ci"], _ci) | _named(["expands"], _expands)
    table |= _named(["row_expand", "col_expand", "expand_clone"], _repeat) | _named(["concat"], _concat)
    table |= _named(["fillpad", "fillpad_expand"], _fillpad) | _named(["gather"], _gather)
    return table


COMPUTE = _table()


def as_array(t: HostTensor) -> Array:
    """The elements of a host tensor, for returning."""
    return t.array()
