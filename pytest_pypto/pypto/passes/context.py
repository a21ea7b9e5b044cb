"""The pass context: what passes of this thread ask for, and who listens between passes."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

from .diagnostic_types import DiagnosticCheck, DiagnosticCheckSet, DiagnosticPhase

if TYPE_CHECKING:
    from .instruments import PassInstrument


class VerificationLevel(Enum):
    """How much a pipeline checks: nothing, properties, or properties plus the text round trip of every pass."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


class MemoryPlanner(Enum):
    """Who gives on-chip buffers their addresses."""

    PYPTO = 0
    PTOAS = 1
    DSA_RP = 2


class RuntimeKind(Enum):
    """The runtime that dispatches the artifact."""

    TENSORMAP_AND_RINGBUFFER = 0
    HOST_BUILD_GRAPH = 1


def runtime_kind_to_name(kind: RuntimeKind) -> str:
    """Wire name: `tensormap_and_ringbuffer` or `host_build_graph`."""
    return kind.name.lower()


def runtime_kind_from_name(name: str) -> RuntimeKind:
    """The kind of a wire name.

    Raises:
        ValueError: unknown name.
    """
    for kind in RuntimeKind:
        if kind.name.lower() == name:
            return kind
    known = ", ".join(runtime_kind_to_name(k) for k in RuntimeKind)
    raise ValueError(f"unknown runtime {name!r}; use one of {known}")


def get_default_verification_level() -> VerificationLevel:
    """The level of `PYPTO_VERIFY_LEVEL` (none, basic, roundtrip), else BASIC.

    Raises:
        ValueError: the variable holds something else.
    """
    text = os.environ.get("PYPTO_VERIFY_LEVEL", "").strip()
    if not text:
        return VerificationLevel.BASIC
    try:
        return VerificationLevel[text.upper()]
    except KeyError:
        raise ValueError(f"PYPTO_VERIFY_LEVEL={text!r} is no level; use none, basic or roundtrip") from None


def get_default_diagnostic_phase() -> DiagnosticPhase:
    """The phase of `PYPTO_WARNING_LEVEL` (none, post_pass, post_pipeline), else PRE_PIPELINE."""
    text = os.environ.get("PYPTO_WARNING_LEVEL", "").strip().upper()
    return DiagnosticPhase.__members__.get(text, DiagnosticPhase.PRE_PIPELINE)


class PassContext:
    """Settings and instruments for the passes that run inside `with PassContext(...):`; contexts nest per thread.

    `verification_level` and `diagnostic_phase` fall back to the environment when not given.
    """

    _local: ClassVar[threading.local] = threading.local()

    def __init__(
        self,
        instruments: Sequence[PassInstrument] = (),
        verification_level: VerificationLevel | None = None,
        diagnostic_phase: DiagnosticPhase | None = None,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    ) -> None:
        self._instruments = list(instruments)
        self._level = get_default_verification_level() if verification_level is None else verification_level
        self._phase = get_default_diagnostic_phase() if diagnostic_phase is None else diagnostic_phase
        if disabled_diagnostics is None:
            disabled_diagnostics = DiagnosticCheckSet([DiagnosticCheck.UnusedControlFlowResult])
        self._disabled = disabled_diagnostics
        self._planner = memory_planner
        self._double_buffer = enable_pypto_l0c_double_buffer
        self._runtime = runtime

    @classmethod
    def _stack(cls) -> list[PassContext]:
        stack: list[PassContext] | None = getattr(cls._local, "stack", None)
        if stack is None:
            stack = cls._local.stack = []
        return stack

    @classmethod
    def current(cls) -> PassContext | None:
        """The innermost active context of this thread, or None."""
        stack = cls._stack()
        return stack[-1] if stack else None

    def __enter__(self) -> PassContext:
        self._stack().append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack = self._stack()
        if not stack or stack[-1] is not self:
            raise RuntimeError("PassContext left out of order; leave contexts in the reverse order of entering them")
        stack.pop()

    def nested(self, instruments: Sequence[PassInstrument]) -> PassContext:
        """A context with further instruments and otherwise the same settings."""
        return PassContext(
            [*self._instruments, *instruments],
            self._level,
            self._phase,
            self._disabled,
            self._planner,
            self._double_buffer,
            self._runtime,
        )

    def get_instruments(self) -> list[PassInstrument]:
        """Instruments, in the order they are called."""
        return list(self._instruments)

    def get_verification_level(self) -> VerificationLevel:
        """How much a pipeline checks."""
        return self._level

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        """When warnings and hints are collected."""
        return self._phase

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        """Checks that are switched off."""
        return self._disabled

    def get_memory_planner(self) -> MemoryPlanner:
        """Who plans on-chip memory."""
        return self._planner

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        """Whether planner PYPTO may double-buffer accumulators."""
        return self._double_buffer

    def get_runtime(self) -> RuntimeKind:
        """The runtime of the artifact."""
        return self._runtime


def active_planner() -> MemoryPlanner:
    """The planner of the current context, PYPTO without one."""
    context = PassContext.current()
    return MemoryPlanner.PYPTO if context is None else context.get_memory_planner()
