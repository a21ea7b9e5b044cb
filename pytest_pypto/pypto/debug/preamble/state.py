"""What a core knows about itself: its lane, its block, its pipes. Each thread has its own record."""

from __future__ import annotations

import threading
from typing import Any


class _CoreState(threading.local):
    """Lane and block of the core that runs on this thread, and how it waits."""

    subblock = 0
    block = 0
    blocks = 1
    pipes: Any = None
    """Pipes of the group that runs on this thread; None outside groups."""
    stepping = False
    """True while generated code runs under a scheduler: waiting operations return requests instead of blocking."""
    thread_lane: Any = None
    """The lane a pooled thread runs for, or None."""
    cancel: Any = None


_core = _CoreState()
_runtime_cancel_event: Any = None


def _set_subblock_idx(lane: int) -> None:
    """Make this thread vector lane `lane`."""
    _core.subblock = int(lane)


def _get_subblock_idx() -> int:
    """The vector lane (0 or 1) of this thread; 0 on the cube and outside groups."""
    return _core.subblock


def _set_block_idx(block: int, blocks: int | None = None) -> None:
    """Make this thread block `block` of a launch of `blocks` blocks."""
    _core.block = int(block)
    if blocks is not None:
        _core.blocks = int(blocks)


def _get_block_idx() -> int:
    """The block of the current launch; 0 outside launches."""
    return _core.block


def _get_block_num() -> int:
    """The number of blocks of the current launch; 1 outside launches."""
    return _core.blocks


def _set_runtime_cancel_event(event: Any) -> None:
    """Publish the event that cancels waiting cores; None when nothing runs."""
    global _runtime_cancel_event
    _runtime_cancel_event = event


def _get_runtime_cancel_event() -> Any:
    """The event that cancels this thread's run, or None when nothing runs."""
    return _core.cancel if _core.cancel is not None else _runtime_cancel_event
