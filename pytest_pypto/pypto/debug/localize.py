"""Where the numbers of two stages of a program part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.program import Function, Program
from .names import base_name
from .runner import run_oracle

_STEPS = ("__tile", "__tmp", "_Vec", "_Mat", "_mat", "_Left", "_Right", "_mv", "__store")
_LIMIT = 4096


class _Recorder:
    """The traced values of one run, in order: function, variable, value of the valid part."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, Any]] = []
        self.error: Exception | None = None

    def __call__(self, function: str, name: str, value: Any) -> None:
        if len(self.rows) < _LIMIT and hasattr(value, "detach"):
            valid = getattr(value, "_pypto_valid_shape", None)
            box = value if valid is None else value[tuple(slice(0, v) for v in valid)]
            self.rows.append((function, name, box.detach().clone()))


def stem(name: str) -> str:
    """The author's name behind the name of a stage: without SSA versions and the marks that lowering leaves."""
    name = base_name(name)
    while True:
        shorter = next((name[: -len(s)] for s in _STEPS if name.endswith(s) and len(name) > len(s)), name)
        shorter = base_name(shorter)
        if shorter == name:
            return name
        name = shorter


def record(node: Program | Function, tensors: Mapping[str, Any], entry: str | None) -> _Recorder:
    """Run a stage on clones and keep what its variables held; an error ends the record."""
    recorder = _Recorder()
    values = {k: v.clone() if hasattr(v, "clone") else v for k, v in tensors.items()}
    try:
        run_oracle(node, values, entry=entry, trace=recorder, leftover="ignore")
    except Exception as exc:
        recorder.error = exc
    return recorder


def first_difference(
    good: Program | Function,
    bad: Program | Function,
    tensors: Mapping[str, Any],
    rtol: float,
    atol: float,
    entry: str | None,
) -> str:
    """In words: the first variable of the bad stage whose values do not occur under its name in the good stage.

    Variables are matched by the author's name and the shape of the valid part; those that only one stage has are
    passed over.
    """
    before, after = record(good, tensors, entry), record(bad, tensors, entry)
    held: dict[tuple[str, tuple[int, ...]], list[Any]] = {}
    for _, name, value in before.rows:
        held.setdefault((stem(name), tuple(value.shape)), []).append(value)
    for function, name, value in after.rows:
        others = held.get((stem(name), tuple(value.shape)))
        if others and not any(_close(value, other, rtol, atol) for other in others):
            gap = min(_gap(value, other) for other in others)
            return f"first differing variable: '{name}' in '{function}', shape {tuple(value.shape)}, off by {gap:.6e}"
    if after.error is not None:
        return f"no variable differs before the error: {str(after.error).splitlines()[0]}"
    return "no variable that both stages have differs"


def _close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    import torch

    return torch.allclose(a.double(), b.double(), rtol=rtol, atol=atol, equal_nan=True)


def _gap(a: Any, b: Any) -> float:
    return float((a.double() - b.double()).abs().max()) if a.numel() else 0.0
