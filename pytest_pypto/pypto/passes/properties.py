"""IR properties: promises that passes require, produce and invalidate, and the sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum


class IRProperty(Enum):
    """One promise about a program; `passes.verification` has the check of each that can be checked."""

    SSAForm = 0
    TypeChecked = 1
    NoNestedCalls = 2
    NormalizedStmtStructure = 3
    NoRedundantBlocks = 4
    SplitIncoreOrch = 5
    HasMemRefs = 6
    IncoreTileOps = 7
    AllocatedMemoryAddr = 8
    MixedKernelExpanded = 9
    ClusterOutlined = 10
    TileOps2D = 11
    TileMemoryInferred = 12
    BreakContinueValid = 13
    UseAfterDef = 14
    HierarchyOutlined = 15
    StructuredCtrlFlow = 16
    VectorKernelSplit = 17
    OutParamNotShadowed = 18
    NoNestedInCore = 19
    InOutUseValid = 20
    PipelineLoopValid = 21
    PipelineResolved = 22
    CallDirectionsResolved = 23
    TileTypeCoherence = 24
    InlineFunctionsEliminated = 25
    OrchestrationReferencesResolved = 26
    TensorViewCanonical = 27
    ArrayNotEscaped = 28
    CommDomainScopesMaterialized = 29
    DistTensorCtxMaterialized = 30
    RuntimeScopesMaterialized = 31
    AssignTypeSymmetry = 32
    ManualDepsOnSubmitOnly = 33
    ReturnParamsExplicit = 34
    UnrollResolved = 35
    AivSplitValid = 36
    HardSyncallOccupancyValid = 37
    IterArgCarryClassified = 38
    AccToGmStoreValid = 39
    AtomicAddDtypeValid = 40


class IRPropertySet:
    """A mutable set of properties; iteration is in member order."""

    def __init__(self, items: Iterable[IRProperty | str] = ()) -> None:
        self._items = {IRProperty[i] if isinstance(i, str) else i for i in items}

    def insert(self, prop: IRProperty) -> None:
        """Add one."""
        self._items.add(prop)

    def remove(self, prop: IRProperty) -> None:
        """Take one out; nothing happens when it is absent."""
        self._items.discard(prop)

    def contains(self, prop: IRProperty) -> bool:
        """Membership."""
        return prop in self._items

    def contains_all(self, other: IRPropertySet) -> bool:
        """True when every member of `other` is here."""
        return other._items <= self._items

    def union_with(self, other: IRPropertySet) -> IRPropertySet:
        """A new set with the members of both."""
        return IRPropertySet(self._items | other._items)

    def intersection(self, other: IRPropertySet) -> IRPropertySet:
        """A new set with the common members."""
        return IRPropertySet(self._items & other._items)

    def difference(self, other: IRPropertySet) -> IRPropertySet:
        """A new set with the members that `other` lacks."""
        return IRPropertySet(self._items - other._items)

    def empty(self) -> bool:
        """True without members."""
        return not self._items

    def to_list(self) -> list[IRProperty]:
        """Members by value."""
        return sorted(self._items, key=lambda p: p.value)

    def __iter__(self) -> Iterator[IRProperty]:
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IRPropertySet) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "IRPropertySet({" + ", ".join(p.name for p in self) + "})"


@dataclass(frozen=True)
class PassProperties:
    """What a custom pass requires, produces and invalidates."""

    required: IRPropertySet = field(default_factory=IRPropertySet)
    produced: IRPropertySet = field(default_factory=IRPropertySet)
    invalidated: IRPropertySet = field(default_factory=IRPropertySet)


NORM = "NormalizedStmtStructure"
SSA = "SSAForm"
SPLIT_ORCH = "SplitIncoreOrch"
TILE_OPS = "IncoreTileOps"
TILES_2D = frozenset({SSA, SPLIT_ORCH, TILE_OPS, "TileOps2D", NORM})
"""After FlattenTileNdTo2D."""
TILES_PLACED = TILES_2D | {"TileMemoryInferred"}
"""After InferTileMemorySpace."""
TILES_BOUND = frozenset({SPLIT_ORCH, TILE_OPS, "HasMemRefs", "TileOps2D", NORM})
"""After InitMemRef."""

STRUCTURAL = frozenset(
    {
        *("TypeChecked", "BreakContinueValid", "NoRedundantBlocks", "UseAfterDef", "OutParamNotShadowed"),
        *("NoNestedInCore", "InOutUseValid", "PipelineLoopValid", "ArrayNotEscaped", "ManualDepsOnSubmitOnly"),
        "AtomicAddDtypeValid",
    }
)
"""Properties that always hold, whatever passes ran."""
AUTOMATIC = frozenset(
    {
        *("SSAForm", "TypeChecked", "MixedKernelExpanded", "AllocatedMemoryAddr", "BreakContinueValid"),
        *("NoRedundantBlocks", "InOutUseValid", "CallDirectionsResolved", "ManualDepsOnSubmitOnly"),
        *("ReturnParamsExplicit", "AivSplitValid", "TileMemoryInferred", "HardSyncallOccupancyValid"),
        *("IterArgCarryClassified", "RuntimeScopesMaterialized", "DistTensorCtxMaterialized"),
        *("AccToGmStoreValid", "AtomicAddDtypeValid"),
    }
)
"""Properties that a pipeline checks by itself at BASIC and ROUNDTRIP."""
STANDALONE = frozenset(
    {
        *("SSAForm", "TypeChecked", "NoNestedCalls", "BreakContinueValid", "NoRedundantBlocks", "UseAfterDef"),
        *("OutParamNotShadowed", "NoNestedInCore", "TileTypeCoherence", "ArrayNotEscaped"),
    }
)
"""Properties that a stand-alone verifier pass checks when none are named."""
