"""Where the numbers of two stages of a program part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.program import Function, Program
from .names import base_name
from .runner import run_oracle

_STEPS = ("__tile", "__tmp", "_Vec", "_Mat", "_mat", "_Left", "_Right", "_mv", "__store")
_LIMIT = 4096


@dataclass(frozen=True, eq=False)
class _Row:
    """One traced value: where it was defined, its box and its valid part."""

    function: str
    name: str
    box: tuple[int, ...]
    value: Any

    @property
    def place(self) -> tuple[str, str]:
        return self.function, self.name

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    def words(self) -> str:
        return f"'{self.name}' in '{self.function}', shape {self.shape}"


class _Recorder:
    """The traced values of one run, in order."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.error: Exception | None = None

    def __call__(self, function: str, name: str, value: Any) -> None:
        import torch

        if isinstance(value, (bool, int, float)):
            value = torch.tensor(value)
        if len(self.rows) < _LIMIT and isinstance(value, torch.Tensor):
            valid = getattr(value, "_pypto_valid_shape", None)
            part = value if valid is None else value[tuple(slice(0, v) for v in valid)]
            self.rows.append(_Row(function, name, tuple(value.shape), part.detach().clone()))

    def by_place(self) -> dict[tuple[str, str], list[_Row]]:
        """The rows of every variable."""
        places: dict[tuple[str, str], list[_Row]] = {}
        for row in self.rows:
            places.setdefault(row.place, []).append(row)
        return places


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
    except Exception as exc:  # a stage that fails is compared as far as it came
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
    """In words: the first variable of the bad stage whose values the good stage does not have.

    A variable that both stages have under one name, with one box, is compared value by value, in any order when both
    define it equally often. Others are matched by the author's name and the shape of the valid part; those that only
    one stage has are passed over.
    """
    before, after = record(good, tensors, entry), record(bad, tensors, entry)
    places, stems = before.by_place(), _by_stem(before.rows)
    odd: dict[int, _Row | None] = {}
    for place, rows in after.by_place().items():
        same = [r for r in places.get(place, []) if r.box == rows[0].box]
        odd.update(_unmatched(rows, same, rtol, atol) if len(same) == len(rows) else _foreign(rows, stems, rtol, atol))
    for row in after.rows:
        if id(row) in odd:
            other = odd[id(row)]
            if other is not None and other.shape == row.shape:
                return f"first differing variable: {row.words()}, off by {_gap(row.value, other.value):.6e}"
            return f"first differing variable: {row.words()}" + (f", was {other.shape}" if other else "")
    if after.error is not None:
        return f"no variable differs before the error: {str(after.error).splitlines()[0]}"
    return "no variable that both stages have differs"


def _by_stem(rows: list[_Row]) -> dict[tuple[str, tuple[int, ...]], list[_Row]]:
    held: dict[tuple[str, tuple[int, ...]], list[_Row]] = {}
    for row in rows:
        held.setdefault((stem(row.name), row.shape), []).append(row)
    return held


def _unmatched(rows: list[_Row], others: list[_Row], rtol: float, atol: float) -> dict[int, _Row | None]:
    """Rows, by id, that find no partner of their own; with what stood in their place."""
    free = list(others)
    odd: dict[int, _Row | None] = {}
    for row, beside in zip(rows, others, strict=True):
        nearest = [beside, *free] if beside in free else free
        found = next((o for o in nearest if _close(row, o, rtol, atol)), None)
        if found is None:
            odd[id(row)] = beside
        else:
            free = [o for o in free if o is not found]
    return odd


def _foreign(rows: list[_Row], stems: Mapping[Any, list[_Row]], rtol: float, atol: float) -> dict[int, _Row | None]:
    """Rows, by id, whose value none of the rows with the same author's name and shape has; with the nearest."""
    odd: dict[int, _Row | None] = {}
    for row in rows:
        others = stems.get((stem(row.name), row.shape))
        if others and not any(_close(row, o, rtol, atol) for o in others):
            odd[id(row)] = min(others, key=lambda o: _gap(row.value, o.value))
    return odd


def _close(a: _Row, b: _Row, rtol: float, atol: float) -> bool:
    import torch

    if a.shape != b.shape:
        return False
    return torch.allclose(a.value.double(), b.value.double(), rtol=rtol, atol=atol, equal_nan=True)


def _gap(a: Any, b: Any) -> float:
    return float((a.double() - b.double()).abs().max()) if a.numel() else 0.0
