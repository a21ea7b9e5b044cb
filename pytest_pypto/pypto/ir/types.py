"""IR types: scalars, tensors, tiles, arrays, tuples and opaque handles.

Types are immutable values: `==` and `hash` compare structure, ignore where a tensor or tile is placed (its MemRef),
and compare extents as expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .dtypes import DataType
from .enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout

if TYPE_CHECKING:
    from .expr import Expr, MemRef, WindowBuffer

DYNAMIC_DIM = -1


class Type:
    """Base of all types."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        from .structural import types_equal

        return self is other or (isinstance(other, Type) and types_equal(self, other))

    def __hash__(self) -> int:
        from .structural import type_hash

        return type_hash(self)

    def __str__(self) -> str:
        from .printer import python_print_type

        return python_print_type(self)


def as_dims(values: Iterable[int | Expr]) -> tuple[Expr, ...]:
    """Extents or offsets as expressions; a Python int becomes an INDEX constant."""
    from .expr import Expr, index

    return tuple(v if isinstance(v, Expr) else index(v) for v in values)


@dataclass(frozen=True, slots=True, eq=False)
class ScalarType(Type):
    """One number (or task id) of type `dtype`."""

    dtype: DataType


class ShapedType(Type):
    """Base of tensors, tiles and arrays."""

    __slots__ = ()
    shape: tuple[Expr, ...]
    dtype: DataType
    memref: MemRef | None

    @property
    def memory_space(self) -> MemorySpace | None:
        """Where values of this type live: DDR for tensors, the tile's space, None when not decided."""
        return None

    def shares_memref_with(self, other: ShapedType) -> bool:
        """True when both carry a MemRef of the same allocation."""
        return self.memref is not None and other.memref is not None and self.memref.base_ is other.memref.base_


@dataclass(slots=True, eq=False)
class TensorView:
    """How a tensor is laid out inside its storage. A mutable record; the IR never changes one in place."""

    stride: tuple[Expr, ...] = ()
    layout: TensorLayout = TensorLayout.ND
    valid_shape: tuple[Expr, ...] = ()
    pad: PadValue = PadValue.null

    def __post_init__(self) -> None:
        self.stride = as_dims(self.stride)
        self.valid_shape = as_dims(self.valid_shape)

    @property
    def is_trivial(self) -> bool:
        """True when the view says nothing; such a view is stored as no view."""
        return not self.stride and not self.valid_shape and self.layout is TensorLayout.ND and self.pad is PadValue.null

    def __eq__(self, other: object) -> bool:
        from .structural import views_equal

        return isinstance(other, TensorView) and views_equal(self, other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False)
class TileView:
    """How a tile is laid out inside its buffer. `valid_shape` None means the whole shape is valid."""

    valid_shape: tuple[Expr, ...] | None = None
    stride: tuple[Expr, ...] | None = None
    start_offset: Expr | None = None
    blayout: TileLayout = TileLayout.row_major
    slayout: TileLayout = TileLayout.none_box
    fractal: int = 512
    pad: PadValue = PadValue.null
    compact: CompactMode = CompactMode.null

    def __post_init__(self) -> None:
        for name in ("valid_shape", "stride"):
            value = getattr(self, name)
            if value is not None:
                dims = as_dims(value)
                object.__setattr__(self, name, dims or None)
        if isinstance(self.start_offset, int):
            object.__setattr__(self, "start_offset", as_dims([self.start_offset])[0])
        for name, default in (("pad", PadValue.null), ("compact", CompactMode.null)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)

    def layout_only(self) -> TileView:
        """The layout fields alone (blayout, slayout, fractal)."""
        return TileView(blayout=self.blayout, slayout=self.slayout, fractal=self.fractal)

    def __eq__(self, other: object) -> bool:
        from .structural import views_equal

        return isinstance(other, TileView) and views_equal(self, other)

    def __hash__(self) -> int:
        from .structural import view_hash

        return view_hash(self)


