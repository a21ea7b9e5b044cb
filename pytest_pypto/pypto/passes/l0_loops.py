"""Statements of tiled products: loops over K, and grids of output tiles with their stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import expr as e
from ..ir import scalar_ops as ops
from ..ir import stmt as s
from ..ir.dtypes import INDEX
from ..ir.enums import ForKind, MemorySpace
from ..ir.op_table import create_op_call
from ..ir.span import Span
from ..ir.types import ScalarType, TileType, Type
from .fold_scalars import fold_binary
from .integers import Analyzer

NO_OVERLAP = "pipeline_overlap_stores"
DOUBLE_BUFFER = "pipeline_double_buffer_c"
_M = MemorySpace


@dataclass
class Builder:
    """Collects statements; names are hints, the printer makes them unique."""

    span: Span
    out: list[s.Stmt] = field(default_factory=list)

    def emit(self, name: str, op: str, args: Sequence[e.Expr], kwargs: dict[str, Any] | None = None) -> e.Var:
        """`name = op(args)`."""
        call = create_op_call(op, args, kwargs or {}, span=self.span)
        var = e.Var(name, call.type, self.span)
        self.out.append(s.AssignStmt(var, call, self.span))
        return var

    def inner(self) -> Builder:
        """A builder for a nested body."""
        return Builder(self.span)

    def index(self, name: str) -> e.Var:
        """A loop variable."""
        return e.Var(name, ScalarType(INDEX), self.span)

    def loop(
        self,
        var: e.Var,
        bounds: tuple[int, int, int],
        arg: e.IterArg,
        body: list[s.Stmt],
        value: e.Expr,
        result: e.Var,
        attrs: dict[str, Any] | None,
    ) -> None:
        """`for var, (arg,) in pl.pipeline(bounds, stage=2)`, or pl.range when `attrs` is None."""
        stmts = (*body, s.YieldStmt((value,), self.span))
        kind = ForKind.Sequential if attrs is None else ForKind.Pipeline
        made = {} if attrs is None else {"pipeline_stages": 2, **attrs}
        start, stop, step = (e.index(b, self.span) for b in bounds)
        seq = s.SeqStmts(stmts, self.span)
        self.out.append(s.ForStmt(var, start, stop, step, (arg,), seq, (result,), self.span, kind, made))


@dataclass(frozen=True)
class Product:
    """One product of tiles in Mat: `acc` is the caller's accumulator, `bias` a bias row."""

    name: str
    left: e.Var
    right: e.Var
    k: int
    acc: e.Var | None = None
    bias: e.Var | None = None
    valid: tuple[e.Expr, ...] | None = None
    """Valid rows and columns of the product; None when all are."""


@dataclass(frozen=True)
class Block:
    """A rectangle of the output."""

    row: int
    column: int
    m: int
    n: int


def add(a: e.Expr, b: e.Expr) -> e.Expr:
    """a + b, folded."""
    return fold_binary(e.Add(a, b, INDEX, a.span), Analyzer())


def _extract(
    b: Builder, name: str, source: e.Var, at: Sequence[int | e.Expr], shape: tuple[int, int], space: _M
) -> e.Var:
    row, column = (x if isinstance(x, e.Expr) else e.index(x, b.span) for x in at)
    args = [source, row, column, e.make_tuple(shape, b.span)]
    return b.emit(name, "tile.extract", args, {"target_memory": space})


def left_tile(b: Builder, name: str, p: Product, at: Sequence[int | e.Expr], shape: tuple[int, int]) -> e.Var:
    """A piece of the left factor in L0A."""
    return _extract(b, name, p.left, at, shape, _M.Left)


def right_tile(b: Builder, name: str, p: Product, at: Sequence[int | e.Expr], shape: tuple[int, int]) -> e.Var:
    """A piece of the right factor in L0B."""
    return _extract(b, name, p.right, at, shape, _M.Right)


def k_loop(b: Builder, p: Product, block: Block, k: int, result: e.Var | None = None) -> e.Var:
    """The product for one output block, K in steps of k; `result` is the variable that must hold it."""
    full = p.k // k * k
    if full // k >= 2:
        made = _pipelined(b, p, block, k, full, result if full == p.k else None)
    else:
        made = _first(b, p, block, k, full)
    if full < p.k:
        a, c = _pieces(b, p, block, full, p.k - full)
        made = _named(b, result, f"{p.name}_l0_c_acc", "tile.matmul_acc", [made, a, c])
    elif result is not None and made is not result:
        b.out.append(s.AssignStmt(result, made, b.span))
        made = result
    return made


