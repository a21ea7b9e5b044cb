"""Types of the `.pto` text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

_NAMES = "i1 i4 i8 i16 i32 i64 ui4 ui8 ui16 ui32 ui64 index f8e4m3fn f8e5m2 f8e8m0 f16 bf16 f32 f64"
SCALARS = frozenset(re.findall(r"\w+", _NAMES))
_SPELLINGS = {
    "f8e8m0fnu": "f8e8m0",
    "f8e4m3": "f8e4m3fn",
    "fp8e4m3fn": "f8e4m3fn",
    "fp8e5m2": "f8e5m2",
    "fp8e8m0": "f8e8m0",
    "u8": "ui8",
    "u16": "ui16",
    "u32": "ui32",
    "u64": "ui64",
    "bool": "i1",
}
SPACES = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
BITS = {"index": 64, "bf16": 16, "i1": 8, "f8e4m3fn": 8, "f8e5m2": 8, "f8e8m0": 8}


def scalar_name(text: str) -> str | None:
    """The canonical name of an element type, or None when `text` names none."""
    name = text.lower()
    name = _SPELLINGS.get(name, name)
    return name if name in SCALARS else None


def itemsize(dtype: str) -> int:
    """Bytes of one element in memory (4-bit types take a byte)."""
    bits = BITS.get(dtype) or int(re.sub(r"\D", "", dtype))
    return max(bits // 8, 1)


@dataclass(frozen=True)
class ScalarT:
    """An integer, float or index."""

    dtype: str

    def __str__(self) -> str:
        return self.dtype


@dataclass(frozen=True)
class PtrT:
    """`!pto.ptr<T>`: global memory of elements T."""

    dtype: str

    def __str__(self) -> str:
        return f"!pto.ptr<{self.dtype}>"


@dataclass(frozen=True)
class ViewT:
    """`!pto.tensor_view<?x?xT>`."""

    rank: int
    dtype: str

    def __str__(self) -> str:
        return f"!pto.tensor_view<{'?x' * self.rank}{self.dtype}>"


@dataclass(frozen=True)
class PartT:
    """`!pto.partition_tensor_view<64x?xT>`; None stands for a run-time extent."""

    shape: tuple[int | None, ...]
    dtype: str

    def __str__(self) -> str:
        extents = "".join(f"{'?' if n is None else n}x" for n in self.shape)
        return f"!pto.partition_tensor_view<{extents}{self.dtype}>"


@dataclass(frozen=True)
class TileT:
    """`!pto.tile_buf<...>`; `v_row`/`v_col` None stand for run-time extents."""

    loc: str
    dtype: str
    rows: int
    cols: int
    v_row: int | None
    v_col: int | None
    blayout: str
    slayout: str
    fractal: int
    pad: int
    compact: int = 0

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of the inner box; (1, 1) for an unboxed tile."""
        if self.slayout == "none_box":
            return (1, 1)
        if self.fractal == 1024:
            return (16, 16)
        inner = max(self.fractal // 16 // itemsize(self.dtype), 1)
        return (16, inner) if self.slayout == "row_major" else (inner, 16)

    @property
    def boxed(self) -> bool:
        """True when the tile has fractal addresses: a boxed layout that consists of whole boxes."""
        br, bc = self.box
        return self.slayout != "none_box" and self.rows % br == 0 and self.cols % bc == 0

    @property
    def space(self) -> str:
        """The memory of the tile; the scales of left and right operands have one each, told apart by their layout."""
        if self.loc != "scaling":
            return self.loc
        return "scaling_right" if self.slayout == "col_major" else "scaling_left"

    @property
    def nbytes(self) -> int:
        """Bytes the tile occupies."""
        return self.rows * self.cols * itemsize(self.dtype)

    def same_storage(self, other: TileT) -> bool:
        """True when both describe the same bytes the same way (valid extents and padding aside)."""
        return replace(self, v_row=None, v_col=None, pad=0, compact=0) == replace(
            other, v_row=None, v_col=None, pad=0, compact=0
        )

    def __str__(self) -> str:
        valid = ", ".join(f"v_{n}={'?' if v is None else v}" for n, v in (("row", self.v_row), ("col", self.v_col)))
        return (
            f"!pto.tile_buf<loc={self.loc}, dtype={self.dtype}, rows={self.rows}, cols={self.cols}, {valid}, "
            f"blayout={self.blayout}, slayout={self.slayout}, fractal={self.fractal}, pad={self.pad}"
            + (f", compact={self.compact}>" if self.compact else ">")
        )


@dataclass(frozen=True)
class MultiT:
    """`!pto.multi_tile_buf<tile, count=F>`: F equal tiles."""

    tile: TileT
    count: int

    def __str__(self) -> str:
        return f"!pto.multi_tile_buf<{self.tile}, count={self.count}>"


@dataclass(frozen=True)
class ArrayT:
    """`!pto.local_array<NxT>`."""

    count: int
    dtype: str

    def __str__(self) -> str:
        return f"!pto.local_array<{self.count}x{self.dtype}>"


@dataclass(frozen=True)
class VectorT:
    """`vector<4xi16>`: carries nothing that the machine uses."""

    text: str

    def __str__(self) -> str:
        return self.text


PtoType = ScalarT | PtrT | ViewT | PartT | TileT | MultiT | ArrayT | VectorT
_FIELDS = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad", "compact")
_LAYOUTS = {"blayout": ("row_major", "col_major"), "slayout": ("none_box", "row_major", "col_major")}
_MAX_EXTENT = 1 << 24
_MAX_ARRAY = 1 << 16
_MAX_SLOTS = 1 << 10


@lru_cache(maxsize=4096)
def parse_type(text: str) -> PtoType:
    """The type that `text` spells.

    Raises:
        ValueError: not a type of the subset; the message says what is wrong with it.
    """
    name = scalar_name(text)
    if name is not None:
        return ScalarT(name)
    if text.startswith("vector<"):
        return VectorT(text)
    match = re.fullmatch(r"!pto\.(\w+)\s*<(.*)>", text, re.DOTALL)
    if match is None:
        raise ValueError(
            f"{text!r} is no type; known are {', '.join(sorted(SCALARS))} and !pto.<{', '.join(_PARSERS)}>"
        )
    parser = _PARSERS.get(match[1])
    if parser is None:
        raise ValueError(f"unknown type !pto.{match[1]}; known are {', '.join(_PARSERS)}")
    return parser(match[2].strip())


def _element(text: str) -> str:
    name = scalar_name(text.strip())
    if name is None:
        raise ValueError(f"unknown element type {text.strip()!r}; known are {', '.join(sorted(SCALARS))}")
    return name


def _shaped(text: str) -> tuple[tuple[int | None, ...], str]:
    match = re.fullmatch(r"((?:(?:\?|[0-9]{1,18})x)*)(\w+)", text.replace(" ", ""))
    if match is None:
        raise ValueError(f"{text!r} is no list of extents (numbers or ?) with an element type")
    dims = match[1].split("x")[:-1]
    return tuple(None if d == "?" else int(d) for d in dims), _element(match[2])


def _view(text: str) -> ViewT:
    extents, dtype = _shaped(text)
    return ViewT(len(extents), dtype)


def _array(text: str) -> ArrayT:
    extents, dtype = _shaped(text)
    if len(extents) != 1 or extents[0] is None:
        raise ValueError(f"a local array has one constant extent, got {text!r}")
    if not 1 <= extents[0] <= _MAX_ARRAY:
        raise ValueError(f"a local array has 1..{_MAX_ARRAY} elements, got {extents[0]}")
    return ArrayT(extents[0], dtype)


def _tile(text: str) -> TileT:
    pairs: dict[str, str] = {}
    for part in text.split(","):
        key, eq, value = part.strip().partition("=")
        if not eq or key not in _FIELDS or key in pairs:
            raise ValueError(f"tile_buf has no single field {part.strip()!r}; fields are {', '.join(_FIELDS)}")
        pairs[key] = value.strip()
    missing = [f for f in _FIELDS[:-1] if f not in pairs]
    if missing:
        raise ValueError(f"tile_buf lacks {', '.join(missing)}")
    for key, known in (("loc", SPACES), *_LAYOUTS.items()):
        if pairs[key] not in known:
            raise ValueError(f"tile_buf has {key}={pairs[key]!r}; known are {', '.join(known)}")
    tile = TileT(
        pairs["loc"],
        _element(pairs["dtype"]),
        _extent(pairs, "rows"),
        _extent(pairs, "cols"),
        None if pairs["v_row"] == "?" else _number(pairs, "v_row"),
        None if pairs["v_col"] == "?" else _number(pairs, "v_col"),
        pairs["blayout"],
        pairs["slayout"],
        _number(pairs, "fractal"),
        _number(pairs, "pad"),
        _number(pairs, "compact") if "compact" in pairs else 0,
    )
    if (tile.v_row or 0) > tile.rows or (tile.v_col or 0) > tile.cols:
        raise ValueError(f"valid extents {tile.v_row}x{tile.v_col} exceed the tile of {tile.rows}x{tile.cols}")
    if tile.fractal not in (32, 512, 1024) or tile.pad not in (0, 1, 2, 3):
        raise ValueError(f"tile_buf has fractal={tile.fractal}, pad={tile.pad}; known are 32, 512, 1024 and 0..3")
    return tile


def _number(pairs: dict[str, str], key: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", pairs[key]):
        raise ValueError(f"tile_buf has {key}={pairs[key][:40]!r}, which is no number of at most nine digits")
    return int(pairs[key])


def _extent(pairs: dict[str, str], key: str) -> int:
    value = _number(pairs, key)
    if not 1 <= value <= _MAX_EXTENT:
        raise ValueError(f"tile_buf has {key}={value}; expected 1..{_MAX_EXTENT}")
    return value


def _multi(text: str) -> MultiT:
    match = re.fullmatch(r"(!pto\.tile_buf<.*>)\s*,\s*count\s*=\s*([0-9]{1,9})", text, re.DOTALL)
    if match is None or not 1 <= int(match[2]) <= _MAX_SLOTS:
        raise ValueError(f"multi_tile_buf is <tile_buf, count=1..{_MAX_SLOTS}>, got <{text}>")
    tile = parse_type(match[1])
    assert isinstance(tile, TileT)
    return MultiT(tile, int(match[2]))


_PARSERS: dict[str, Callable[[str], PtoType]] = {
    "ptr": lambda t: PtrT(_element(t)),
    "tensor_view": _view,
    "partition_tensor_view": lambda t: PartT(*_shaped(t)),
    "tile_buf": _tile,
    "multi_tile_buf": _multi,
    "local_array": _array,
}