_ROW, _COL, _NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
_BOXED = {
    MemorySpace.Mat: (_COL, _ROW, 512),
    MemorySpace.Left: (_COL, _ROW, 512),
    MemorySpace.Acc: (_COL, _ROW, 1024),
    MemorySpace.LeftScale: (_ROW, _ROW, 32),
    MemorySpace.RightScale: (_COL, _COL, 32),
}


def implicit_tile_view(shape: Sequence[Expr], space: MemorySpace | None) -> TileView:
    """The view a tile has when none is written, by shape and memory space."""
    from .expr import const_value

    if space in _BOXED:
        blayout, slayout, fractal = _BOXED[space]
        return TileView(blayout=blayout, slayout=slayout, fractal=fractal)
    extents = [const_value(d) for d in shape]
    column = len(extents) == 2 and extents[1] == 1 and extents[0] is not None and extents[0] > 1
    slayout = _COL if space is MemorySpace.Right else _NONE
    return TileView(blayout=_COL if column else _ROW, slayout=slayout)


def _check_box(shape: tuple[Expr, ...], dtype: DataType, valid: tuple[Expr, ...] | None) -> None:
    """Refuse what no value can have: no element type, half a byte, a valid region that does not lie inside the box."""
    if not isinstance(dtype, DataType):
        raise TypeError(f"the element type of a tensor or tile is a DataType such as pl.FP32, got {dtype!r}")
    if not valid and dtype is not DataType.FP4:
        return
    from .expr import const_value

    if dtype is DataType.FP4 and shape and (const_value(shape[-1]) or 0) % 2:
        raise ValueError(f"FP4 elements come in pairs: the last extent must be even, got {shape[-1]}")
    if not valid:
        return
    if len(valid) != len(shape):
        raise ValueError(f"valid_shape has {len(valid)} extents for a shape of {len(shape)}: give one per axis")
    for axis, (extent, size) in enumerate(zip(valid, shape, strict=True)):
        have, most = const_value(extent), const_value(size)
        if have is not None and (have < 0 or (most is not None and 0 <= most < have)):
            raise ValueError(f"valid_shape {have} on axis {axis} does not lie inside the extent {size}")


@dataclass(frozen=True, slots=True, eq=False)
class TensorType(ShapedType):
    """A region of global memory.

    Raises:
        TypeError: the element type is none.
        ValueError: the valid region does not lie inside the shape.
    """

    shape: tuple[Expr, ...]
    dtype: DataType
    memref: MemRef | None = None
    tensor_view: TensorView | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", as_dims(self.shape))
        view = self.tensor_view
        _check_box(self.shape, self.dtype, None if view is None else view.valid_shape)
        if view is not None and view.is_trivial:
            object.__setattr__(self, "tensor_view", None)

    @property
    def memory_space(self) -> MemorySpace | None:
        """Always DDR."""
        return MemorySpace.DDR

    @property
    def valid_shape(self) -> tuple[Expr, ...]:
        """Valid extents; the shape when nothing else is said."""
        view = self.tensor_view
        return view.valid_shape if view is not None and view.valid_shape else self.shape


@dataclass(frozen=True, slots=True, eq=False)
class DistributedTensorType(TensorType):
    """A tensor that other ranks can reach through a window buffer."""

    window_buffer: WindowBuffer | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TileType(ShapedType):
    """An on-chip buffer. A view equal to the implicit one, or a valid shape equal to the shape, is stored as absent.

    Raises:
        TypeError: the element type is none.
        ValueError: a MemRef is given but no memory space can be told from it, or the valid region does not lie inside
            the shape.
    """

    shape: tuple[Expr, ...]
    dtype: DataType
    memref: MemRef | None = None
    tile_view: TileView | None = None
    space: MemorySpace | None = None

    def __init__(
        self,
        shape: Sequence[int | Expr],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "shape", as_dims(shape))
        put(self, "dtype", dtype)
        put(self, "memref", memref)
        if memory_space is None and memref is not None:
            memory_space = _space_of_name(memref.base_.name_hint)
        put(self, "space", memory_space)
        _check_box(self.shape, dtype, None if tile_view is None else tile_view.valid_shape)
        put(self, "tile_view", None if tile_view is None else _canonical(tile_view, self.shape, memory_space))

    @property
    def memory_space(self) -> MemorySpace | None:
        """The tile's space, or None when it is not decided yet."""
        return self.space

    def get_effective_tile_view(self) -> TileView:
        """The explicit view, or the implicit one of this shape and space."""
        return self.tile_view if self.tile_view is not None else implicit_tile_view(self.shape, self.space)

    @property
    def valid_shape(self) -> tuple[Expr, ...]:
        """Valid extents; the shape when nothing else is said."""
        view = self.tile_view
        return view.valid_shape if view is not None and view.valid_shape is not None else self.shape


