"""What a marked test claims about the programs it runs: a split mode, a direction. Claims are checked, not believed.

The plugin opens a claim around each test; every check and every `assert_*` inside it is held to the claim, whether it
came through a fixture or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pytest_pypto.harness.direction import direction_finding
from pytest_pypto.harness.verdict import Finding, LayerResult, Verdict


@dataclass
class Claim:
    """What one test claims, and what it did about it.

    Attributes:
        split: name of the split mode its marker gives, "" without the marker.
        direction: name of the direction its marker gives, "" without the marker.
        checks: how many checks and runs were held to the claim.
        compiled: handles that the test compiled.
        last_word: holds `compiled` to the claim, for a test that ends without a check; None when nothing was compiled.
    """

    split: str = ""
    direction: str = ""
    checks: int = 0
    compiled: list[Any] = field(default_factory=list)
    last_word: Callable[[], None] | None = None

    def __bool__(self) -> bool:
        return bool(self.split or self.direction)

    def __str__(self) -> str:
        return " and ".join(
            f"{axis} {value}" for axis, value in (("split", self.split), ("direction", self.direction)) if value
        )

    def findings(self, program: Any) -> tuple[Finding, ...]:
        """Everything that a program (after all passes) does not keep of the claim."""
        found = (direction_finding(program, self.direction), split_finding(program, self.split))
        return tuple(f for f in found if f is not None)

    def results(self, program: Any) -> tuple[LayerResult, ...]:
        """The findings as failed layers; none when the program keeps the claim."""
        return tuple(LayerResult(f.kind, "failed", f.message, findings=(f,)) for f in self.findings(program))


_open: list[Claim] = []


@contextmanager
def claiming(claim: Claim) -> Iterator[Claim]:
    """Hold everything that is checked inside to a claim."""
    _open.append(claim)
    try:
        yield claim
    finally:
        _open.remove(claim)


def current() -> Claim:
    """The claim of the running test; one that claims nothing outside of tests."""
    return _open[-1] if _open else Claim()


_noted: list[Verdict] = []


def note(verdict: Verdict) -> Verdict:
    """Leave the verdict of a check that came through no fixture for whoever counts; returns it."""
    _noted.append(verdict)
    del _noted[:-KEPT_VERDICTS]
    return verdict


def take_noted() -> list[Verdict]:
    """The verdicts since the last call."""
    found, _noted[:] = list(_noted), []
    return found


KEPT_VERDICTS = 1000
"""Outside of pytest nobody takes them."""


def splits(program: Any) -> dict[str, str]:
    """Split mode of each function of a lowered program that has one, by function name."""
    modes = {name: getattr(function, "split", None) for name, function in _functions(program).items()}
    return {name: mode.name for name, mode in modes.items() if mode is not None and mode.name != "NONE"}


def _functions(program: Any) -> dict[str, Any]:
    return {f.name: f for f in program.functions.values()}


def split_finding(program: Any, split: str) -> Finding | None:
    """What is wrong with a claim of a split mode: variants that compile to the same code prove nothing.

    Args:
        program: the program after all passes.
        split: `NONE`, `UP_DOWN`, `LEFT_RIGHT`, or "" for no claim.
    """
    if not split:
        return None
    found = splits(program)
    other = next(((name, mode) for name, mode in found.items() if mode != split), None)
    if split == "NONE" and other is not None:
        text = f"the test claims split NONE, but in the lowered program {other[0]} has split {other[1]}"
    elif split != "NONE" and split not in found.values():
        have = ", ".join(f"{name} has {mode}" for name, mode in found.items()) or "no function has any"
        text = f"the test claims split {split}, but no function of the lowered program has it ({have})"
    else:
        return None
    advice = "write optimizations=[pl.split(pypto_split)] in the kernel, use with_split(program, pypto_split)"
    return Finding("split", f"{text}; {advice}, or change the pypto_split marker")
