"""Printed form of expressions and types."""

from __future__ import annotations

import functools
import keyword
import math
from collections.abc import Iterable
from enum import Enum
from typing import Any

from . import expr as e
from . import types as t
from .dtypes import FP32, INDEX, DataType
from .enums import CAST_MODES, ArgDirection, AtomicType, MemorySpace, PipeType
from .print_names import Names, legal

_DIRECTION = {
    ArgDirection.Input: "input",
    ArgDirection.Output: "output",
    ArgDirection.InOut: "inout",
    ArgDirection.OutputExisting: "output_existing",
    ArgDirection.NoDep: "no_dep",
    ArgDirection.Scalar: "scalar",
}
_LEVELS: tuple[tuple[type[e.Expr], ...], ...] = (
    (e.Or,),
    (e.And,),
    (e.Not,),
    (e.Eq, e.Ne, e.Lt, e.Le, e.Gt, e.Ge),
    (e.BitOr,),
    (e.BitXor, e.Xor),
    (e.BitAnd,),
    (e.BitShiftLeft, e.BitShiftRight),
    (e.Add, e.Sub),
    (e.Mul, e.FloorDiv, e.FloatDiv, e.FloorMod),
    (e.Neg, e.BitNot),
    (e.Pow,),
)
_PRECEDENCE = {cls: level for level, classes in enumerate(_LEVELS) for cls in classes}
_ATOM = len(_LEVELS) + 1
_COMPARISONS = _LEVELS[3]
_DEVICE = frozenset({"device"})
_PIPE_KEYS = frozenset({"set_pipe", "wait_pipe", "pipe"})


def float_text(value: float) -> str:
    """17 significant digits, which read back to the same bits; non-finite values as a call of `float`."""
    if not math.isfinite(value):
        return f'float("{value}")'
    text = f"{value:.17g}"
    return text if any(c in text for c in ".e") else text + ".0"


