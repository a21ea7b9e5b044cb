"""State of one run that all its parts share."""

from __future__ import annotations

from typing import Any, NoReturn

from .findings import ERROR, DeviceError, Finding, FindingKind, StopRun
from .platforms import Platform
from .settings import DeviceSettings

_SHADOW = frozenset(k.value for k in (FindingKind.UNINITIALISED, FindingKind.OVERLAP, FindingKind.DEAD_STORE))
_LOG = frozenset(
    k.value
    for k in (
        FindingKind.UNINITIALISED,
        FindingKind.RACE,
        FindingKind.INPUT_MODIFIED,
        FindingKind.NEVER_WRITTEN,
        FindingKind.OUT_OF_BOUNDS,
        FindingKind.OUTSIDE_VALID,
    )
)
_FATAL = frozenset([FindingKind.OUT_OF_BOUNDS, FindingKind.WRONG_LANE, FindingKind.DEADLOCK, FindingKind.LEFTOVER])


class RunContext:
    """Settings, findings and the parts that agents reach.

    `shadow` and `log` say which code variants run; `restless` makes agents offer a switch at every pipe operation.
    """

    def __init__(self, settings: DeviceSettings, platform: Platform, file: str = "") -> None:
        self.settings, self.platform, self.file = settings, platform, file
        self.findings: list[Finding] = []
        self.dropped = 0
        self._seen: set[Any] = set()
        explore = settings.order == "exhaustive"
        self.shadow = bool(settings.sanitize & _SHADOW)
        self.log = bool(settings.sanitize & _LOG) or explore
        self.restless = settings.order in ("late", "random")
        self.explorer: Any = None
        self.global_checks: Any = None

    def wants(self, kind: FindingKind) -> bool:
        """True when the settings ask for this kind."""
        return kind.value in self.settings.sanitize

    def report(self, finding: Finding) -> None:
        """Keep a finding.

        A fault after which the numbers cannot be trusted stops the run when its sanitizer is off.

        Raises:
            DeviceError: such a fault.
        """
        if not self.wants(finding.kind):
            if finding.kind in _FATAL and finding.severity == ERROR:
                site = finding.site
                raise DeviceError(str(finding.message), file=site.pto or None, line=site.line or None)
            return
        key = (finding.kind, finding.site.pto, finding.site.line, finding.site.kernel, finding.message.split("[")[0])
        other = finding.other
        key += (None if other is None else (other.pto, other.line),)  # type: ignore[assignment]
        if key in self._seen:
            return
        self._seen.add(key)
        if len(self.findings) >= self.settings.max_findings:
            self.dropped += 1
        else:
            self.findings.append(finding)

    def halt(self, finding: Finding) -> NoReturn:
        """A finding after which nothing can run.

        Raises:
            StopRun: the sanitizer is on; the run ends with the finding.
            DeviceError: it is off.
        """
        if self.wants(finding.kind):
            self.report(finding)
            raise StopRun(finding)
        site = finding.site
        raise DeviceError(str(finding.message), file=site.pto or None, line=site.line or None)

    def stop(self, message: str, file: str | None, line: int | None) -> NoReturn:
        """A fault that no sanitizer stands for.

        Raises:
            DeviceError: always.
        """
        raise DeviceError(message, file=file, line=line, findings=self.findings)
