"""Options of device regions: `pl.split(mode)` and `pl.cross_core_slot(slot_num=N)`."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.enums import SplitMode


class Optimization:
    """Base of the entries of `optimizations=[...]`."""


@dataclass(frozen=True)
class Split(Optimization):
    """Divide tiles that cross cores between the two vector lanes."""

    mode: SplitMode
    slot_num: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mode, SplitMode):
            good = ", ".join(f"pl.SplitMode.{m.name}" for m in SplitMode)
            raise TypeError(f"pl.split() takes a pl.SplitMode, got {self.mode!r}; one of {good}")


@dataclass(frozen=True)
class CrossCoreSlot(Optimization):
    """Depth of the rings between the cores of a region, in slots."""

    slot_num: int

    def __post_init__(self) -> None:
        if type(self.slot_num) is not int or self.slot_num < 1:
            raise ValueError(f"pl.cross_core_slot() takes a positive integer, got {self.slot_num!r}")


def split(mode: SplitMode, *, slot_num: int | None = None) -> Split:
    """The region's tiles are divided between the vector lanes: rows (UP_DOWN), columns (LEFT_RIGHT) or not (NONE)."""
    return Split(mode, slot_num)


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """The rings between the cores of the region have `slot_num` slots."""
    return CrossCoreSlot(slot_num)


__all__ = ["CrossCoreSlot", "Optimization", "Split", "cross_core_slot", "split"]