class ExprPrinter:
    """Prints expressions and types with the names of one function."""

    def __init__(self, names: Names | None, prefix: str = "pl", explicit_layout: bool = False, member: bool = True):
        self.names = names
        self.p = prefix
        self.explicit_layout = explicit_layout
        self.callee = "self." if member else ""
        self.signature = False
        self.in_region = False
        self._types: dict[tuple[int, bool], tuple[t.Type, str]] = {}

    def name(self, var: e.Var) -> str:
        return legal(var.name_hint) if self.names is None else self.names.of(var)

    def expr(self, x: e.Expr, typed: bool = False) -> str:
        """Text of an expression; `typed` writes INDEX constants as `pl.const`, so that nothing is folded on reading."""
        if isinstance(x, e.Var):
            return self.memref(x) if isinstance(x, e.MemRef) else self.name(x)
        if isinstance(x, e.ConstInt):
            return str(x.value) if x.dtype is INDEX and not typed else self.const(str(x.value), x.dtype)
        if isinstance(x, e.ConstFloat):
            text = float_text(x.value)
            return text if x.dtype is FP32 and not typed else self.const(text, x.dtype)
        if isinstance(x, e.ConstBool):
            return str(x.value)
        if isinstance(x, e.Call):
            return self.call(x)
        if isinstance(x, e.Submit):
            return self.submit(x)
        if isinstance(x, e.MakeTuple):
            return f"[{self.join(x.elements)}]"
        if isinstance(x, e.TupleGetItemExpr):
            return f"{self.child(x.tuple, _ATOM)}[{x.index}]"
        if isinstance(x, e.BinaryExpr):
            return self.binary(x, typed)
        if isinstance(x, e.UnaryExpr):
            return self.unary(x, typed)
        raise TypeError(f"cannot print {type(x).__name__}: not an IR expression")

    def join(self, values: Iterable[e.Expr]) -> str:
        return ", ".join([self.expr(v) for v in values])

    def const(self, text: str, dtype: DataType) -> str:
        return f"{self.p}.const({text}, {self.dtype(dtype)})"

    def dtype(self, dtype: DataType) -> str:
        return f"{self.p}.{dtype.name}"

    def child(self, x: e.Expr, level: int, typed: bool = False, right: bool = False) -> str:
        mine = _PRECEDENCE.get(type(x), _ATOM)
        text = self.expr(x, typed)
        if isinstance(x, (e.ConstInt, e.ConstFloat)) and text.startswith("-") and level > _PRECEDENCE[e.Mul]:
            return f"({text})"
        return f"({text})" if mine < level or (right and mine == level) else text

    def binary(self, x: e.BinaryExpr, typed: bool) -> str:
        typed = typed or (_constant(x.left) and _constant(x.right))
        if isinstance(x, (e.Min, e.Max)):
            return f"{self.p}.{x.symbol}({self.expr(x.left, typed)}, {self.expr(x.right, typed)})"
        level = _PRECEDENCE[type(x)]
        power, chain = isinstance(x, e.Pow), isinstance(x, _COMPARISONS)
        left = self.child(x.left, level, typed, right=power or chain)
        return f"{left} {x.symbol} {self.child(x.right, level, typed, right=not power)}"

    def unary(self, x: e.UnaryExpr, typed: bool) -> str:
        if isinstance(x, e.Cast):
            return f"{self.p}.cast({self.expr(x.operand, typed)}, {self.dtype(x.dtype)})"
        if isinstance(x, e.Abs):
            return f"abs({self.expr(x.operand, typed)})"
        typed = typed or _constant(x.operand)
        symbol = "not " if isinstance(x, e.Not) else x.symbol
        return symbol + self.child(x.operand, _PRECEDENCE[type(x)], typed)

    # calls -----------------------------------------------------------------------------------------------------

    def call(self, x: e.Call) -> str:
        if isinstance(x.op, e.GlobalVar):
            args = [self.expr(a) for a in x.args] + self.kwargs(x.kwargs)
            if "device" in x.attrs:
                args.append(f"device={self.value(x.attrs['device'])}")
            return f"{self.callee}{x.op.name}({', '.join(args + self.attrs(x.attrs, _DEVICE))})"
        return f"{_operator(x.op.name, self.p)}({', '.join(self.op_args(x) + self.attrs(x.attrs))})"

    def op_args(self, x: e.Call) -> list[str]:
        special = _SPECIAL.get(x.op.name)
        if special is not None:
            made: list[str] | None = special(self, x)
            if made is not None:
                return made
        kwargs = x.kwargs
        if self.in_region and x.op.name.endswith((".aiv_shard", ".aic_gather")):
            kwargs = {k: v for k, v in kwargs.items() if k != "split"}
        return [self.expr(a) for a in x.args] + self.kwargs(kwargs)

    def kwargs(self, kwargs: dict[str, Any]) -> list[str]:
        return [f"{key}={self.value(value, key)}" for key, value in kwargs.items()] if kwargs else []

    def value(self, value: Any, key: str = "", quote: str = "'") -> str:
        """A keyword or attribute value."""
        if isinstance(value, bool):
            return str(value)
        if isinstance(value, (PipeType, AtomicType)):
            return f"{self.p}.{type(value).__name__}.{value.name}"
        if isinstance(value, int):
            return self._int_value(value, key)
        if isinstance(value, float):
            return float_text(value)
        if isinstance(value, str):
            return _quoted(value, quote)
        if isinstance(value, DataType):
            return self.dtype(value)
        if isinstance(value, ArgDirection):
            return f"{self.p}.adir.{_DIRECTION[value]}"
        if isinstance(value, MemorySpace):
            return f"{self.p}.Mem.{value.name}"
        if isinstance(value, Enum):
            return f"{self.p}.{type(value).__name__}.{value.name}"
        if isinstance(value, e.Expr):
            return self.expr(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self.value(v, '', quote) for v in value)}]"
        if value is None:
            return "None"
        raise TypeError(f"cannot print attribute {key!r} with value {value!r}")

    def _int_value(self, value: int, key: str) -> str:
        if key == "mode" and 0 <= value < len(CAST_MODES):
            return f"'{CAST_MODES[value]}'"
        if key == "atomic":
            return f"{self.p}.AtomicType.{AtomicType(value).name}"
        if key in _PIPE_KEYS:
            return f"{self.p}.PipeType.{PipeType(value).name}"
        return str(value)

    def attrs(self, attrs: dict[str, Any], hidden: frozenset[str] = frozenset()) -> list[str]:
        """`attrs={...}` as a list of one item, or empty."""
        if not attrs:
            return []
        text = self.attr_items({k: v for k, v in attrs.items() if k not in hidden})
        return [f"attrs={{{text}}}"] if text else []

    def attr_items(self, attrs: dict[str, Any]) -> str:
        first = [k for k in ("dump_vars", "arg_directions") if k in attrs]
        order = first + [k for k in attrs if k not in first]
        return ", ".join(f"{_quoted(k, chr(34))}: {self.value(attrs[k], k, chr(34))}" for k in order)

    def submit(self, x: e.Submit) -> str:
        parts = [f"{self.callee}{x.op.name}", *(self.expr(a) for a in x.args)]
        if x.deps:
            parts.append(f"deps=[{self.join(x.deps)}]")
        if x.attrs.get("dump_vars"):
            parts.append(f"dumps={self.value(x.attrs['dump_vars'])}")
        if x.core_num is not None:
            parts.append(f"core_num={self.expr(x.core_num)}")
            parts += ["sync_start=True"] if x.sync_start else []
        parts += ["allow_early_resolve=True"] if x.allow_early_resolve else []
        if x.predicate is not None:
            parts.append(f"predicate=({self.expr(x.predicate)})")
        parts += self.kwargs(x.kwargs) + self.attrs(x.attrs, frozenset({"dump_vars"}))
        verb = "submit" if x.core_num is None else "spmd_submit"
        return f"{self.p}.{verb}({', '.join(parts)})"

    # types -----------------------------------------------------------------------------------------------------

    def dims(self, dims: Iterable[e.Expr]) -> str:
        """Extents: constants bare, variables by name, composites with typed constants."""
        return "[" + ", ".join([str(d.value) if isinstance(d, e.ConstInt) else self.expr(d, True) for d in dims]) + "]"

    def type(self, x: t.Type) -> str:
        """Text of a type; one that a function uses many times is printed once, inside and outside of the signature."""
        key = (id(x), self.signature)
        known = self._types.get(key)
        if known is None:
            known = self._types[key] = (x, self._type(x))
        return known[1]

    def _type(self, x: t.Type) -> str:
        if isinstance(x, t.ScalarType):
            return f"{self.p}.Scalar[{self.dtype(x.dtype)}]"
        if isinstance(x, t.DistributedTensorType):
            return self.tensor("pld.DistributedTensor", x)
        if isinstance(x, t.TensorType):
            return self.tensor(f"{self.p}.Tensor", x)
        if isinstance(x, t.TileType):
            return self.tile(x)
        if isinstance(x, t.ArrayType):
            return f"{self.p}.Array[{self.expr(x.extent)}, {self.dtype(x.dtype)}]"
        if isinstance(x, t.TupleType):
            return f"{self.p}.Tuple[{', '.join(self.type(y) for y in x.types) or '()'}]"
        return f"{_HANDLES.get(type(x), '{p}.' + type(x).__name__).format(p=self.p)}"

    def tensor(self, head: str, x: t.TensorType) -> str:
        parts = [self.dims(x.shape), self.dtype(x.dtype)]
        if x.tensor_view is not None:
            parts.append(self.tensor_view(x.tensor_view))
        if x.memref is not None:
            parts.append(self.memref(x.memref))
        window = getattr(x, "window_buffer", None)
        if self.explicit_layout and window is not None:
            parts.append(f'"window_buffer={window.name_hint}"')
        return f"{head}[{', '.join(parts)}]"

    def tensor_view(self, view: t.TensorView) -> str:
        parts = [f"valid_shape={self.dims(view.valid_shape)}"] if view.valid_shape else []
        parts += [f"stride={self.dims(view.stride)}", f"layout={self.p}.TensorLayout.{view.layout.name}"]
        if view.pad.value:
            parts.append(f"pad={self.p}.PadValue.{view.pad.name}")
        return f"{self.p}.TensorView({', '.join(parts)})"

    def tile(self, x: t.TileType) -> str:
        parts = [self.dims(x.shape), self.dtype(x.dtype)]
        if x.memref is not None:
            parts.append(self.memref(x.memref))
        if x.space is not None:
            parts.append(f"{self.p}.Mem.{x.space.name}")
        if x.tile_view is not None or self.explicit_layout:
            parts.append(self.tile_view(x))
        return f"{self.p}.Tile[{', '.join(parts)}]"

    def tile_view(self, x: t.TileType) -> str:
        view, implied = x.get_effective_tile_view(), t.implicit_tile_view(x.shape, x.space)
        parts = [] if view.valid_shape is None else [f"valid_shape={self.dims(view.valid_shape)}"]
        if view.stride is not None:
            parts.append(f"stride={self.dims(view.stride)}")
        if view.start_offset is not None:
            parts.append(f"start_offset={self.expr(view.start_offset, not isinstance(view.start_offset, e.ConstInt))}")
        for key in ("blayout", "slayout"):
            if self.explicit_layout or getattr(view, key) is not getattr(implied, key):
                parts.append(f"{key}={self.p}.TileLayout.{getattr(view, key).name}")
        if self.explicit_layout or view.fractal != implied.fractal:
            parts.append(f"fractal={view.fractal}")
        if view.pad.value:
            parts.append(f"pad={self.p}.PadValue.{view.pad.name}")
        if view.compact.value:
            parts.append(f"compact={self.p}.CompactMode.{view.compact.name}")
        return f"{self.p}.TileView({', '.join(parts)})"

    def memref(self, m: e.MemRef) -> str:
        bare = self.names is not None and m.base_ in self.names.defined and not self.signature
        base = self.name(m.base_) if bare else f'"{m.base_.name_hint}"'
        slots = [f"slots={m.slot_count_}"] if m.slot_count_ > 1 else []
        if m.is_pinned_:
            head = [f'"{m.base_.name_hint}"', *slots]
        else:
            head = [base, self.expr(m.byte_offset_), str(m.size_), *slots]
        slot = "" if m.slot_index_ is None else f"[{self.expr(m.slot_index_)}]"
        return f"{self.p}.MemRef({', '.join(head)}){slot}"


