"""Where the valid region goes: window reads, write unions and reshapes.

The valid region of a tensor or tile is always a box at the origin. Everything is decided by proof: what cannot be
proved wrong is accepted, what cannot be proved narrower keeps what the author asked for.
"""

from __future__ import annotations

from .. import extents as x
from ..expr import ConstInt, Expr, const_value, index
from ..op_table import Inference
from ..types import TensorType, TileType
from .common import Dims, is_full, is_one

_ZERO = index(0)


def window(
    i: Inference,
    source: TensorType | TileType,
    offset: Dims,
    shape: Dims,
    request: Dims | None,
    clamp: bool,
    chip: bool,
) -> Dims:
    """Valid extents of a window of `shape` at `offset` of `source`.

    `request` is the valid shape the author asked for; `chip` marks on-chip windows, which must fit as a whole;
    `clamp` lets the window overhang.

    Raises:
        ValueError: a negative offset, a request larger than the window, or a window beyond the source.
    """
    full = is_full(source)
    out = []
    for k, (extent, valid, at, size) in enumerate(zip(source.shape, source.valid_shape, offset, shape, strict=False)):
        want = None if request is None else request[k]
        _check_axis(i, k, extent, at, size, want, clamp, chip)
        out.append(_available(valid, at, size, want, full and not clamp))
    return tuple(out)


def _check_axis(
    i: Inference, k: int, extent: Expr, at: Expr, size: Expr, want: Expr | None, clamp: bool, chip: bool
) -> None:
    if x.negative(at):
        i.fail(f"requires offsets of at least 0, but got {x.text([at])} on axis {k}")
    if want is not None and x.less(size, want):
        i.fail(f"requires a valid shape within the window, but got {x.text([want])} of {x.text([size])} on axis {k}")
    reach = size if want is None or chip else want
    if not clamp and x.less(extent, x.add(at, reach)):
        i.fail(
            f"reads beyond its source on axis {k}: offset {x.text([at])} + {x.text([reach])} exceeds {x.text([extent])}"
            + ("" if chip else "; pass a smaller valid_shape or clamp=True")
        )


def _available(valid: Expr, at: Expr, size: Expr, want: Expr | None, whole: bool) -> Expr:
    if whole:
        have = size
    else:
        rest = valid if const_value(at) == 0 else x.maximum(x.sub(valid, at), _ZERO)
        have = x.minimum(rest, size)
    return have if want is None or x.at_most(have, want) else want


def union(i: Inference, target: TensorType | TileType, offset: Dims, extent: Dims) -> Dims:
    """Valid extents of `target` after a box of `extent` was written at `offset`.

    Raises:
        ValueError: the box lies outside the target, or the union is no box at the origin.
    """
    for k, (size, at, box) in enumerate(zip(target.shape, offset, extent, strict=False)):
        if x.negative(at):
            i.fail(f"requires offsets of at least 0, but got {x.text([at])} on axis {k}")
        if x.less(size, x.add(at, box)):
            i.fail(
                f"writes beyond its target, axis {k}: offset {x.text([at])} + {x.text([box])} exceeds {x.text([size])}"
            )
    valid = target.valid_shape
    if is_full(target) or any(const_value(e) == 0 for e in extent):
        return valid
    return _union_of_boxes(i, valid, offset, extent)


def _union_of_boxes(i: Inference, valid: Dims, offset: Dims, extent: Dims) -> Dims:
    at_origin = [x.equal(o, _ZERO) for o in offset]
    if any(const_value(v) == 0 for v in valid):
        if not all(at_origin):
            i.fail(f"must write an empty target from its origin, but got offset {x.text(offset)}")
        return extent
    ends = [x.add(o, e) for o, e in zip(offset, extent, strict=False)]
    if all(map(x.at_most, ends, valid)):
        return valid
    if all(at_origin) and all(map(x.at_most, valid, extent)):
        return extent
    grown = [k for k in range(len(valid)) if not (at_origin[k] and x.equal(extent[k], valid[k]))]
    if len(grown) == 1 and x.at_most(offset[grown[0]], valid[grown[0]]):
        k = grown[0]
        return (*valid[:k], x.maximum(valid[k], ends[k]), *valid[k + 1 :])
    return i.fail(  # type: ignore[no-any-return]
        f"would leave a valid region that is no box: valid {x.text(valid)}, written {x.text(extent)} at "
        f"{x.text(offset)}; write whole rows or columns next to the valid region"
    )


# --- reshape ---------------------------------------------------------------------------------------------------------

Factors = tuple[int, tuple[object, ...]]


def _factors(dims: Dims) -> Factors:
    """Product of extents as a constant and the sorted keys of the symbolic factors."""
    const, rest = 1, []
    for dim in dims:
        value = const_value(dim)
        if value is None:
            rest.append(dim)
        else:
            const *= value
    return const, tuple(sorted(id(r) for r in rest))


def check_count(i: Inference, old: Dims, new: Dims) -> None:
    """Refuse two shapes that provably hold different numbers of elements."""
    a, b = _factors(old), _factors(new)
    if a[1] == b[1] and a[0] != b[0]:
        i.fail(f"requires shapes of the same number of elements, but got {x.text(old)} and {x.text(new)}")


def reshaped(i: Inference, source: TensorType | TileType, shape: Dims) -> Dims:
    """Valid extents of `source` seen with `shape` in row-major order.

    Raises:
        ValueError: other number of elements, or a valid region that does not stay a box.
    """
    check_count(i, source.shape, shape)
    valid = source.valid_shape
    if is_full(source):
        return shape
    if any(const_value(v) == 0 for v in valid):
        return (_ZERO,) * len(shape)
    mapped = _unit_axes(source.shape, valid, shape)
    if mapped is None:
        mapped = _flat_prefix(source.shape, valid, shape)
    if mapped is None:
        i.fail(
            f"cannot keep the valid region {x.text(valid)} of {x.text(source.shape)} as a box of {x.text(shape)}; "
            "fill the padding first (pl.fillpad) or reshape along whole rows"
        )
    return mapped or shape


def _unit_axes(old: Dims, valid: Dims, new: Dims) -> Dims | None:
    """The mapping when the shapes differ only by unit axes."""
    kept = [(s, v) for s, v in zip(old, valid, strict=False) if not is_one(s)]
    if not x.all_equal([s for s, _ in kept], [d for d in new if not is_one(d)]):
        return None
    values = iter(v for _, v in kept)
    return tuple(d if is_one(d) else next(values) for d in new)


def _flat_prefix(old: Dims, valid: Dims, new: Dims) -> Dims | None:
    """The mapping when the valid box is a prefix of the row-major order."""
    free = next((k for k, v in enumerate(valid) if not is_one(v)), len(valid) - 1)
    if not x.all_equal(valid[free + 1 :], old[free + 1 :]):
        return None
    suffix = _factors(old[free + 1 :])
    count = const_value(valid[free])
    for k, extent in enumerate(new):
        rest = _factors(new[k + 1 :])
        if count is None:
            if rest == suffix:
                return (*(index(1),) * k, valid[free], *new[k + 1 :])
        elif rest[1] == suffix[1] and count * suffix[0] % rest[0] == 0:
            rows = count * suffix[0] // rest[0]
            if not isinstance(extent, ConstInt) or rows <= extent.value:
                return (*(index(1),) * k, index(rows), *new[k + 1 :])
    return None
