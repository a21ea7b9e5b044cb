"""Which way tiles cross between the cores, and the claim a test makes about it."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

from pytest_pypto.harness.verdict import Finding


class Direction(Enum):
    """Direction in which tiles cross between the cube and the vector cores."""

    V2C = "V2C"
    C2V = "C2V"
    BIDIR = "BIDIR"

    def __str__(self) -> str:
        return self.name

    @property
    def needs(self) -> tuple[str, ...]:
        """The one-way transfers that the direction promises."""
        return ("V2C", "C2V") if self is Direction.BIDIR else (self.name,)


PUSHES = {"tile.tpush_to_aic": "V2C", "tile.tpush_to_aiv": "C2V"}
_WORDS = {"V2C": "vector-to-cube", "C2V": "cube-to-vector"}


def transfers(program: Any) -> Counter[str]:
    """How many push operations of a lowered program go each way."""
    from pypto import ir

    found: Counter[str] = Counter()

    class Pushes(ir.IRVisitor):  # type: ignore[misc]
        def visit_call(self, op: Any) -> None:
            way = PUSHES.get(op.op.name)
            if way is not None:
                found[way] += 1
            super().visit_call(op)

    Pushes().visit_program(program)
    return found


def direction_finding(program: Any, direction: str) -> Finding | None:
    """What is wrong with a claim: a test whose tiles never cross proves nothing.

    Args:
        program: the program after all passes.
        direction: `V2C`, `C2V`, `BIDIR`, or "" for no claim.
    """
    if not direction:
        return None
    found = transfers(program)
    missing = [way for way in Direction(direction).needs if not found[way]]
    if not missing:
        return None
    have = ", ".join(f"{n} {_WORDS[way]}" for way, n in sorted(found.items())) or "none at all"
    text = (
        f"the test claims {direction}, but the lowered program has no {_WORDS[missing[0]]} transfer (it has {have}); "
        "change the kernel or the pypto_direction marker"
    )
    return Finding("direction", text)