_HANDLES: dict[type, str] = {
    t.PtrType: "{p}.Ptr",
    t.WindowBufferType: "pld.WindowBufferType",
    t.CommCtxType: "pld.CommCtxType",
    t.PrefetchAsyncContextType: "{p}.PrefetchAsyncContext",
    t.AsyncEventType: "{p}.AsyncEvent",
    t.AsyncSessionType: "{p}.AsyncSession",
}


@functools.cache
def _operator(name: str, prefix: str) -> str:
    """What is called for the operator `name`; names that end in a keyword get an underscore."""
    if keyword.iskeyword(name.rsplit(".", 1)[-1]):
        name += "_"
    return name if name.startswith("pld.") else f"{prefix}.{name}"


def _constant(x: e.Expr) -> bool:
    if isinstance(x, e.BinaryExpr):
        return _constant(x.left) and _constant(x.right)
    if isinstance(x, (e.Neg, e.BitNot)):
        return _constant(x.operand)
    return isinstance(x, (e.ConstInt, e.ConstFloat))


def _quoted(text: str, quote: str) -> str:
    body = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text.replace("\\", "\\\\")
    return quote + body.replace(quote, "\\" + quote) + quote


def _full(p: ExprPrinter, x: e.Call) -> list[str] | None:
    if len(x.args) != 2 or not isinstance(x.args[1], (e.ConstInt, e.ConstFloat)):
        return None
    v = x.args[1]
    value = str(v.value) if isinstance(v, e.ConstInt) else float_text(v.value)
    return [p.expr(x.args[0]), *p.kwargs(x.kwargs), f"value={value}"]


