"""Classes that users write in annotations, and that wrap IR values when DSL functions are called from Python.

`pl.Tensor[[64, 64], pl.FP32]` is an *annotation*: it has a shape and a dtype, but stands for no value. The same class
wraps an IR expression when `expr` is given. Nothing here needs more than the IR types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from ..ir import types as t
from ..ir.dtypes import INDEX, TASK_ID, DataType
from ..ir.enums import MemorySpace, ParamDirection, TensorLayout
from ..ir.expr import Expr, MemRef, Var


class _Value:
    """Base of wrappers: an IR expression, or an annotation without one."""

    _kind: ClassVar[str]
    _annotation_only: bool
    _expr: Expr | None

    def _init_value(self, expr: Expr | None, annotation_only: bool) -> None:
        self._expr, self._annotation_only = expr, annotation_only

    def unwrap(self) -> Expr:
        """The IR expression.

        Raises:
            ValueError: this is an annotation, not a value.
        """
        if self._expr is None:
            raise ValueError(
                f"this pl.{self._kind} is an annotation without a value; in a @pl.function use a variable of this type"
            )
        return self._expr

    def _subscript(self, index: object) -> Any:
        from .op.subscript import read_subscript

        return wrap(read_subscript(self.unwrap(), index))


def _items(params: object) -> tuple[Any, ...]:
    return params if isinstance(params, tuple) else (params,)


class Tensor(_Value):
    """A region of global memory: `pl.Tensor[[rows, cols], dtype]`, optionally with a layout, a view or a MemRef."""

    _kind = "Tensor"

    def __init__(
        self,
        shape: Sequence[Any] | None = None,
        dtype: DataType | None = None,
        expr: Expr | None = None,
        layout: TensorLayout | None = None,
        memref: MemRef | None = None,
        _annotation_only: bool = False,
    ) -> None:
        self._init_value(expr, _annotation_only or expr is None)
        have = expr.type if expr is not None and isinstance(expr.type, t.TensorType) else None
        self.shape: Any = shape if shape is not None or have is None else list(have.shape)
        self.dtype = dtype if dtype is not None or have is None else have.dtype
        self.layout, self.memref = layout, memref
        self.view: t.TensorView | None = None if have is None else have.tensor_view

    def __class_getitem__(cls, params: object) -> Any:
        shape, dtype, *rest = _shaped_params(cls._kind, params)
        made = cls(shape, dtype, _annotation_only=True)
        for item in rest:
            if isinstance(item, TensorLayout):
                made.layout = item
            elif isinstance(item, t.TensorView):
                made.view = item
            elif isinstance(item, MemRef):
                made.memref = item
            elif not isinstance(item, str):
                raise TypeError(
                    f"pl.{cls._kind} takes a layout, a pl.TensorView or a pl.MemRef after the dtype, got {item!r}"
                )
        return made

    def bind_dynamic(self, dim: int, var: DynVar) -> None:
        """Mark extent `dim` of a jit parameter as the symbol `var`. Read from the source; does nothing when called."""

    def __getitem__(self, indices: object) -> Any:
        return self._subscript(indices)

    def __repr__(self) -> str:
        return f"{self._kind}[{self.shape}, {self.dtype}]"


class DistributedTensor(Tensor):
    """A tensor that other ranks can reach: `pld.DistributedTensor[[rows, cols], dtype]`."""

    _kind = "DistributedTensor"


def _shaped_params(kind: str, params: object) -> tuple[Any, ...]:
    items = _items(params)
    if len(items) < 2:
        raise TypeError(f"pl.{kind} needs a shape and a dtype, as in pl.{kind}[[64, 64], pl.FP32]; got {params!r}")
    return items


class Tile(_Value):
    """An on-chip buffer: `pl.Tile[[rows, cols], dtype]`, optionally with a MemRef, a memory space and a view."""

    _kind = "Tile"

    def __init__(
        self,
        shape: Sequence[Any] | None = None,
        dtype: DataType | None = None,
        expr: Expr | None = None,
        memref: MemRef | None = None,
        memory_space: MemorySpace | None = None,
        tile_view: t.TileView | None = None,
        _annotation_only: bool = False,
    ) -> None:
        self._init_value(expr, _annotation_only or expr is None)
        have = expr.type if expr is not None and isinstance(expr.type, t.TileType) else None
        self.shape: Any = shape if shape is not None or have is None else list(have.shape)
        self.dtype = dtype if dtype is not None or have is None else have.dtype
        self.memref = memref
        self.memory_space = memory_space if memory_space is not None or have is None else have.memory_space
        self.tile_view = tile_view if tile_view is not None or have is None else have.tile_view

    def __class_getitem__(cls, params: object) -> Tile:
        shape, dtype, *rest = _shaped_params(cls._kind, params)
        made = cls(shape, dtype, _annotation_only=True)
        for item in rest:
            if isinstance(item, MemRef):
                made.memref = item
            elif isinstance(item, MemorySpace):
                made.memory_space = item
            elif isinstance(item, t.TileView):
                made.tile_view = item
            else:
                raise TypeError(
                    f"pl.Tile takes a pl.MemRef, a pl.Mem space or a pl.TileView after the dtype, got {item!r}"
                )
        return made

    def __getitem__(self, indices: object) -> Any:
        return self._subscript(indices)

    def __repr__(self) -> str:
        return f"Tile[{self.shape}, {self.dtype}]"


def _operator(name: str, swap: bool = False) -> Callable[[Scalar, Any], Scalar]:
    def method(self: Scalar, other: Any) -> Scalar:
        from ..ir import scalar_ops

        mine, theirs = self.unwrap(), unwrap(other)
        left, right = (theirs, mine) if swap else (mine, theirs)
        return Scalar(expr=getattr(scalar_ops, name)(left, right))

    return method


class Scalar(_Value):
    """One number: `pl.Scalar[dtype]`. Arithmetic on values builds scalar expressions."""

    _kind = "Scalar"

    def __init__(self, dtype: DataType | None = None, expr: Expr | None = None, _annotation_only: bool = False) -> None:
        self._init_value(expr, _annotation_only or expr is None)
        have = expr.type if expr is not None and isinstance(expr.type, t.ScalarType) else None
        self.dtype = dtype if dtype is not None or have is None else have.dtype

    def __class_getitem__(cls, dtype: object) -> Scalar:
        if not isinstance(dtype, DataType):
            raise TypeError(f"pl.Scalar takes one dtype, as in pl.Scalar[pl.INT32]; got {dtype!r}")
        return cls(dtype, _annotation_only=True)

    def __bool__(self) -> bool:
        raise TypeError("a pl.Scalar has no truth value in Python; use it in an `if` inside a @pl.function")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        both = isinstance(other, Scalar) and self._annotation_only and other._annotation_only
        return both and type(self) is type(other) and self.dtype is getattr(other, "dtype", None)

    def __hash__(self) -> int:
        return hash((Scalar, self.dtype)) if self._annotation_only else id(self)

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", True)
    __truediv__, __rtruediv__ = _operator("truediv"), _operator("truediv", True)
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", True)
    __lt__, __le__, __gt__, __ge__ = (_operator(n) for n in ("lt", "le", "gt", "ge"))

    def __neg__(self) -> Scalar:
        from ..ir import scalar_ops

        return Scalar(expr=scalar_ops.neg(self.unwrap()))

    def __repr__(self) -> str:
        return f"Scalar[{self.dtype}]"


class DynVar(Scalar):
    """A symbolic extent, made by `pl.dynamic("NAME")`. One object is one symbol."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"pl.dynamic() takes the name of a symbol (a Python identifier), got {name!r}")
        super().__init__(INDEX)
        self.name = name

    def unwrap(self) -> Expr:
        """The IR variable of this symbol, made on first use (type Scalar[INDEX])."""
        if self._expr is None:
            self._expr = Var(self.name, t.ScalarType(INDEX))
        return self._expr

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"DynVar({self.name!r})"


