"""Functions `pl.<name>` that choose between the tensor, the tile and the scalar form by their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...ir import expr as e
from ...ir import scalar_ops
from ...ir.enums import AtomicType
from ...ir.op import level, values
from ...ir.op.build import make, plain
from ...ir.op.values import kind_of, type_word
from ...ir.op_table import find_op
from ...ir.span import Span
from . import signatures

Bound = Mapping[str, Any]
Handler = Callable[[Bound, Span], e.Expr]

_TWO_OPERANDS = frozenset(("lhs", "rhs", "src0", "src1", "target", "source", "src", "idx", "acc"))
_SCALAR_FORMS: Mapping[str, Callable[..., e.Expr]] = {
    "add": scalar_ops.add,
    "sub": scalar_ops.sub,
    "mul": scalar_ops.mul,
    "div": scalar_ops.truediv,
    "min": scalar_ops.min_,
    "max": scalar_ops.max_,
}
_LEVEL_ONLY = {
    "tensor": ("a_trans", "b_trans", "out_dtype", "c_matrix_nz", "clamp", "atomic"),
    "tile": ("tmp_tile", "tmp"),
}
"""Arguments that only one level knows."""

_HOME = {
    "create_tensor": "tensor.create",
    "create_tile": "tile.create",
    "arange": "tensor.arange",
    "full": "tensor.full",
    "load": "tile.load",
}


def _mixed(name: str, operands: Sequence[Any]) -> TypeError:
    got = ", ".join(type_word(v) for v in operands)
    return TypeError(f"pl.{name}: expected Tensor or Tile operands, got ({got})")


def _level(name: str, operands: Sequence[Any]) -> str:
    """`tensor`, `tile` or `scalar`, by the operands.

    Raises:
        TypeError: tensors mixed with tiles, or a scalar in front.
    """
    kinds = [kind_of(v) for v in operands]
    shaped = {k for k in kinds if k in ("tensor", "tile")}
    if len(shaped) == 2 or (shaped and kinds[0] not in ("tensor", "tile", "unknown")):
        raise _mixed(name, operands)
    if shaped:
        return shaped.pop()
    if "unknown" in kinds:
        return "tensor"
    if name in _SCALAR_FORMS and set(kinds) == {"scalar"}:
        return "scalar"
    raise _mixed(name, operands)


def handler(name: str) -> Handler:
    """The function `pl.<name>`."""
    home = _HOME.get(name) or _single_home(name)
    if home is not None:
        handle = level.handler(home)
        assert handle is not None, home
        return handle
    return lambda bound, span: _unified(name, bound, span)


def _single_home(name: str) -> str | None:
    """The one namespace that has this function, unless several do."""
    homes = [s for s, group in _SPACES if any(name in names.split() for _, names in group)]
    if len(homes) == 1 or name in ("get_block_idx", "get_block_num", "get_subblock_idx", "random"):
        return f"{homes[0]}.{name}"
    if homes and set(homes) <= {"tile", "system"}:
        return f"{homes[0]}.{name}"
    return None


_SPACES = (("tensor", signatures.TENSOR), ("tile", signatures.TILE), ("system", signatures.SYSTEM))


def _operands(name: str, bound: Bound) -> list[Any]:
    """The arguments that decide the level: the first, and what it is combined with."""
    order = list(bound.items())
    picked = [order[0][1]]
    picked += [v for k, v in order[1:] if k in _TWO_OPERANDS and v is not None and name not in ("write", "gather_row")]
    return picked


def _unified(name: str, bound: Bound, span: Span) -> e.Expr:
    operands = _operands(name, bound)
    where = _level(name, operands)
    if where == "scalar":
        return _SCALAR_FORMS[name](*operands, span)
    rest = _check_level(name, where, bound)
    word = name.rstrip("_")
    if word in level.TWINS and kind_of(bound["rhs"]) == "scalar":
        twin = f"{where}.{level.TWINS[word]}"
        if find_op(twin) is not None:
            return plain(twin, level.without_precision(twin, rest), span)
    special = level.HANDLERS.get(f"{where}.{name}")
    if special is not None and name not in level.TWINS and word not in level.TWINS:
        return special(rest, span)
    if find_op(f"{where}.{word}") is None:
        raise TypeError(f"pl.{name} has no form for a {where.capitalize()}")
    return plain(f"{where}.{word}", rest, span)


def _check_level(name: str, where: str, bound: Bound) -> Bound:
    """Drop arguments of the other level that say nothing; refuse those that do."""
    other = "tile" if where == "tensor" else "tensor"
    foreign = [k for k in bound if k in _LEVEL_ONLY[other] and not _both_have(name, k)]
    for key in foreign:
        if bound[key] is not None and bound[key] is not False and bound[key] is not AtomicType.None_:
            raise TypeError(f"pl.{name}: '{key}' is for {other}s only, but the operand is a {where.capitalize()}")
    if where == "tile":
        _check_scratch(name, bound)
    return {k: v for k, v in bound.items() if k not in foreign}


def _both_have(name: str, key: str) -> bool:
    return name in ("mrgsort",) and key == "tmp"


def _check_scratch(name: str, bound: Bound) -> None:
    for key in _LEVEL_ONLY["tile"]:
        if key in bound and bound[key] is None and name not in ("col_sum", "row_expand_add", "mrgsort"):
            raise TypeError(f"pl.{name} on a Tile needs a scratch tile: pl.{name}(..., {key})")


# --- functions of their own ------------------------------------------------------------------------------------------


def _cast(bound: Bound, span: Span) -> e.Expr:
    source, target = bound["input"], values.dtype(bound["target_type"], "target_type")
    kind = kind_of(source)
    if kind == "scalar":
        return scalar_ops.cast(source, target, span)
    where = "tile" if kind == "tile" else "tensor"
    return make(f"{where}.cast", [source], {"target_type": target, "mode": bound["mode"]}, span)


def _rsqrt(bound: Bound, span: Span) -> e.Expr:
    source, precise = bound.values()
    where = _level("rsqrt", [source])
    if where == "tile":
        if precise:
            raise TypeError("pl.rsqrt: 'high_precision' is for tensors only; give the tile form a scratch tile instead")
        return make("tile.rsqrt", [source], {}, span)
    return make("tensor.rsqrt", [source], {"high_precision": precise}, span)


def _relu(bound: Bound, span: Span) -> e.Expr:
    """Only tiles have it."""
    (source,) = bound.values()
    if kind_of(source) == "tensor":
        raise TypeError(
            "pl.relu takes a Tile, but the operand is a Tensor; write pl.maximum(x, 0.0), or pl.load it first"
        )
    return make("tile.relu", [source], {}, span)


def _scatter_update(bound: Bound, span: Span) -> e.Expr:
    args, kwargs = bound["args"], bound["kwargs"]
    first = args[0] if args else kwargs.get("input")
    return level.scatter_update(_level("scatter_update", [first]), args, kwargs, span)


def _scalars(name: str) -> Handler:
    """`pl.min` and `pl.max`, which take scalars only."""

    def call(bound: Bound, span: Span) -> e.Expr:
        operands = [bound["lhs"], bound["rhs"]]
        if any(kind_of(v) not in ("scalar", "unknown") for v in operands):
            got = ", ".join(type_word(v) for v in operands)
            raise TypeError(f"pl.{name}: expected scalars, got ({got}); elements are compared by pl.{name}imum")
        return _SCALAR_FORMS[name](*operands, span)

    return call


def _mark(bound: Bound, span: Span) -> e.Expr:
    """`pl.no_dep` and `pl.dump_tag`: marks the parser reads; the value is the tensor itself."""
    return values.expression(bound["tensor"])


HANDLERS: Mapping[str, Handler] = {
    "cast": _cast,
    "rsqrt": _rsqrt,
    "relu": _relu,
    "scatter_update": _scatter_update,
    "min": _scalars("min"),
    "max": _scalars("max"),
    "no_dep": _mark,
    "dump_tag": _mark,
    "tensor.no_dep": _mark,
    "tensor.dump_tag": _mark,
}