def _alloc(p: ExprPrinter, x: e.Call) -> list[str] | None:
    space = e.const_value(x.args[0]) if x.args else None
    if space is None:
        return None
    rest = [p.expr(a) for a in x.args[1:]]
    return [f"{p.p}.Mem.{MemorySpace(space).name}", *rest, *p.kwargs(x.kwargs)]


def _reinterpret_view(p: ExprPrinter, x: e.Call) -> list[str] | None:
    shape = [f"shape={p.expr(x.args[1])}"] if len(x.args) > 1 else []
    return [p.expr(x.args[0]), *p.kwargs(x.kwargs), *shape]


def _task_dummy(p: ExprPrinter, x: e.Call) -> list[str] | None:
    return [f"deps=[{p.join(x.args)}]", *p.kwargs(x.kwargs)]


def _syncall(p: ExprPrinter, x: e.Call) -> list[str] | None:
    if x.kwargs.get("mode") != "soft":
        return None
    names = ("gm_workspace", "used_cores")
    given = [f"{n}={p.expr(a)}" for n, a in zip(names, x.args, strict=False)]
    return [f"{k}={p.value(v, k, chr(34))}" for k, v in x.kwargs.items()] + given


def _trailing_name(arg: e.Expr) -> str:
    return "valid_shape" if isinstance(arg, e.MakeTuple) else "scratch"


def _trailing(count: int) -> Any:
    def special(p: ExprPrinter, x: e.Call) -> list[str] | None:
        extra = [f"{_trailing_name(a)}={p.expr(a)}" for a in x.args[count:]]
        return [*(p.expr(a) for a in x.args[:count]), *p.kwargs(x.kwargs), *extra]

    return special


_SPECIAL: dict[str, Any] = {
    "tile.full": _full,
    "tensor.full": _full,
    "tile.alloc": _alloc,
    "tensor.alloc": _alloc,
    "tile.reinterpret_view": _reinterpret_view,
    "tensor.reinterpret_view": _reinterpret_view,
    "system.task_dummy": _task_dummy,
    "system.syncall": _syncall,
    "tile.mgather": _trailing(2),
}
