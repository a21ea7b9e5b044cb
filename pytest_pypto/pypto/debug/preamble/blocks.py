"""Launches over several blocks, and regions that both vector lanes run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator
from typing import Any

from .lanes import _Barrier, _drive, _group_lane, _run_group_call
from .pipes import _cut, _merge
from .regions import _snapshot
from .state import _core


def _spmd_blocks(blocks: Any) -> Iterator[int]:
    """The block numbers of a launch, each current while its iteration runs."""
    saved = _core.block, _core.blocks
    try:
        for block in range(int(blocks)):
            _core.block, _core.blocks = block, int(blocks)
            yield block
    finally:
        _core.block, _core.blocks = saved


def _aiv_lanes(lanes: int) -> Iterator[int]:
    """The vector lanes of a region, each current while its iteration runs."""
    saved = _core.subblock
    try:
        for lane in range(lanes):
            _core.subblock = lane
            yield lane
    finally:
        _core.subblock = saved


def _run_spmd(blocks: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` once per block, one block after the other; the result is that of block 0.

    A kernel with barriers across blocks runs all blocks together, each up to its next barrier.
    """
    lane = _group_lane if function is _run_group_call else getattr(function, "lane", None)
    if lane is not None:
        return _blocks_in_step(int(blocks), lane, args)
    first = None
    for block in _spmd_blocks(blocks):
        value = function(*args)
        first = value if block == 0 else first
    return first


def _blocks_in_step(blocks: int, lane: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    runs: list[Any] = [lane(*args) for _ in range(blocks)]
    values: list[Any] = [None] * blocks
    waiting: dict[int, Any] = dict.fromkeys(range(blocks))
    saved = _core.block, _core.blocks
    try:
        while waiting:
            for block in list(waiting):
                _core.block, _core.blocks = block, blocks
                try:
                    waiting[block] = _to_barrier(runs[block])
                except StopIteration as stop:
                    values[block] = stop.value
                    del waiting[block]
            if waiting and len(waiting) < blocks and any(waiting.values()):
                raise RuntimeError(
                    f"syncall: blocks {sorted(waiting)} of {blocks} wait at a barrier that the others never reach"
                )
        return values[0] if values else None
    finally:
        _core.block, _core.blocks = saved
        for run in runs:
            run.close()


def _to_barrier(steps: Any) -> Any:
    """Run a block up to its next barrier; raises StopIteration at its end."""
    while True:
        before, _core.stepping = _core.stepping, True
        try:
            request = steps.send(None)
        finally:
            _core.stepping = before
        if isinstance(request, _Barrier):
            return request
        if request is not None:
            raise RuntimeError(f"a kernel outside a group waits in {request.text()}: nobody can serve it")


class _Exchange:
    """A vector lane offers its part of a tile and wants the whole back."""

    __slots__ = ("split", "tile")

    def __init__(self, tile: Any, split: int) -> None:
        self.tile, self.split = tile, split

    def text(self) -> str:
        """`aic_gather (split=1)`."""
        return f"aic_gather (split={self.split})"


class _Meeting:
    """A vector lane waits until the other one is here too: before the kernel touches memory that both cores touch."""

    __slots__ = ()

    def text(self) -> str:
        """What an error message calls it."""
        return "a meeting before an access of memory"


def _aic_gather(tile: Any, split: int) -> Any:
    """The request that joins both lanes' parts; split 0 shares one slot, so lane 0's tile counts."""
    return _Exchange(_snapshot(tile), int(split))


def _aiv_shard(tile: Any, split: int, lane_stride: int = 0) -> Any:
    """This lane's part of a tile; the whole for split 0."""
    if int(split) == 0:
        return _snapshot(tile)
    axis = 0 if split in (1, 3) else 1
    odd = tile.shape[axis] % 2 and not lane_stride
    return _cut(tile, int(split), -(-tile.shape[axis] // 2) if odd else int(lane_stride), "aiv_shard")[_core.subblock]


def _lanes_in_step(lanes: int, body: Callable[..., Any], *args: Any) -> Generator[Any, Any, Any]:
    """Run `body` once per vector lane, together up to each exchange or barrier; the result is that of lane 0."""
    runs: list[Any] = [body(*args) for _ in range(lanes)]
    values: list[Any] = [None] * lanes
    sends: dict[int, Any] = dict.fromkeys(range(lanes))
    saved = _core.subblock
    while sends:
        asked: dict[int, Any] = {}
        for lane in list(sends):
            _core.subblock = lane
            try:
                asked[lane] = _to_request(runs[lane], sends[lane])
            except StopIteration as stop:
                values[lane] = stop.value
        _core.subblock = saved
        if asked and len(asked) < lanes:
            raise RuntimeError(f"lane {min(asked)} waits in {asked[min(asked)].text()}, the other lane has ended")
        sends = asked
        if asked and isinstance(asked[0], _Exchange):
            parts = [asked[k].tile for k in range(lanes)]
            split = asked[0].split
            sends = {k: _snapshot(parts[0]) if split == 0 else _merge(parts, split) for k in range(lanes)}
        elif asked:
            if not isinstance(asked[0], _Meeting):
                yield asked[0]
            sends = dict.fromkeys(asked)
    return values[0]


def _to_request(steps: Any, value: Any) -> Any:
    """Run a lane up to its next exchange or barrier; raises StopIteration at its end."""
    request = None
    while request is None:
        before, _core.stepping = _core.stepping, True
        try:
            request = steps.send(value)
        finally:
            _core.stepping = before
        value = None
    return request


def _run_lanes(lanes: int, body: Callable[..., Any], *args: Any) -> Any:
    """Run a region of vector lanes to the end."""
    return _drive(_lanes_in_step(lanes, body, *args))


def _two_lanes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a kernel run once per vector lane: in step when it exchanges tiles, else one lane after the other."""
    if function.__code__.co_flags & 0x20:

        @functools.wraps(function)
        def together(*args: Any) -> Any:
            return _run_lanes(2, function, *args)

        together.lane = functools.partial(_lanes_in_step, 2, function)  # type: ignore[attr-defined]
        return together

    @functools.wraps(function)
    def in_turn(*args: Any) -> Any:
        values = [function(*args) for _ in _aiv_lanes(2)]
        return values.pop(0)

    return in_turn


def _run_blocks(blocks: Any, body: Callable[..., Any], *args: Any) -> Any:
    """Run a region of a launch on all blocks together; the result is that of block 0."""
    return _blocks_in_step(int(blocks), body, args)
