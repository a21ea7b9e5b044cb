"""What the names of a kernel stand for while it is compiled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..machine.tiles import Tile
from ..text.types import MultiT, PartT, PtoType, TileT


@dataclass(frozen=True)
class Scalar:
    """A number: `code` is Python source, `value` the number when it is a constant."""

    code: str
    type: PtoType
    value: Any = None
    clamped: str | None = None
    """Source of the operand when this is `maxsi(operand, 0)`, which may hide a negative offset."""

    @property
    def constant(self) -> bool:
        """True when the value is known."""
        return self.value is not None


@dataclass(frozen=True)
class Pointer:
    """A pointer parameter or an offset from one; `code` is the source of a GmArg."""

    code: str
    type: PtoType


@dataclass(frozen=True)
class TensorView:
    """`code` is the source of a GmView."""

    code: str
    type: PtoType


@dataclass(frozen=True)
class Partition:
    """A window of a tensor view: offsets and sizes per axis."""

    view: TensorView
    offsets: tuple[Scalar, ...]
    sizes: tuple[Scalar, ...]
    type: PartT

    @property
    def dtype(self) -> str:
        """Element type of the tensor."""
        return self.type.dtype


@dataclass(frozen=True)
class TileValue:
    """A tile handle: fixed at compile time (`tile`), or a run-time `Tile` in the Python variable `code`."""

    type: TileT
    tile: Tile | None
    code: str | None = None


@dataclass(frozen=True)
class MultiValue:
    """Several equal tiles, chosen by a run-time index."""

    type: MultiT
    tiles: tuple[Tile, ...]
    code: str


@dataclass(frozen=True)
class ArrayValue:
    """A small list of scalars in the Python variable `code`."""

    code: str
    type: PtoType


Value = Scalar | Pointer | TensorView | Partition | TileValue | MultiValue | ArrayValue


@dataclass
class SiteInfo:
    """One operation of a compiled kernel: its place, and its work for the counters."""

    id: int
    op: str
    line: int
    loc: str | None
    block: int
    unit: str = ""
    cost: Any = None
    extra: dict[str, Any] = field(default_factory=dict)
    reads: tuple[tuple[str, int], ...] = ()
    """Memory spaces with the bytes per element that are read there, where the number of elements comes at run time."""
    writes: tuple[tuple[str, int], ...] = ()