def dynamic(name: str) -> DynVar:
    """A symbolic extent called `name`, for annotations such as `pl.Tensor[[pl.dynamic("M"), 64], pl.FP32]`.

    Raises:
        ValueError: `name` is no Python identifier.
    """
    return DynVar(name)


class Array(_Value):
    """A small on-core list: `pl.Array[4, pl.INT32]`."""

    _kind = "Array"

    def __init__(
        self,
        extent: int | None = None,
        dtype: DataType | None = None,
        expr: Expr | None = None,
        _annotation_only: bool = False,
    ) -> None:
        self._init_value(expr, _annotation_only or expr is None)
        have = expr.type if expr is not None and isinstance(expr.type, t.ArrayType) else None
        self.extent: Any = extent if extent is not None or have is None else have.extent
        self.dtype = dtype if dtype is not None or have is None else have.dtype

    def __class_getitem__(cls, params: object) -> Array:
        items = _items(params)
        if len(items) != 2:
            raise TypeError(f"pl.Array takes an extent and a dtype, as in pl.Array[4, pl.INT32]; got {params!r}")
        return cls(items[0], items[1], _annotation_only=True)

    def __getitem__(self, index: object) -> Any:
        return self._subscript(index)

    def __repr__(self) -> str:
        return f"Array[{self.extent}, {self.dtype}]"


