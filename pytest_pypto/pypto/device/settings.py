"""All knobs of the simulated device in one frozen record."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path

from .findings import ALL_KINDS
from .platforms import PLATFORMS

ORDERS = ("program", "late", "random", "exhaustive")
RingSize = int | tuple[int, int, int, int]


@dataclass(frozen=True)
class DfxSettings:
    """Which profile files a run writes, and where. Everything off writes nothing."""

    directory: Path | None = None
    """Directory for the files; created when needed."""
    chip_swimlane: int = 0
    """Level 0..4 of `chip_swimlane_records.json`; times are on the documented cost clock, not predictions."""
    dump_args: int = 0
    """0 nothing, 1 marked tensors, 2 every argument, into `args_dump/`."""
    pmu: int = 0
    """Counter event of `pmu.csv` (2 = pipe utilisation); 0 is off."""
    dep_gen: bool = False
    """Write `deps.json`."""
    scope_stats: bool = False
    """Write `scope_stats/scope_stats.jsonl`."""

    @property
    def any(self) -> bool:
        """True when some file is asked for."""
        asked = self.chip_swimlane or self.dump_args or self.pmu or self.dep_gen or self.scope_stats
        return bool(self.directory is not None and asked)


@dataclass(frozen=True)
class DeviceSettings:
    """How one run is executed and checked.

    Raises:
        ValueError: an unknown sanitizer, order or platform, a number out of its range; the text names the field.
    """

    sanitize: frozenset[str] = frozenset()
    """Kinds of findings to look for (names of `FindingKind`); empty means no checks and no cost."""
    order: str = "program"
    """`program`: submission order; `late`: everything as late as its dependencies allow; `random`: by `seed`;
    `exhaustive`: every order of conflicting global accesses, at most `max_orders`."""
    seed: int = 0
    """Seed of `order="random"`."""
    max_orders: int = 1000
    """Most orders that `exhaustive` tries; reaching it is reported."""
    poison: int | None = None
    """Byte that fills core memories before the run; None fills zeros."""
    platform: str | None = None
    """`a2a3sim` or `a5sim`; must agree with the artifact when given."""
    clusters: int | None = None
    """Clusters (one cube core, two vector cores) of the device; None takes the platform's number."""
    ring_task_window: RingSize = 16384
    """Tasks one ring can hold; one number or one per ring."""
    ring_heap: RingSize = 256 << 20
    """Bytes of one ring's heap for created tensors."""
    ring_dep_pool: RingSize = 16384
    """Dependency entries of one ring."""
    while_limit: int = 10_000_000
    """Rounds of all loops of one core in one task, or of one host function, after which they are taken for endless."""
    max_findings: int = 200
    """Findings kept; further ones are only counted."""
    dfx: DfxSettings = field(default_factory=DfxSettings)

    def __post_init__(self) -> None:
        if isinstance(self.sanitize, str) or not isinstance(self.sanitize, Collection):
            raise ValueError(f"sanitize takes a set of names, got {self.sanitize!r}; write {{'race'}} for one kind")
        object.__setattr__(self, "sanitize", frozenset(str(k) for k in self.sanitize))
        unknown = sorted(self.sanitize - ALL_KINDS)
        if unknown:
            raise ValueError(f"unknown sanitizer {unknown[0]!r}; choose from {', '.join(sorted(ALL_KINDS))}")
        if self.order not in ORDERS:
            raise ValueError(f"unknown order {self.order!r}; choose from {', '.join(ORDERS)}")
        if self.platform is not None and str(self.platform).removesuffix("sim") not in PLATFORMS:
            known = ", ".join(p.name for p in PLATFORMS.values())
            raise ValueError(f"unknown platform {self.platform!r}; choose from {known}")
        if not isinstance(self.dfx, DfxSettings):
            raise ValueError(f"dfx takes DfxSettings, got {self.dfx!r}")
        if self.poison is not None and not _whole(self.poison, 0, 255):
            raise ValueError(f"poison must be a byte 0..255, got {self.poison!r}")
        if not _whole(self.seed):
            raise ValueError(f"seed must be a whole number, got {self.seed!r}")
        for name, least in (("max_orders", 1), ("while_limit", 1), ("max_findings", 0), ("clusters", 1)):
            value = getattr(self, name)
            if not _whole(value, least) and not (name == "clusters" and value is None):
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
        for name in ("ring_task_window", "ring_heap", "ring_dep_pool"):
            if min(self.per_ring(name)) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")

    @classmethod
    def strict(cls, **changes: object) -> DeviceSettings:
        """Every sanitizer on."""
        return replace(cls(sanitize=ALL_KINDS), **changes)  # type: ignore[arg-type]

    def per_ring(self, name: str) -> tuple[int, int, int, int]:
        """The four values of a ring setting.

        Raises:
            ValueError: neither one number nor four.
        """
        value = getattr(self, name)
        four = (value,) * 4 if _whole(value) else value
        if not isinstance(four, (tuple, list)) or len(four) != 4 or not all(_whole(n) for n in four):
            raise ValueError(f"{name} takes one number or four (one per ring), got {value!r}")
        a, b, c, d = four
        return (int(a), int(b), int(c), int(d))


def _whole(value: object, least: int | None = None, most: int | None = None) -> bool:
    """True for a whole number within the bounds; a truth value is none."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        return False
    return (least is None or int(value) >= least) and (most is None or int(value) <= most)
