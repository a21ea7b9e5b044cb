"""The pipes between the cube core and its two vector lanes: queues, splitting, merging, waiting."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import torch

from .regions import _region, _snapshot
from .state import _core, _get_runtime_cancel_event

_PIPE_WAIT_TIMEOUT_SEC = 10.0
"""How long a pop waits for a thread that may still push."""
_BOUNDED_PIPES = False
"""True: a push waits while all slots of its pipe are taken, until the consumer frees one."""


def _half(op: str, split: int, extent: int, lane_stride: int) -> tuple[int, int]:
    """Extent of a lane's part and the cell where lane 1 starts."""
    half = -(-extent // 2)
    if lane_stride:
        if not 0 < lane_stride <= half:
            raise ValueError(f"{op}: lane stride must lie in 1..{half} for extent {extent}, got {lane_stride}")
        return half, lane_stride
    if split in (1, 2) and extent % 2:
        raise ValueError(
            f"{op}: split mode {split} needs an even extent, got {extent}; "
            "use the odd split modes 3 and 4 or a lane stride"
        )
    return half, half


def _cut(tile: torch.Tensor, split: int, lane_stride: int = 0, op: str = "push_to_aiv") -> list[Any]:
    """The parts of a tile for lanes 0 and 1: rows for codes 1 and 3, columns for 2 and 4."""
    axis = 0 if split in (1, 3) else 1
    extent = tile.shape[axis]
    half, stride = _half(op, split, extent, lane_stride)
    whole = getattr(tile, "_pypto_full_shape", None)
    if whole is None and split in (1, 2) and stride == half:
        return list(torch.split(tile.clone(), half, axis))
    valid = _region(tile)[axis]
    cells = (min(valid, stride), min(max(valid - stride, 0), stride))
    if split in (3, 4) and cells[0] != cells[1] + 1:
        raise ValueError(f"{op}: split mode {split} requires lanes one cell apart, got {cells[0]} and {cells[1]}")
    parts = []
    for start, mine in ((0, cells[0]), (stride, cells[1])):
        part: Any = tile.narrow(axis, start, min(half, extent - start)).clone()
        if whole is not None:
            size = min(whole[axis], half) if start == 0 else min(max(whole[axis] - stride, 0), half)
            part._pypto_full_shape = tuple(size if k == axis else s for k, s in enumerate(whole))
            old = _region(tile)
            part._pypto_valid_shape = tuple(mine if k == axis else v for k, v in enumerate(old))
        parts.append(part)
    return parts


def _merge(parts: list[torch.Tensor], split: int) -> Any:
    """The tile whose parts lanes 0 and 1 hold; lane 1's cells follow directly after lane 0's valid ones."""
    axis = 0 if split in (1, 3) else 1
    first, second = parts
    tagged = [p for p in parts if getattr(p, "_pypto_valid_shape", None) is not None]
    joined: Any = torch.cat([first, second], dim=axis)
    if not tagged:
        return joined
    mine, other = _region(first), _region(second)
    if mine[axis] < first.shape[axis] and other[axis]:
        joined = torch.zeros_like(joined)
        joined.narrow(axis, 0, mine[axis]).copy_(first.narrow(axis, 0, mine[axis]))
        joined.narrow(axis, mine[axis], other[axis]).copy_(second.narrow(axis, 0, other[axis]))
    rest = mine if mine[axis] else other
    count = min(mine[axis] + other[axis], joined.shape[axis])
    joined._pypto_valid_shape = tuple(count if k == axis else v for k, v in enumerate(rest))
    joined._pypto_full_shape = tuple(joined.shape)
    return joined


class _Wait:
    """A pop that needs a tile in each of `keys`, or a push that needs a slot."""

    __slots__ = ("free", "keys", "lane", "op", "pipes", "split", "tile")

    def __init__(self, pipes: Any, op: str, split: int, lane: int, keys: list[Any], free: bool = False) -> None:
        self.pipes, self.op, self.split, self.lane, self.keys, self.free = pipes, op, split, lane, keys, free
        self.tile: Any = None

    def ready(self) -> bool:
        """True when taking would not wait."""
        if self.free:
            return all(self.pipes.has_slot(k) for k in self.keys)
        queues = self.pipes.queues
        return all(queues.get(k) for k in self.keys)

    def take(self) -> Any:
        """What the operation returns: the tile, merged or lane 0's when there are two; a push stores its parts."""
        pipes = self.pipes
        if self.free:
            for key, part in zip(self.keys, self.tile, strict=False):
                pipes.put(key, part)
            return None
        tiles = [pipes.queues[k].popleft() for k in self.keys]
        if len(tiles) == 1 or self.split == 0:
            return tiles[0]
        return _merge(tiles, self.split)

    def text(self) -> str:
        """`tpop_from_aiv (split=1, lane=0)`."""
        return f"{self.op} (split={self.split}, lane={self.lane})"


class _NoLock:
    """Stands for the condition of pipes that only one thread uses."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None: ...

    def notify_all(self) -> None:
        """Nobody waits."""


class _Pipes:
    """The channels of one group run. A key is (receiver, pipe id, split code or "dual", lane)."""

    def __init__(self, dual: bool = False, logical: bool = False, threads: bool = True) -> None:
        self.condition: Any = threading.Condition() if threads else _NoLock()
        self.dual = dual
        self.logical = logical
        self.queues: dict[Any, deque[Any]] = {}
        self.slots: dict[Any, int] = {}
        self.used: dict[Any, int] = {}
        self.last: dict[Any, Any] = {}

    def put(self, key: Any, part: Any) -> None:
        """Append a tile to a channel."""
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = deque()
        queue.append(part)
        place = (key[0], key[1], key[3])
        self.used[place] = self.used.get(place, 0) + 1
        self.last[key] = part

    def has_slot(self, key: Any) -> bool:
        """True when the ring behind a channel has a free slot."""
        return self.used.get((key[0], key[1], key[3]), 0) < self.slots.get((key[0], key[1]), 8)

    def free(self, receiver: str, pipe: int, lanes: tuple[int, ...]) -> None:
        """Give one slot of each lane's ring back."""
        for lane in lanes:
            place = (receiver, pipe, lane)
            self.used[place] = max(0, self.used.get(place, 0) - 1)

    def depth(self, receiver: str, code: Any, lane: int | None = None) -> int:
        """Tiles waiting in the channels of one receiver and split code, over all pipe ids."""
        items = self.queues.items()
        return sum(len(q) for k, q in items if k[0] == receiver and k[2] == code and lane in (None, k[3]))

    def left(self) -> list[str]:
        """One text per channel that still holds tiles."""
        arrow = {"aiv": "C→V", "aic": "V→C"}
        rows = sorted(((k, len(q)) for k, q in self.queues.items() if q), key=lambda row: tuple(map(str, row[0])))
        return [
            f"{n} left in {arrow[k[0]]} lane {k[3]} (split {0 if k[2] == 'dual' else k[2]}, pipe {k[1]}, "
            f"last {tuple(self.last[k].shape)} {self.last[k].dtype})"
            for k, n in rows
        ]


class _CrossCoreRuntime:
    """The operations that cores call; they act on the pipes of the group that runs on the calling thread."""

    def __init__(self) -> None:
        self._own = _Pipes()

    def _pipes(self) -> Any:
        return self._own if _core.pipes is None else _core.pipes

    def reset(self, no_split_dual_aiv_dispatch: bool = False) -> None:
        """Empty all channels and choose whether split 0 serves two lanes."""
        pipes = self._pipes()
        with pipes.condition:
            pipes.__init__(bool(no_split_dual_aiv_dispatch), pipes.logical)

    def notify_all(self) -> None:
        """Wake every thread that waits for a tile."""
        pipes = self._pipes()
        with pipes.condition:
            pipes.condition.notify_all()

    def snapshot(self) -> dict[str, Any]:
        """The mode and the number of waiting tiles of every channel."""
        return _snapshot_of(self._pipes())

    def initialize_pipe(self, dir_mask: int, slot_num: int | None = None, id: int = 0) -> None:
        """Declare the ring of a pipe: `dir_mask` 1 cube to vector, 2 vector to cube, 3 both."""
        slots = slot_num or (4 if dir_mask == 3 else 8)
        for bit, receiver in ((1, "aiv"), (2, "aic")):
            if dir_mask & bit:
                self._pipes().slots[receiver, id] = slots

    def tfree_to_aic(self, split: int = 0, id: int = 0) -> None:
        """A vector lane gives the slot of a popped tile back to the cube."""
        self._pipes().free("aiv", id, (_core.subblock,))

    def tfree_to_aiv(self, split: int = 0, id: int = 0) -> None:
        """The cube gives the slot of a popped tile back to the vector lanes."""
        self._pipes().free("aic", id, (0, 1))

    def push_to_aiv(self, tile: Any, split: int, lane_stride: int = 0, id: int = 0) -> Any:
        """The cube sends a tile: whole (split 0; to both lanes when two take part) or cut into one part per lane."""
        pipes = self._pipes()
        code = _code("push_to_aiv", split, pipes)
        if code == 0 and not pipes.dual:
            return self._send(pipes, "tpush_to_aiv", split, [("aiv", id, 0, 0)], [_snapshot(tile)])
        parts = [_snapshot(tile), _snapshot(tile)] if code == 0 else _cut(tile, code, int(lane_stride))
        name: Any = "dual" if code == 0 else code
        return self._send(pipes, "tpush_to_aiv", split, [("aiv", id, name, lane) for lane in (0, 1)], parts)

    def push_to_aic(self, tile: Any, split: int, id: int = 0) -> Any:
        """A vector lane sends its tile, or its part of one, to the cube."""
        pipes = self._pipes()
        code = _code("push_to_aic", split, pipes)
        if code in (3, 4):
            raise ValueError(f"Unsupported odd split mode for push_to_aic: {code}; use 1 or 2 with an even extent")
        key = ("aic", id, 0, 0)
        if code or pipes.dual:
            key = ("aic", id, code or "dual", _lane_of("push_to_aic"))  # type: ignore[assignment]
        return self._send(pipes, "tpush_to_aic", split, [key], [_snapshot(tile)])

    def pop_from_aic(self, split: int, id: int = 0) -> Any:
        """A vector lane receives its tile, or its part of one, from the cube."""
        pipes = self._pipes()
        code = _code("pop_from_aic", split, pipes)
        key = ("aiv", id, 0, 0)
        if code or pipes.dual:
            key = ("aiv", id, code or "dual", _lane_of("pop_from_aic"))  # type: ignore[assignment]
        return self._wait(_Wait(pipes, "tpop_from_aic", code, _core.subblock, [key]))

    def pop_from_aiv(self, split: int, id: int = 0) -> Any:
        """The cube receives a tile: merged from both lanes, or lane 0's when both sent a whole one."""
        pipes = self._pipes()
        code = _code("pop_from_aiv", split, pipes)
        if code in (3, 4):
            raise ValueError(f"Unsupported odd split mode for pop_from_aiv: {code}; use 1 or 2 with an even extent")
        lanes = (0, 1) if code or pipes.dual else (0,)
        name: Any = "dual" if code == 0 and pipes.dual else code
        return self._wait(_Wait(pipes, "tpop_from_aiv", code, _core.subblock, [("aic", id, name, k) for k in lanes]))

    def _send(self, pipes: Any, op: str, split: int, keys: list[Any], parts: list[Any]) -> Any:
        if _BOUNDED_PIPES:
            wait = _Wait(pipes, op, split, _core.subblock, keys, free=True)
            wait.tile = parts
            return self._wait(wait)
        with pipes.condition:
            for key, part in zip(keys, parts, strict=False):
                pipes.put(key, part)
            pipes.condition.notify_all()
        return None

    def _wait(self, wait: _Wait) -> Any:
        if _core.stepping:
            return wait
        return _block(wait)


def _block(wait: _Wait) -> Any:
    """Wait on the calling thread until `wait` can be taken, is cancelled or runs out of time."""
    pipes = wait.pipes
    if _core.thread_lane is not None:
        return _core.thread_lane.hand_over(wait)
    cancel = _get_runtime_cancel_event()
    deadline = time.monotonic() + _PIPE_WAIT_TIMEOUT_SEC
    with pipes.condition:
        while not wait.ready():
            if cancel is not None and cancel.is_set():
                raise RuntimeError(f"{wait.op} cancelled (split={wait.split}, lane={wait.lane})")
            left = deadline - time.monotonic()
            if left <= 0 or not _others_run():
                reason = "" if left <= 0 else "; no other thread is alive that could send"
                raise RuntimeError(_timeout_text(wait) + reason)
            pipes.condition.wait(min(left, 0.05))
        return wait.take()


def _timeout_text(wait: _Wait) -> str:
    state = _snapshot_of(wait.pipes)
    return f"{wait.op} timeout (split={wait.split}, lane={wait.lane}); pipe_state={state}"


def _others_run() -> bool:
    """True when another thread than this one and the idle ones of the pool is alive."""
    me = threading.current_thread()
    return any(t is not me and not getattr(t, "_pypto_idle", False) for t in threading.enumerate())


def _code(op: str, split: Any, pipes: Any) -> int:
    code = int(split)
    if code not in (0, 1, 2, 3, 4):
        raise ValueError(f"Unsupported split mode for {op}: {split}; use 0, 1, 2, 3 or 4")
    return 0 if pipes.logical else code


def _lane_of(op: str) -> int:
    lane = _core.subblock
    if lane not in (0, 1):
        raise ValueError(f"{op} requires lane in {{0,1}}, got {lane}")
    return lane


def _snapshot_of(pipes: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"no_split_dual_aiv_dispatch": pipes.dual}
    for receiver in ("aiv", "aic"):
        out[f"to_{receiver}"] = pipes.depth(receiver, 0)
        out[f"to_{receiver}_dual_nosplit"] = {lane: pipes.depth(receiver, "dual", lane) for lane in (0, 1)}
        out[f"to_{receiver}_split"] = {
            code: {lane: pipes.depth(receiver, code, lane) for lane in (0, 1)} for code in (1, 2, 3, 4)
        }
    return out


_cross_core_rt = _CrossCoreRuntime()