def _named(b: Builder, result: e.Var | None, name: str, op: str, args: list[e.Expr]) -> e.Var:
    if result is None:
        return b.emit(name, op, args)
    call = create_op_call(op, args, span=b.span)
    b.out.append(s.AssignStmt(result, call, b.span))
    return result


def _pieces(b: Builder, p: Product, block: Block, at: int | e.Expr, k: int) -> tuple[e.Var, e.Var]:
    left = left_tile(b, f"{p.name}_l0_a", p, (block.row, at), (block.m, k))
    right = right_tile(b, f"{p.name}_l0_b", p, (at, block.column), (k, block.n))
    return left, right


def _first(b: Builder, p: Product, block: Block, k: int, full: int) -> e.Var:
    """A single full block of K."""
    a, c = _pieces(b, p, block, 0, k)
    if p.acc is not None:
        return b.emit(f"{p.name}_l0_c_acc", "tile.matmul_acc", [p.acc, a, c])
    if p.bias is not None:
        return b.emit(f"{p.name}_l0_c_first", "tile.matmul_bias", [a, c, p.bias])
    return b.emit(f"{p.name}_l0_c_first", "tile.matmul", [a, c])


def _pipelined(b: Builder, p: Product, block: Block, k: int, full: int, result: e.Var | None) -> e.Var:
    init = p.acc if p.acc is not None else _accumulator(b, p, block)
    at = b.index(f"{p.name}_l0_ko")
    arg = e.IterArg(f"{p.name}_l0_c", init.type, init, b.span)
    body = b.inner()
    a, c = _pieces(body, p, block, at, k)
    if p.acc is not None:
        value = body.emit(f"{p.name}_l0_c_acc", "tile.matmul_acc", [arg, a, c])
    else:
        value = _first_or_next(body, p, at, arg, a, c)
    made = result if result is not None else e.Var(p.name, value.type, b.span)
    b.loop(at, (0, full, k), arg, body.out, value, made, {})
    return made


def _accumulator(b: Builder, p: Product, block: Block) -> e.Var:
    """Room for the sum, in L0C."""
    assert isinstance(p.left.type, TileType)
    dtype = _acc_dtype(p)
    kwargs = {"dtype": dtype, "target_memory": _M.Acc}
    made = b.emit(f"{p.name}_l0_init", "tile.create", [e.make_tuple((block.m, block.n), b.span)], kwargs)
    return made if p.valid is None else b.emit(f"{p.name}_l0_init", "tile.set_validshape", [made, *p.valid])


def _acc_dtype(p: Product) -> Any:
    from ..ir.ops.common import accumulator_dtype

    assert isinstance(p.left.type, TileType)
    return accumulator_dtype(p.left.type.dtype)


def _first_or_next(body: Builder, p: Product, at: e.Var, arg: e.IterArg, a: e.Var, c: e.Var) -> e.Var:
    """`matmul` in the first trip, `matmul_acc` afterwards."""
    then, other = body.inner(), body.inner()
    if p.bias is not None:
        first = then.emit(f"{p.name}_l0_c_first", "tile.matmul_bias", [a, c, p.bias])
    else:
        first = then.emit(f"{p.name}_l0_c_first", "tile.matmul", [a, c])
    more = other.emit(f"{p.name}_l0_c_acc", "tile.matmul_acc", [arg, a, c])
    then.out.append(s.YieldStmt((first,), body.span))
    other.out.append(s.YieldStmt((more,), body.span))
    phi = e.Var(f"{p.name}_l0_c_phi", first.type, body.span)
    test = ops.eq(at, e.index(0, body.span), body.span)
    bodies = (s.SeqStmts(tuple(then.out), body.span), s.SeqStmts(tuple(other.out), body.span))
    body.out.append(s.IfStmt(test, *bodies, (phi,), body.span))
    return phi


