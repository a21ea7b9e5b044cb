"""Profile files of a run: which observers the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..findings import DeviceError
from .args_dump import ArgsDump
from .graph_dump import Deps, ScopeStats
from .observer import Observer
from .swimlane import Swimlane

if TYPE_CHECKING:
    from ..run_context import RunContext

PMU_EVENTS = (1, 2, 4, 5, 6, 7, 8)


def observers_for(run: RunContext) -> list[Observer]:
    """The observers that the settings ask for.

    Raises:
        DeviceError: an unknown counter event or level.
    """
    dfx = run.settings.dfx
    if dfx.pmu and dfx.pmu not in PMU_EVENTS:
        raise DeviceError(f"unknown pmu event {dfx.pmu}; known are {', '.join(map(str, PMU_EVENTS))}")
    if not 0 <= dfx.chip_swimlane <= 4 or not 0 <= dfx.dump_args <= 2:
        raise DeviceError("chip_swimlane is a level 0..4, dump_args a level 0..2")
    found: list[Observer] = []
    found += [Swimlane(run)] if dfx.chip_swimlane or dfx.pmu else []
    found += [ArgsDump(run)] if dfx.dump_args else []
    found += [Deps(run)] if dfx.dep_gen else []
    found += [ScopeStats(run)] if dfx.scope_stats else []
    ids: dict[str, int] = {}
    for observer in found:
        observer.ids = ids  # one numbering of kernels in all files
    return found
