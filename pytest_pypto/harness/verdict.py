"""The result of a check: frozen data that survives JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pytest_pypto.check.compare import TensorDiff

SCHEMA = 1
LAYERS = ("roundtrip", "oracle", "passes", "memory", "device")
"""The layers of one check, in the order they run."""

Status = Literal["passed", "failed", "not run"]


@dataclass(frozen=True)
class Finding:
    """Something a layer found that is no number: an overlap, a lost attribute, a race.

    Attributes:
        kind: short name, e.g. "overlap".
        message: one or two sentences with both parties.
        where: stage, function or `file:line`, "" when not known.
        severity: `error` fails the layer, `advice` is only reported.
    """

    kind: str
    message: str
    where: str = ""
    severity: Literal["error", "advice"] = "error"


@dataclass(frozen=True)
class FirstValue:
    """The first value inside the program that a pass changed.

    Attributes:
        name: variable, as the IR names it.
        where: function and line of the generated code.
        before, after: stages that were compared.
        diff: the comparison, None when the value exists on one side only.
    """

    name: str
    where: str
    before: str
    after: str
    diff: TensorDiff | None = None


@dataclass(frozen=True)
class LayerResult:
    """What one layer did.

    Attributes:
        layer: one of `LAYERS`.
        status: `passed`, `failed` or `not run`.
        reason: why it failed or did not run, in one sentence; "" when passed.
        scope: what was covered, e.g. "50 stages, 17 distinct".
        diffs: comparisons of the outputs (of the first bad stage, if any).
        findings: see `Finding`.
        first_bad: the first stage whose result left the tolerance.
        last_good: the stage before it.
        ir_diff: unified diff of the program text between the two.
        first_value: the first inner value that differs between the two.
        seconds: wall time.
        counters: exact counts of a device run (operations, bytes, peaks, tasks), as the device gives them.
    """

    layer: str
    status: Status
    reason: str = ""
    scope: str = ""
    diffs: tuple[TensorDiff, ...] = ()
    findings: tuple[Finding, ...] = ()
    first_bad: str = ""
    last_good: str = ""
    ir_diff: tuple[str, ...] = ()
    first_value: FirstValue | None = None
    seconds: float = 0.0
    counters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        name: the case, normally the test's node id.
        platform, split, direction, seed: what it ran with.
        toolchain: which PyPTO, in words.
        layers: one result for each layer that was asked for.
        not_compared: outputs that the golden did not write, so that nothing was compared.
        repro: one command that repeats it, "" outside pytest.
        kept: directory with everything that was kept, "" for none.
        not_kept: why keeping failed, "" when it did not.
        schema: version of this record.
    """

    name: str
    platform: str
    layers: tuple[LayerResult, ...]
    split: str = "NONE"
    direction: str = ""
    seed: int = 0
    toolchain: str = ""
    not_compared: tuple[str, ...] = ()
    repro: str = ""
    kept: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    not_kept: str = ""
    schema: int = SCHEMA

    @property
    def passed(self) -> bool:
        """No layer failed. Layers that did not run do not fail; the report names them."""
        return all(layer.status != "failed" for layer in self.layers)

    @property
    def failed_layers(self) -> tuple[LayerResult, ...]:
        """The layers that failed, in order."""
        return tuple(layer for layer in self.layers if layer.status == "failed")

    def layer(self, name: str) -> LayerResult | None:
        """The result of a layer, None when it was not asked for."""
        return next((layer for layer in self.layers if layer.layer == name), None)

    def headroom(self) -> float:
        """The worst error of the passed comparisons as a fraction of what was allowed."""
        return max((d.headroom for layer in self.layers for d in layer.diffs if d.passed), default=0.0)

    def with_(self, **changes: Any) -> Verdict:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that are not finite become the texts `inf`, `-inf`, `nan`."""
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        return plain | {"passed": self.passed}

    def to_json(self, indent: int | None = None) -> str:
        """The record as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> Verdict:
        """Read what `to_json` wrote.

        Raises:
            ValueError: not such a record, or one of another schema.
        """
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError(f"no verdict of schema {SCHEMA}: {text[:60]!r}")
        data.pop("passed", None)
        return Verdict(**_restored(data))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _number(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value


def _restored(data: dict[str, Any]) -> dict[str, Any]:
    layers = tuple(_layer(entry) for entry in data["layers"])
    return data | {"layers": layers, "not_compared": tuple(data["not_compared"])}


def _layer(entry: dict[str, Any]) -> LayerResult:
    first = entry["first_value"]
    if first is not None:
        first = FirstValue(**(first | {"diff": None if first["diff"] is None else _diff(first["diff"])}))
    return LayerResult(
        **entry
        | {
            "diffs": tuple(_diff(d) for d in entry["diffs"]),
            "findings": tuple(Finding(**f) for f in entry["findings"]),
            "ir_diff": tuple(entry["ir_diff"]),
            "first_value": first,
        }
    )


def _diff(entry: dict[str, Any]) -> TensorDiff:
    from pytest_pypto.check.compare import Element, TensorDiff
    from pytest_pypto.check.tolerance import Tolerance

    def element(e: dict[str, Any] | None) -> Element | None:
        return None if e is None else Element(**{k: _number(v) for k, v in e.items()} | {"index": tuple(e["index"])})

    return TensorDiff(
        **entry
        | {
            "tolerance": Tolerance(**entry["tolerance"]),
            "shape": tuple(entry["shape"]),
            "headroom": _number(entry["headroom"]),
            "worst": element(entry["worst"]),
            "first": tuple(e for e in map(element, entry["first"]) if e is not None),
            "heat": tuple(entry["heat"]),
        }
    )