@dataclass
class Target:
    """The store that takes the product: offsets, the tensor as it is now, further operands and keywords."""

    tensor: e.Var
    offset: tuple[e.Expr, ...]
    kwargs: dict[str, Any]
    type: Type

    def store(self, b: Builder, tile: e.Var, at: Sequence[int | e.Expr], into: e.Expr, name: str) -> e.Var:
        """Store one output tile at its place."""
        row, column = (x if isinstance(x, e.Expr) else e.index(x, b.span) for x in at)
        *lead, r, c = self.offset
        offset = e.MakeTuple((*lead, add(r, row), add(c, column)), b.span)
        return b.emit(name, "tile.store", [tile, offset, into], self.kwargs)


def unrolled_grid(b: Builder, p: Product, size: tuple[int, int], tile: tuple[int, int, int], t: Target) -> e.Var:
    """Output tiles one after the other, each with its own loop over K and its own store."""
    (rows, columns), (m, n, k) = size, tile
    into, number = t.tensor, 0
    for row in range(0, rows, m):
        for column in range(0, columns, n):
            block = Block(row, column, min(m, rows - row), min(n, columns - column))
            part = Product(f"{p.name}_t{number}", p.left, p.right, p.k)
            made = k_loop(b, part, block, k)
            into = t.store(b, made, (row, column), into, f"{t.tensor.name_hint}_t{number}")
            number += 1
    return into


def looped_grid(
    b: Builder,
    p: Product,
    size: tuple[int, int],
    tile: tuple[int, int],
    t: Target,
    held: str,
    stationary: bool,
    double_buffer: bool,
) -> e.Var:
    """Two nested loops over whole tiles (K is whole), the outer one keeps an operand; the rest is peeled."""
    (rows, columns), (m, n) = size, tile
    whole_rows, whole_columns = rows // m * m, columns // n * n
    into = _nest(b, p, (whole_rows, whole_columns), tile, t, held, stationary, double_buffer)
    strips = (
        [Block(whole_rows, c, rows - whole_rows, n) for c in range(0, whole_columns, n)] if whole_rows < rows else []
    )
    if whole_columns < columns:
        strips += [Block(r, whole_columns, min(m, rows - r), columns - whole_columns) for r in range(0, rows, m)]
    for number, block in enumerate(strips, 1):
        a = left_tile(b, f"{p.name}_a", p, (block.row, 0), (block.m, p.k))
        c = right_tile(b, f"{p.name}_b", p, (0, block.column), (p.k, block.n))
        made = b.emit(f"{p.name}_c", "tile.matmul", [a, c])
        into = t.store(b, made, (block.row, block.column), into, f"{t.tensor.name_hint}_t{number}")
    return into


def _nest(
    b: Builder,
    p: Product,
    region: tuple[int, int],
    tile: tuple[int, int],
    t: Target,
    held: str,
    stationary: bool,
    double_buffer: bool,
) -> e.Var:
    outer_axis = 0 if held == "left" else 1
    inner_axis = 1 - outer_axis
    overlap: dict[str, Any] = {NO_OVERLAP: False}
    marks = overlap | {DOUBLE_BUFFER: True} if double_buffer else overlap
    o, i = b.index(f"{p.name}_o"), b.index(f"{p.name}_i")
    oc = e.IterArg(f"{p.name}_oc", t.tensor.type, t.tensor, b.span)
    ic = e.IterArg(f"{p.name}_ic", t.tensor.type, oc, b.span)
    outer, inner = b.inner(), b.inner()
    if held == "left":
        a = left_tile(outer, f"{p.name}_a", p, (o, 0), (tile[0], p.k))
        c = right_tile(inner, f"{p.name}_b", p, (0, i), (p.k, tile[1]))
        at: tuple[e.Expr, e.Expr] = (o, i)
    else:
        c = right_tile(outer, f"{p.name}_b", p, (0, o), (p.k, tile[1]))
        a = left_tile(inner, f"{p.name}_a", p, (i, 0), (tile[0], p.k))
        at = (i, o)
    made = inner.emit(f"{p.name}_c", "tile.matmul", [a, c])
    stored = t.store(inner, made, at, ic, f"{t.tensor.name_hint}_t0")
    irv, orv = e.Var(f"{p.name}_irv", t.type, b.span), e.Var(f"{p.name}_orv", t.type, b.span)
    outer.loop(i, (0, region[inner_axis], tile[inner_axis]), ic, inner.out, stored, irv, marks)
    b.loop(o, (0, region[outer_axis], tile[outer_axis]), oc, outer.out, irv, orv, None if stationary else overlap)
    return orv