def _canonical(view: TileView, shape: tuple[Expr, ...], space: MemorySpace | None) -> TileView | None:
    from .structural import exprs_equal

    if view.valid_shape is not None and exprs_equal(view.valid_shape, shape):
        view = replace(view, valid_shape=None)
    return None if view == implicit_tile_view(shape, space) else view


_SPACE_PREFIXES = (
    ("mem_leftscale_", MemorySpace.LeftScale),
    ("mem_rightscale_", MemorySpace.RightScale),
    ("mem_right_", MemorySpace.Right),
    ("mem_left_", MemorySpace.Left),
    ("mem_bias_", MemorySpace.Bias),
    ("mem_vec_", MemorySpace.Vec),
    ("mem_mat_", MemorySpace.Mat),
    ("mem_acc_", MemorySpace.Acc),
    ("mem_ddr_", MemorySpace.DDR),
)


def _space_of_name(name: str) -> MemorySpace:
    for prefix, space in _SPACE_PREFIXES:
        if name.startswith(prefix):
            return space
    raise ValueError(
        f"TileType with MemRef must have explicit memory_space: buffer name {name!r} names none "
        f"(known prefixes: {', '.join(p for p, _ in _SPACE_PREFIXES)}); pass memory_space="
    )


@dataclass(frozen=True, slots=True, eq=False)
class ArrayType(ShapedType):
    """A small on-core list of `extent` scalars of type `dtype`."""

    dtype: DataType
    extent: Expr
    memref: MemRef | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", as_dims([self.extent])[0])

    @property
    def shape(self) -> tuple[Expr, ...]:  # type: ignore[override]
        """`(extent,)`."""
        return (self.extent,)


@dataclass(frozen=True, slots=True, eq=False)
class TupleType(Type):
    """Several values."""

    types: tuple[Type, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", tuple(self.types))


S = TypeVar("S", bound="Singleton")


class Singleton(Type):
    """Base of the types that have one value only; `X.get()` and `X()` give it."""

    __slots__ = ()
    _instances: ClassVar[dict[type, Any]] = {}

    def __new__(cls: type[S]) -> S:
        if cls not in Singleton._instances:
            Singleton._instances[cls] = object.__new__(cls)
        found: S = Singleton._instances[cls]
        return found

    @classmethod
    def get(cls: type[S]) -> S:
        """The one value of this type."""
        return cls()


class UnknownType(Singleton):
    """The type of something whose declaration has not been seen."""

    __slots__ = ()


class PtrType(Singleton):
    """The type of an allocation's base."""

    __slots__ = ()


class MemRefType(Singleton):
    """The type of a MemRef used as a value."""

    __slots__ = ()


class WindowBufferType(Singleton):
    """The type of a window buffer."""

    __slots__ = ()


class CommCtxType(Singleton):
    """The type of a communication context."""

    __slots__ = ()


class PrefetchAsyncContextType(Singleton):
    """The type of a prefetch context."""

    __slots__ = ()


class AsyncEventType(Singleton):
    """The type of an asynchronous event."""

    __slots__ = ()


class AsyncSessionType(Singleton):
    """The type of an asynchronous session."""

    __slots__ = ()
