"""Functions of one namespace (`tensor.add`, `tile.load`, ...): how bound arguments become a call.

Most map one to one; the rest, whose arguments are not simply those of one operator, are written out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import expr as e
from .. import scalar_ops
from ..dtypes import INDEX, DataType, fitting
from ..enums import MemorySpace
from ..op_table import find_op
from ..span import Span
from ..types import TileType
from . import values
from .build import ir_name, make, plain
from .values import kind_of

Bound = Mapping[str, Any]
Handler = Callable[[Bound, Span], e.Expr]

TWINS = {
    **{n: f"{n}s" for n in ("add", "sub", "mul", "div", "rem", "fmod", "maximum", "minimum", "cmp")},
    **{n: f"{n}s" for n in ("and", "or", "xor", "shl", "shr")},
}
"""The operator that takes a scalar on the right, by the one that takes two tensors or tiles."""


def _binary(space: str, name: str) -> Handler:
    """`pl.<space>.<name>(lhs, rhs)`, whose right operand may be a scalar."""
    twin = f"{space}.{TWINS[name]}"

    def call(bound: Bound, span: Span) -> e.Expr:
        scalar = kind_of(bound["rhs"]) == "scalar"
        if scalar and find_op(twin) is not None:
            return plain(twin, without_precision(twin, bound), span)
        return plain(f"{space}.{name}", bound, span)

    return call


def without_precision(op: str, bound: Bound) -> Bound:
    """Drop `high_precision=False`, which operators with a scalar on the right do not have.

    Raises:
        TypeError: the argument asks for something.
    """
    if bound.get("high_precision"):
        raise TypeError(
            f"high_precision=True is for two tensors or tiles, but '{op}' has a scalar on the right; leave it out, or "
            "divide by pl.full(shape, dtype=..., value=...)"
        )
    return {k: v for k, v in bound.items() if k != "high_precision"}


def _renamed(op: str) -> Handler:
    return lambda bound, span: plain(op, bound, span)


def _scalar(op: Callable[..., e.Expr]) -> Handler:
    def call(bound: Bound, span: Span) -> e.Expr:
        return op(bound["lhs"], bound["rhs"], span)

    return call


# --- memory ----------------------------------------------------------------------------------------------------------


def _load(bound: Bound, span: Span) -> e.Expr:
    space = bound["target_memory"]
    if isinstance(space, MemorySpace) and space not in (MemorySpace.Vec, MemorySpace.Mat):
        raise ValueError(
            f"target_memory for tile.load must be MemorySpace.Vec or MemorySpace.Mat, got MemorySpace.{space.name}"
        )
    valid = bound["shapes"] if bound["valid_shape"] is None else bound["valid_shape"]
    return plain("tile.load", {**bound, "valid_shape": valid}, span)


def _full(space: str) -> Handler:
    def call(bound: Bound, span: Span) -> e.Expr:
        dtype = values.dtype(bound["dtype"])
        value = fill_value(bound["value"], dtype, span)
        return make(f"{space}.full", [bound["shape"], value], {"dtype": dtype}, span)

    return call


def fill_value(value: Any, dtype: DataType, span: Span) -> e.Expr:
    """The constant of `full`: of the element type when the literal is of that kind; `value=1` stays an integer."""
    if type(value) is float:
        return e.ConstFloat(value, dtype if dtype.is_float() else DataType.FP32, span)
    if type(value) is int:
        return e.ConstInt(fitting(value, dtype), dtype if dtype.is_int() else DataType.INDEX, span)
    return values.constant(value, dtype, span) if values.is_literal(value) else values.expression(value)


def _write(space: str) -> Handler:
    def call(bound: Bound, span: Span) -> e.Expr:
        target, indices, value = bound.values()
        return make(f"{space}.write", [target, indices, value], {}, span)

    return call


def _pop(name: str, space: MemorySpace) -> Handler:
    """A pop: its type is declared by shape and dtype, or by an annotation later."""

    def call(bound: Bound, span: Span) -> e.Expr:
        made = make(name, [], {k: v for k, v in bound.items() if k in ("split", "lane_stride", "id")}, span)
        shape, dtype = bound["shape"], bound["dtype"]
        if (shape is None) != (dtype is None):
            raise TypeError(f"{name.rpartition('.')[2]}() takes shape and dtype together")
        if shape is None:
            return made
        dims = values.integers(shape, span)
        assert isinstance(dims, e.MakeTuple)
        return e.Call(
            made.op, (), made.kwargs, {}, TileType(dims.elements, values.dtype(dtype), None, None, space), span
        )

    return call


# --- sort, gather, scatter -------------------------------------------------------------------------------------------


def _mrgsort(space: str) -> Handler:
    def call(bound: Bound, span: Span) -> e.Expr:
        lists = [bound[k] for k in ("src0", "src1", "src2", "src3") if bound[k] is not None]
        tmp, block = bound.get("tmp"), bound["block_len"]
        if block is not None:
            if len(lists) != 1 or tmp is not None:
                raise TypeError("mrgsort() with block_len takes one source and no tmp")
            return make(f"{space}.mrgsort_format1", [lists[0], block], {}, span)
        if len(lists) < 2:
            raise TypeError("mrgsort() takes block_len= with one source, or two to four sorted lists")
        if space == "tile":
            if tmp is None:
                raise TypeError("mrgsort() of tiles needs tmp=, a tile as large as the result")
            lists.append(tmp)
        return make(f"{space}.mrgsort_format2", lists, {"exhausted": bound["exhausted"]}, span)

    return call


def _gather(bound: Bound, span: Span) -> e.Expr:
    source = bound["input"]
    if bound["mask_pattern"] is not None:
        kw = {"mask_pattern": bound["mask_pattern"], "output_dtype": bound["output_dtype"]}
        return make("tensor.gather_mask", [source], kw, span)
    if bound["kvalue"] is not None:
        kw = {k: bound[k] for k in ("cmp_mode", "offset", "out_cols", "count_dtype")}
        if kw["cmp_mode"] is None or kw["out_cols"] is None:
            raise TypeError("gather() with kvalue needs cmp_mode= and out_cols=")
        return make("tensor.gather_compare", [source, bound["kvalue"]], kw, span)
    if bound["dim"] is None or bound["index"] is None:
        raise TypeError("gather() takes dim and index, or mask_pattern=, or kvalue= with cmp_mode= and out_cols=")
    return make("tensor.gather", [source, bound["index"]], {"dim": bound["dim"]}, span)


def _scatter(bound: Bound, span: Span) -> e.Expr:
    if bound["mask_pattern"] is not None:
        if bound["dst"] is None:
            raise TypeError("scatter() with mask_pattern needs dst=")
        kw = {"mask_pattern": bound["mask_pattern"]}
        return make("tensor.scatter_mask", [bound["input"], bound["dst"]], kw, span)
    if bound["dim"] is None or bound["index"] is None or bound["src"] is None:
        raise TypeError("scatter() takes dim, index and src, or mask_pattern= and dst=")
    return make("tensor.scatter", [bound["input"], bound["index"], bound["src"]], {"dim": bound["dim"]}, span)


def scatter_update(space: str, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> e.Expr:
    """`scatter_update(input, [dim,] index, src)`, also with keywords."""
    given = dict(kwargs)
    names = ["input", "dim", "index", "src"] if len(args) == 4 else ["input", "index", "src"]
    if len(args) > 4:
        raise TypeError(
            f"scatter_update() takes at most 4 arguments (input, dim, index, src) but {len(args)} were given"
        )
    if len(args) == 2 and values.is_literal(args[1]):
        names = ["input", "dim"]
    for name, value in zip(names, args, strict=False):
        if name in given:
            raise TypeError(f"scatter_update() got multiple values for argument '{name}'")
        given[name] = value
    unknown = set(given) - {"input", "dim", "index", "src"}
    if unknown:
        raise TypeError(f"scatter_update() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    for name in ("input", "index", "src"):
        if given.get(name) is None:
            raise TypeError(f"scatter_update() missing 1 required argument: '{name}'")
    operands = [given["input"], given["index"], given["src"]]
    return make(f"{space}.scatter_update", operands, {"dim": given.get("dim")}, span)


def _scatter_update(space: str) -> Handler:
    return lambda bound, span: scatter_update(space, bound["args"], bound["kwargs"], span)


def _merge_lists(space: str) -> Handler:
    """`mrgsort_format2(*lists, exhausted=False)`."""

    def call(bound: Bound, span: Span) -> e.Expr:
        return make(f"{space}.mrgsort_format2", bound["args"], bound["kwargs"], span)

    return call


# --- system ----------------------------------------------------------------------------------------------------------


def _sync(name: str) -> Handler:
    """An event that is a number is a keyword, one computed at run time an operand."""

    def call(bound: Bound, span: Span) -> e.Expr:
        event = bound["event_id"]
        static = isinstance(event, (int, e.ConstInt))
        if static and not 0 <= (event if isinstance(event, int) else event.value) <= 13:
            raise ValueError(f"event_id must be 0..13, got {event}")
        keywords = {k: v for k, v in bound.items() if k not in ("event_id", "span")}
        if static:
            keywords["event_id"] = event
        return make(name, [] if static else [event], keywords, span)

    return call


def _syncall_soft(bound: Bound, span: Span) -> e.Expr:
    operands = [bound["gm_workspace"], bound["used_cores"]]
    return make("system.syncall", operands, {"mode": "soft", "core_type": bound["core_type"]}, span)


def _task_dummy(bound: Bound, span: Span) -> e.Expr:
    deps = bound["deps"]
    if not isinstance(deps, (list, tuple)):
        raise TypeError("task_dummy() takes deps=[...], a list of task ids")
    invalid = make("system.task_invalid", [], {}, span)
    return make("system.task_dummy", [invalid if d is None else d for d in deps], {}, span)


def _region(name: str) -> Handler:
    """aiv_shard and aic_gather: the split is that of the enclosing region, which the parser adds."""

    def call(bound: Bound, span: Span) -> e.Expr:
        (_, source), *rest = bound.items()
        split = bound.get("split")
        if split is None:
            raise TypeError(f"{name}() without split= is allowed only inside `for lane in pl.split_aiv(2, mode=...)`")
        space = "tile" if kind_of(source) == "tile" else "tensor"
        return make(f"{space}.{name}", [source], {k: v for k, v in rest if k != "span"}, span)

    return call


def _wait(bound: Bound, span: Span) -> e.Expr:
    return make("prefetch.wait", [bound["event"], bound["session_handle"]], {}, span)


# --- distributed -----------------------------------------------------------------------------------------------------


def _alloc_window(bound: Bound, span: Span) -> e.Expr:
    size, dtype = bound["size"], bound["dtype"]
    if isinstance(size, (list, tuple)):
        if dtype is None:
            raise TypeError("alloc_window_buffer() with a shape needs dtype=")
        total: e.Expr = e.ConstInt(values.dtype(dtype).get_byte(), INDEX, span)
        for dim in size:
            factor = values.integer(dim, INDEX, span)
            both = isinstance(total, e.ConstInt) and isinstance(factor, e.ConstInt)
            total = (
                e.ConstInt(e.const_value(total) * e.const_value(factor), INDEX, span)  # type: ignore[operator]
                if both
                else scalar_ops.mul(total, factor, span)
            )
        size = total
    return make("pld.tensor.alloc_window_buffer", [size], {"name": bound["name"] or None}, span)


def _remote_store(bound: Bound, span: Span) -> e.Expr:
    op = "pld.tile.remote_store" if kind_of(bound["src"]) == "tile" else "pld.tensor.remote_store"
    operands = [bound[k] for k in ("src", "target", "peer", "offsets")]
    return make(op, operands, {"atomic": int(bound["atomic"])}, span)


def _pld(op: str) -> Handler:
    return lambda bound, span: plain(op, bound, span)


def _handlers() -> dict[str, Handler]:
    table: dict[str, Handler] = {}
    for space in ("tensor", "tile"):
        for name in TWINS:
            word = f"{name}_" if name in ("and", "or") else name
            if f"{space}.{name}" in ("tile.rem", "tensor.rem"):
                continue
            table[f"{space}.{word}"] = _binary(space, name)
        for name in ("aiv_shard", "aic_gather"):
            table[f"{space}.{name}"] = table[name] = _region(name)
        table[f"{space}.arange"] = _renamed(f"{space}.ci")
        table[f"{space}.full"] = _full(space)
        table[f"{space}.write"] = _write(space)
        table[f"{space}.mrgsort"] = _mrgsort(space)
        table[f"{space}.mrgsort_format2"] = _merge_lists(space)
        table[f"{space}.scatter_update"] = _scatter_update(space)
    table["tile.rem"] = _binary("tile", "rem")
    table |= {"tensor.create_tensor": _renamed("tensor.create"), "tile.create_tile": _renamed("tile.create")}
    table |= {"tensor.gather": _gather, "tensor.scatter": _scatter, "tile.load": _load}
    table |= {"tile.min": _scalar(scalar_ops.min_), "tile.max": _scalar(scalar_ops.max_)}
    for space in ("tile", "system"):
        table[f"{space}.tpop_from_aic"] = _pop("tile.tpop_from_aic", MemorySpace.Vec)
        table[f"{space}.tpop_from_aiv"] = _pop("tile.tpop_from_aiv", MemorySpace.Mat)
    for name in ("tpush_to_aic", "tpush_to_aiv"):
        table[f"system.{name}"] = _renamed(f"tile.{name}")
    table |= {f"system.{n}": _sync(f"system.{n}") for n in ("sync_set", "sync_wait")}
    table |= {"system.syncall_soft": _syncall_soft, "system.task_dummy": _task_dummy, "prefetch.wait": _wait}
    for prefix in ("pld", "pld.tensor", "pld.tile", "pld.system"):
        table[f"{prefix}.alloc_window_buffer"] = _alloc_window
        table[f"{prefix}.remote_store"] = _remote_store
        table[f"{prefix}.window"] = _pld("pld.tensor.window")
        table[f"{prefix}.remote_load"] = _pld("pld.tile.remote_load")
        for name in ("world_size", "get_comm_ctx", "nranks", "rank"):
            table[f"{prefix}.{name}"] = _pld(f"pld.system.{name}")
    return table


HANDLERS: dict[str, Handler] = _handlers()


def handler(path: str) -> Handler | None:
    """The function of `<namespace>.<name>`, or None when there is no such operator."""
    special = HANDLERS.get(path)
    if special is not None:
        return special
    name = ir_name(path)
    return None if find_op(name) is None else _renamed(name)
