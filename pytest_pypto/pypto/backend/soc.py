"""A description of a chip: memories, cores, clusters, dies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..ir.enums import CoreType, MemorySpace

_T = TypeVar("_T")


@dataclass(frozen=True)
class Mem:
    """One on-chip memory: its space, size in bytes and address alignment in bytes."""

    mem_type: MemorySpace
    mem_size: int
    alignment: int


def _counts(kind: type[_T], first: Mapping[_T, int] | _T, count: int | None, owner: str) -> dict[_T, int]:
    counted = dict(first) if isinstance(first, Mapping) else {first: 1 if count is None else count}
    for part, number in counted.items():
        if not isinstance(part, kind) or not isinstance(number, int) or number < 1:
            form = f"{{{kind.__name__}: count >= 1}} or ({kind.__name__}, count)"
            raise TypeError(f"{owner}() takes {form}, got {first!r}")
    return counted


class Core:
    """One core: its kind and its memories."""

    def __init__(self, core_type: CoreType, mems: Sequence[Mem]) -> None:
        self.core_type = core_type
        self.mems = list(mems)


class Cluster:
    """Cores that share a clock and synchronise directly: `Cluster({core: n})` or `Cluster(core, n)`."""

    def __init__(self, core_counts: Mapping[Core, int] | Core, count: int | None = None) -> None:
        self.core_counts = _counts(Core, core_counts, count, "Cluster")

    def total_core_count(self) -> int:
        """Cores of the cluster."""
        return sum(self.core_counts.values())


class Die:
    """Clusters of one die: `Die({cluster: n})` or `Die(cluster, n)`."""

    def __init__(self, cluster_counts: Mapping[Cluster, int] | Cluster, count: int | None = None) -> None:
        self.cluster_counts = _counts(Cluster, cluster_counts, count, "Die")

    def total_cluster_count(self) -> int:
        """Clusters of the die."""
        return sum(self.cluster_counts.values())

    def total_core_count(self) -> int:
        """Cores of the die."""
        return sum(cluster.total_core_count() * n for cluster, n in self.cluster_counts.items())


class SoC:
    """Dies of one chip: `SoC({die: n})` or `SoC(die, n)`."""

    def __init__(self, die_counts: Mapping[Die, int] | Die, count: int | None = None) -> None:
        self.die_counts = _counts(Die, die_counts, count, "SoC")

    def total_die_count(self) -> int:
        """Dies of the chip."""
        return sum(self.die_counts.values())

    def total_cluster_count(self) -> int:
        """Clusters of the chip."""
        return sum(die.total_cluster_count() * n for die, n in self.die_counts.items())

    def total_core_count(self) -> int:
        """Cores of the chip."""
        return sum(die.total_core_count() * n for die, n in self.die_counts.items())

    def cores(self) -> dict[Core, int]:
        """Every kind of core of the chip with its number."""
        found: dict[Core, int] = {}
        for die, dies in self.die_counts.items():
            for cluster, clusters in die.cluster_counts.items():
                for core, cores in cluster.core_counts.items():
                    found[core] = found.get(core, 0) + dies * clusters * cores
        return found
