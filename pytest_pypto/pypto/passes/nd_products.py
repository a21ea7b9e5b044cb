"""Batched products: one product per page."""

from __future__ import annotations

from functools import partial

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.types import TileType
from ._util import base_name
from .flatten_tile_nd_to_2d import Flattener
from .nd_ops import handles
from .nd_tiles import Flat, page_indices


@handles("batch_matmul")
def batch_matmul(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr | None:
    """Products of the pages; a batch axis of extent 1 is repeated."""
    return _products(f, stmt, call, None, call.args[0], call.args[1])


@handles("batch_matmul_acc")
def batch_matmul_acc(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr | None:
    """Every page adds to its own accumulator."""
    acc = call.args[0]
    known = f.flat.get(acc) if isinstance(acc, e.Var) else None
    if known is None or not (known.pages or known.lazy):
        raise f.fail(
            "a batched product accumulates into a tile that is no batch of products; start from a batched product, or "
            "loop over the batch",
            call,
        )
    return _products(f, stmt, call, known, call.args[1], call.args[2])


def _products(
    f: Flattener, stmt: s.AssignStmt, call: e.Call, accs: Flat | None, left: e.Expr, right: e.Expr
) -> e.Expr | None:
    """One product per page; products that are only stored are made right in front of their stores."""
    dims = f.dims(stmt.var)
    name = base_name(stmt.var.name_hint)
    lefts, rights = _by_index(f, left), _by_index(f, right)

    def product(i: int, at: tuple[int, ...]) -> e.Var:
        factors = [_page(lefts, at), _page(rights, at)]
        if accs is None:
            return f.emit(f"{name}__tile", "tile.matmul", factors, like=call)
        return f.emit(f"{name}__tile", "tile.matmul_acc", [accs.page(i), *factors], like=call)

    lazy = tuple(partial(product, i, at) for i, at in enumerate(page_indices(dims)))
    flat = Flat(dims, lazy=lazy)
    f.flat[stmt.var] = flat if stmt.var in f.stored_once else Flat(dims, pages=flat.made())
    return None


def _by_index(f: Flattener, tile: e.Expr) -> dict[tuple[int, ...], e.Var]:
    assert isinstance(tile.type, TileType)
    return dict(zip(page_indices(f.dims(tile)), f.pages(tile), strict=True))


def _page(pages: dict[tuple[int, ...], e.Var], at: tuple[int, ...]) -> e.Var:
    """The page at a position of the result: missing and single axes are repeated."""
    rank = len(next(iter(pages)))
    extents = [max(k[i] for k in pages) + 1 for i in range(rank)]
    tail = at[len(at) - rank :]
    return pages[tuple(0 if n == 1 else i for n, i in zip(extents, tail, strict=True))]
