"""What a run reports: findings of the sanitizers and the error that stops a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class FindingKind(str, Enum):
    """What went wrong. The value is the name used in settings, reports and JSON."""

    UNINITIALISED = "uninitialised"
    OUT_OF_BOUNDS = "out_of_bounds"
    OVERLAP = "overlap"
    RACE = "race"
    DEADLOCK = "deadlock"
    LEFTOVER = "leftover"
    WRONG_LANE = "wrong_lane"
    OUTSIDE_VALID = "outside_valid"
    INPUT_MODIFIED = "input_modified"
    NEVER_WRITTEN = "never_written"
    DEAD_STORE = "dead_store"
    ORDER = "order"

    def __str__(self) -> str:
        return self.value


ALL_KINDS: frozenset[str] = frozenset(k.value for k in FindingKind)
ERROR, ADVICE = "error", "advice"


@dataclass(frozen=True)
class Site:
    """A place in a kernel or in the host program, and who was there.

    `pto` is the `.pto` file relative to the artifact (or the host program's file), `line` the line in it, `source`
    the `file:line:column` of the user's program when the text carries it, `agent` one of `aic`, `aiv`, `host`.
    """

    kernel: str = ""
    op: str = ""
    pto: str = ""
    line: int = 0
    source: str | None = None
    agent: str = ""
    lane: int | None = None
    block: int | None = None
    task: int | None = None

    def __str__(self) -> str:
        who = [self.agent or "?"]
        who += [f"lane {self.lane}"] if self.lane is not None else []
        who += [f"block {self.block}"] if self.block is not None else []
        who += [f"task {self.task}"] if self.task is not None else []
        place = f"{self.pto}:{self.line}" if self.pto else "?"
        source = f" ({self.source})" if self.source else ""
        return f"{self.op or 'operation'} in {self.kernel or 'the host program'} at {place}{source} [{', '.join(who)}]"


@dataclass(frozen=True)
class Finding:
    """One observation of a sanitizer; `severity` is `error` or `advice`.

    `space` and `addresses` (byte intervals `[first, end)` of that space, or of the tensor named by `space`) say which
    memory it is about. `other` is the second party: the earlier write, the racing access, the waiting core.
    """

    kind: FindingKind
    severity: str
    message: str
    site: Site = Site()
    other: Site | None = None
    space: str = ""
    addresses: tuple[tuple[int, int], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The finding as JSON-able data."""
        data = asdict(self)
        data["kind"] = self.kind.value
        data["addresses"] = [list(a) for a in self.addresses]
        data["extra"] = dict(self.extra)
        return data

    def __str__(self) -> str:
        text = f"{self.severity}: {self.kind.value}: {self.message}\n    at {self.site}"
        if self.other is not None:
            text += f"\n    and {self.other}"
        if self.addresses:
            spans = ", ".join(f"{a}..{b - 1}" for a, b in self.addresses)
            text += f"\n    bytes {spans} of {self.space}"
        return text


class DeviceError(Exception):
    """The artifact cannot be executed: damaged text, an unsupported construct, or a fault that stops the run.

    `findings` holds what the sanitizers saw until then; `file` and `line` name the place when there is one.
    """

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, findings: Iterable[Finding] = ()
    ) -> None:
        self.file, self.line, self.findings = file, line, tuple(findings)
        place = "" if file is None else f"{file}:{line}: " if line is not None else f"{file}: "
        super().__init__(place + message)


class StopRun(Exception):
    """Inside the machine: a finding after which the run cannot go on."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)