class Tuple(_Value):
    """Several values: `pl.Tuple[T1, T2]`, `pl.Tuple[()]`."""

    _kind = "Tuple"

    def __init__(self, types: Sequence[Any] = (), expr: Expr | None = None) -> None:
        self._init_value(expr, expr is None)
        self.types: tuple[Any, ...] = tuple(types)

    def __class_getitem__(cls, params: object) -> Tuple:
        return cls(_items(params))

    def __getitem__(self, index: object) -> Any:
        return self._subscript(index)


class _OpaqueHandle(_Value):
    """Base of handles that only operators of their own family take."""

    _kind = "handle"

    def __init__(self, *, expr: Expr | None = None) -> None:
        self._init_value(expr, expr is None)


class PrefetchAsyncContext(_OpaqueHandle):
    """Context of asynchronous prefetches."""


class AsyncEvent(_OpaqueHandle):
    """A prefetch in flight."""


class AsyncSession(_OpaqueHandle):
    """The session on which prefetches are waited for."""


class CommCtx(_OpaqueHandle):
    """Communication context of a distributed tensor."""


class _DirectionWrapper:
    """Base of the parameter directions; `inner` is the annotation inside."""

    direction: ClassVar[ParamDirection]

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __class_getitem__(cls, inner: object) -> Any:
        return cls(inner)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.inner!r}]"


class Out(_DirectionWrapper):
    """A parameter that the function writes: `pl.Out[pl.Tensor[[64, 64], pl.FP32]]`."""

    direction = ParamDirection.Out


class InOut(_DirectionWrapper):
    """A tensor parameter that the function reads and writes."""

    direction = ParamDirection.InOut


class RuntimeScalarMarker:
    """Type of `pl.RUNTIME`: a jit scalar argument that stays a run-time value."""

    _only: ClassVar[RuntimeScalarMarker | None] = None

    def __new__(cls) -> RuntimeScalarMarker:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME: Final = RuntimeScalarMarker()
TaskId: Final = Scalar.__class_getitem__(TASK_ID)
Ptr: TypeAlias = t.PtrType
IntLike: TypeAlias = int | Scalar | Expr

_WRAPPERS: tuple[tuple[type[t.Type], Callable[[Expr], _Value]], ...] = (
    (t.DistributedTensorType, lambda e: DistributedTensor(expr=e)),
    (t.TensorType, lambda e: Tensor(expr=e)),
    (t.TileType, lambda e: Tile(expr=e)),
    (t.ScalarType, lambda e: Scalar(expr=e)),
    (t.ArrayType, lambda e: Array(expr=e)),
    (t.TupleType, lambda e: Tuple(expr=e)),
    (t.PrefetchAsyncContextType, lambda e: PrefetchAsyncContext(expr=e)),
    (t.AsyncEventType, lambda e: AsyncEvent(expr=e)),
    (t.AsyncSessionType, lambda e: AsyncSession(expr=e)),
    (t.CommCtxType, lambda e: CommCtx(expr=e)),
)


def wrap(expr: Expr) -> Any:
    """The wrapper that fits the type of `expr`; expressions of other types are given back as they are."""
    for kind, make in _WRAPPERS:
        if isinstance(expr.type, kind):
            return make(expr)
    return expr


def unwrap(value: Any) -> Any:
    """The IR expression inside a wrapper (also inside lists and tuples); anything else as it is."""
    if isinstance(value, _Value):
        return value.unwrap()
    if isinstance(value, (list, tuple)):
        return type(value)(unwrap(v) for v in value)
    return value
