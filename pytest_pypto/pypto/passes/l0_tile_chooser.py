"""Choosing the tile of a product that the cube core multiplies at once.

The choice is the minimum of a cost in cycles over all tiles that fit the L0 buffers. Figures per architecture: bytes
per cycle into L0A and L0B, of the drain of L0C, and fixed costs of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..backend.handler import Handler
from ..backend.kinds import BackendType
from ..ir.enums import MemorySpace

BLOCK = 16
"""Rows and columns of a fractal; tiles are multiples of it."""


@dataclass(frozen=True)
class Speed:
    """Cost figures of one architecture, in bytes per cycle and cycles."""

    left: float
    right: float
    drain: float
    fixed: float
    row: float
    penalty: float
    head: int
    passes_fp32: int


_SPEED = {
    BackendType.Ascend910B: Speed(129.7, 85.4, 118.0, 164.0, 4.45, 2.6, 21, 2),
    BackendType.Ascend950: Speed(206.3, 223.8, 30.0, 343.4, 4.59, 0.26, 25, 8),
}


@dataclass(frozen=True)
class Problem:
    """A product [m, k] x [k, n]: extents, and bytes of an element of left, right and accumulator."""

    m: int
    n: int
    k: int
    left_bytes: int
    right_bytes: int
    acc_bytes: int = 4
    acc_rows: int = BLOCK
    tile_output: bool = True
    bias: bool = False
    double_buffer: bool = False
    stationary: bool = False


@dataclass(frozen=True)
class Choice:
    """Tile extents; `held` is the operand kept in L0 over the inner loop when k is whole ("left", "right")."""

    m: int
    n: int
    k: int
    held: str = ""
    stationary: bool = False
    double_buffer: bool = False


@lru_cache(maxsize=512)
def choose(problem: Problem, handler_type: BackendType) -> Choice | None:
    """The cheapest tile, or None when none fits (the accumulator may not be divided, say)."""
    from ..backend.handler import handler_for

    handler = handler_for(handler_type)
    best: tuple[tuple[float, ...], Choice] | None = None
    for m in _extents(problem.m, problem.tile_output):
        for n in _extents(problem.n, problem.tile_output):
            if not _acc_fits(problem, handler, m, n):
                continue
            for k in _extents(problem.k, True):
                for choice in _variants(problem, handler, m, n, k):
                    cost = _cost(problem, _SPEED[handler_type], choice)
                    if best is None or cost < best[0]:
                        best = (cost, choice)
    return None if best is None else best[1]


def _extents(whole: int, divide: bool) -> list[int]:
    """The whole extent, and smaller multiples of a block."""
    return [*range(BLOCK, whole, BLOCK), whole] if divide else [whole]


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _acc_fits(p: Problem, handler: Handler, m: int, n: int) -> bool:
    rows = _ceil(m, p.acc_rows) * p.acc_rows
    limit = handler.limit(MemorySpace.Acc) or 0
    bias = handler.limit(MemorySpace.Bias) or 0
    return rows * n * p.acc_bytes <= limit and (not p.bias or n * p.acc_bytes <= bias)


def _variants(p: Problem, handler: Handler, m: int, n: int, k: int) -> list[Choice]:
    """Ways to run the loops with these tile extents that fit L0A and L0B."""
    left, right = m * k * p.left_bytes, k * n * p.right_bytes
    room_a, room_b = handler.limit(MemorySpace.Left) or 0, handler.limit(MemorySpace.Right) or 0
    made: list[Choice] = []
    if left <= room_a // 2 and right <= room_b // 2:
        made.append(Choice(m, n, k))
    tiled = m < p.m or n < p.n
    if p.stationary and tiled and k == p.k:
        if left <= room_a and right <= room_b // 2:
            made.append(Choice(m, n, k, "left", True))
        if right <= room_b and left <= room_a // 2:
            made.append(Choice(m, n, k, "right", True))
    if p.double_buffer and tiled and k == p.k:
        rows = _ceil(m, p.acc_rows) * p.acc_rows
        if 2 * rows * n * p.acc_bytes <= (handler.limit(MemorySpace.Acc) or 0):
            made += [Choice(c.m, c.n, c.k, c.held, c.stationary, True) for c in made]
    return made


def held_operand(p: Problem, speed: Speed, choice: Choice) -> str:
    """The operand that the outer loop keeps: the one whose repetition of the other costs less."""
    left, right = p.m * p.k * p.left_bytes / speed.left, p.k * p.n * p.right_bytes / speed.right
    again_a, again_b = _ceil(p.n, choice.n), _ceil(p.m, choice.m)
    return "left" if left + right * again_b <= left * again_a + right else "right"


def held_by(p: Problem, handler_type: BackendType, choice: Choice) -> str:
    """Which operand the outer loop of an output grid keeps in L0."""
    return choice.held or held_operand(p, _SPEED[handler_type], choice)


def _cost(p: Problem, s: Speed, c: Choice) -> tuple[float, ...]:
    tiles = _ceil(p.m, c.m) * _ceil(p.n, c.n)
    load = _load(p, s, c)
    compute = max(load, _mad(p, s, c, tiles))
    drain = _drain(p, s, c, tiles)
    if c.double_buffer:
        wall = max(compute, drain) + min(compute, drain) / tiles
    else:
        wall = compute + drain
    padded = _ceil(p.m, c.m) * c.m * _ceil(p.n, c.n) * c.n * _ceil(p.k, c.k) * c.k
    blocks = _ceil(p.k, c.k)
    return (float(round(wall)), float(c.stationary), padded, blocks, load, -c.m * c.n, -c.k)


def _load(p: Problem, s: Speed, c: Choice) -> float:
    left, right = p.m * p.k * p.left_bytes / s.left, p.k * p.n * p.right_bytes / s.right
    again_a, again_b = _ceil(p.n, c.n), _ceil(p.m, c.m)
    if c.stationary:
        return left + right * again_b if c.held == "left" else left * again_a + right
    if c.k == p.k:
        return min(left + right * again_b, left * again_a + right)
    return left * again_a + right * again_b


def _mad(p: Problem, s: Speed, c: Choice, tiles: int) -> float:
    depth = max(1, 32 // p.left_bytes)
    full, tail = divmod(p.k, c.k)
    steps = full * _ceil(c.k, depth) + _ceil(tail, depth)
    passes = s.passes_fp32 if p.left_bytes == 4 else 1
    return tiles * (_ceil(p.k, c.k) * s.head + passes * _ceil(c.m, BLOCK) * steps * _ceil(c.n, BLOCK))


def _drain(p: Problem, s: Speed, c: Choice, tiles: int) -> float:
    odd = _ceil(c.n * p.acc_bytes, 32)
    while odd % 2 == 0:
        odd //= 2
    return tiles * (s.fixed + c.m * (max(s.row, p.acc_bytes * c.n / s.drain) + s.penalty * (odd - 1)))
