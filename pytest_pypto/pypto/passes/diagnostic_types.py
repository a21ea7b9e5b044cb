"""Records of the diagnostics: checks, phases, severities, and one finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ..ir.span import UNKNOWN, Span


class DiagnosticSeverity(Enum):
    """Weight of a finding."""

    Error = 0
    Warning = 1
    PerfHint = 2


class DiagnosticPhase(Enum):
    """When checks run: never, on the pipeline's input, after every pass, or on the result."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


class DiagnosticCheck(Enum):
    """Checks that give warnings or performance hints."""

    UnusedVariable = 0
    UnusedControlFlowResult = 1
    TileInnermostDimGranularity = 2
    OutParamWriteDropped = 3
    ParallelLoopCarriesMemory = 4


class SSAErrorType(Enum):
    """`error_code` of findings of the rule SSAForm."""

    MULTIPLE_ASSIGNMENT = 1
    NAME_SHADOWING = 2
    MISSING_YIELD = 3
    ITER_ARGS_RETURN_VARS_MISMATCH = 4
    YIELD_COUNT_MISMATCH = 5
    SCOPE_VIOLATION = 6


class TypeCheckErrorType(Enum):
    """`error_code` of findings of the rule TypeChecked."""

    TYPE_KIND_MISMATCH = 101
    DTYPE_MISMATCH = 102
    SHAPE_DIMENSION_MISMATCH = 103
    SHAPE_VALUE_MISMATCH = 104
    SIZE_MISMATCH = 105
    IF_CONDITION_MUST_BE_SCALAR = 106
    FOR_RANGE_MUST_BE_SCALAR = 107
    CONDITION_MUST_BE_BOOL = 108
    TENSOR_PADDING_MISMATCH = 109
    DISTRIBUTED_WINDOW_IDENTITY_MISMATCH = 110
    TILE_VIEW_MISMATCH = 111


class NestedCallErrorType(Enum):
    """`error_code` of findings of the rule NoNestedCalls."""

    CALL_IN_CALL_ARGS = 201
    CALL_IN_IF_CONDITION = 202
    CALL_IN_FOR_RANGE = 203
    CALL_IN_BINARY_EXPR = 204
    CALL_IN_UNARY_EXPR = 205


class UseAfterDefErrorType(Enum):
    """`error_code` of findings of the rule UseAfterDef."""

    USE_BEFORE_DEF = 401


@dataclass(frozen=True)
class Diagnostic:
    """One finding. `hint_code` (`PH001`) is empty for warnings and errors, `error_code` is 0 where there is none."""

    severity: DiagnosticSeverity
    rule_name: str
    message: str
    span: Span = UNKNOWN
    error_code: int = 0
    hint_code: str = ""

    def __str__(self) -> str:
        where = f" at {self.span}" if self.span.is_valid() else ""
        if self.severity is DiagnosticSeverity.PerfHint:
            return f"[perf_hint {self.hint_code}] {self.rule_name}: {self.message}{where}"
        code = f"-{self.error_code}" if self.error_code else ""
        return f"[{self.severity.name.lower()}] [{self.rule_name}{code}] {self.message}{where}"


class DiagnosticCheckSet:
    """A mutable set of checks; iteration is in member order."""

    def __init__(self, items: Iterable[DiagnosticCheck] = ()) -> None:
        self._items = set(items)

    def insert(self, check: DiagnosticCheck) -> None:
        """Add one."""
        self._items.add(check)

    def remove(self, check: DiagnosticCheck) -> None:
        """Take one out; nothing happens when it is absent."""
        self._items.discard(check)

    def contains(self, check: DiagnosticCheck) -> bool:
        """Membership."""
        return check in self._items

    def empty(self) -> bool:
        """True without members."""
        return not self._items

    def difference(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """A new set with the members that `other` lacks."""
        return DiagnosticCheckSet(self._items - other._items)

    def union_with(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """A new set with the members of both."""
        return DiagnosticCheckSet(self._items | other._items)

    def to_list(self) -> list[DiagnosticCheck]:
        """Members by value."""
        return sorted(self._items, key=lambda c: c.value)

    def __iter__(self) -> Iterator[DiagnosticCheck]:
        return iter(self.to_list())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiagnosticCheckSet) and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "DiagnosticCheckSet({" + ", ".join(c.name for c in self) + "})"
