"""A verdict as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_pypto.report import heatmap

if TYPE_CHECKING:
    from pytest_pypto.check.compare import Element, TensorDiff
    from pytest_pypto.harness.verdict import Finding, LayerResult, Verdict

WORDS = {
    "roundtrip": "print -> load -> print after every pass",
    "oracle": "front-end program against golden",
    "passes": "program after every pass against golden",
    "memory": "addresses, lifetimes, capacities",
    "device": "artifact on the device against golden",
    "direction": "tiles cross the way the test claims",
    "split": "functions are split the way the test claims",
}


def render(verdict: Verdict, *, colour: bool = False) -> str:
    """The whole report: what failed and where, what ran, how to repeat it."""
    lines = [_title(verdict), ""]
    shown: list[tuple[TensorDiff, str]] = []
    for layer in verdict.failed_layers:
        lines += _failed(layer, colour, shown)
    lines += advice(verdict)
    lines += ["layers:", *(f"  {row}" for row in table(verdict))]
    if verdict.not_compared:
        lines.append(f"not compared (the golden does not write it): {', '.join(verdict.not_compared)}")
    lines += _ending(verdict)
    return "\n".join(lines)


def _title(verdict: Verdict) -> str:
    parts = [verdict.platform, f"split {verdict.split}"]
    if verdict.direction:
        parts.append(f"direction {verdict.direction}")
    where = f"{verdict.name} " if verdict.name else ""
    names = ", ".join(layer.layer for layer in verdict.failed_layers)
    head = f"{names} failed" if names else "passed"
    return f"pypto: {head}: {where}({', '.join(parts)}, seed {verdict.seed})"


def table(verdict: Verdict) -> list[str]:
    """One line per layer: what it is, whether it ran, and over what."""
    rows = []
    for layer in verdict.layers:
        note = layer.reason if layer.status == "not run" else layer.scope
        rows.append(f"{layer.layer:<10}{layer.status:<8} {note}".rstrip())
    return rows


def advice(verdict: Verdict) -> list[str]:
    """What the layers that passed would have the author look at; none when there is nothing."""
    rows = [row for r in verdict.layers if r.status != "failed" for f in r.findings for row in _finding(f)]
    return ["findings that fail nothing:", *(f"  {row}" for row in rows), ""] if rows else []


def _ending(verdict: Verdict) -> list[str]:
    lines = []
    if verdict.kept:
        lines.append(f"kept: {verdict.kept}")
    if verdict.not_kept:
        lines.append(f"not kept: {verdict.not_kept}")
    if verdict.repro:
        lines.append(f"repeat: {verdict.repro}")
    return ["", *lines] if lines else []


def _failed(layer: LayerResult, colour: bool, shown: list[tuple[TensorDiff, str]]) -> list[str]:
    lines = [f"{layer.layer} ({WORDS.get(layer.layer, layer.layer)}): {layer.reason}"]
    if layer.first_bad and layer.last_good:
        lines.append(f"  last good stage {layer.last_good}, first bad stage {layer.first_bad}")
    for diff in layer.diffs:
        if not diff.passed:
            lines += [f"  {row}" for row in _once(diff, layer.layer, colour, shown)]
    lines += [f"  {row}" for row in _first_value(layer)]
    lines += [f"  {row}" for finding in layer.findings if finding.message != layer.reason for row in _finding(finding)]
    if layer.ir_diff:
        lines += ["  what the pass changed:", *(f"    {_short(row)}" for row in layer.ir_diff)]
    return [*lines, ""]


def _once(diff: TensorDiff, layer: str, colour: bool, shown: list[tuple[TensorDiff, str]]) -> list[str]:
    """The lines about a difference, or where the same one was shown before."""
    before = next((name for other, name in shown if other == diff), None)
    if before is not None:
        what = diff.detail if diff.reason in ("shape", "dtype") else _counts(diff)
        return [f"{diff.name}: {what}, the same as in {before}"]
    shown.append((diff, layer))
    return difference(diff, colour=colour)


def _short(line: str, width: int = 160) -> str:
    return line if len(line) <= width else f"{line[: width - 4]} ..."


def _finding(finding: Finding) -> list[str]:
    first, *rest = finding.message.splitlines() or [""]
    where = f" [{finding.where}]" if finding.where else ""
    mark = "" if finding.severity == "error" else "advice, "
    return [f"- {mark}{finding.kind}{where}: {first}", *(f"    {line}" for line in rest[:12])]


def _first_value(layer: LayerResult) -> list[str]:
    first = layer.first_value
    if first is None:
        return []
    rows = [f"first value that differs: {first.name} ({first.where})"]
    if first.diff is not None and first.diff.worst is not None:
        rows += [f"  {row}" for row in (_counts(first.diff), _element("worst", first.diff.worst))]
    return rows


def difference(diff: TensorDiff, *, colour: bool = False) -> list[str]:
    """The lines about one output that does not agree."""
    head = f"{diff.name}: {diff.dtype}{list(diff.shape)}"
    if diff.reason in ("shape", "dtype"):
        return [f"{head}: {diff.detail}"]
    lines = [f"{head}: {_counts(diff)}", f"  {diff.tolerance.describe()}"]
    if diff.detail:
        lines.append(f"  {diff.detail}")
    if diff.pattern:
        lines.append(f"  where: {diff.pattern}")
    if diff.worst is not None:
        lines.append(f"  {_element('worst', diff.worst)}")
    lines += [f"  {_element('first', e)}" for e in diff.first[:1] if diff.worst is None or e.index != diff.worst.index]
    lines += [f"  {_element('then', e)}" for e in diff.first[1:4]]
    if diff.ulps:
        lines.append("  ulp: " + ", ".join(f"{name}: {count}" for name, count in diff.ulps.items()))
    if 1 < diff.mismatched < diff.total:
        lines += ["  map (blank none, @ all):", *(f"  {row}" for row in heatmap.render(diff.heat, colour=colour))]
    return lines


def _counts(diff: TensorDiff) -> str:
    share = 100 * diff.mismatched / diff.total if diff.total else 0.0
    text = f"{diff.mismatched} of {diff.total} elements differ ({share:.3g} %)"
    return f"{text}, {diff.nonfinite} NaN or Inf on one side only" if diff.nonfinite else text


def _element(what: str, element: Element) -> str:
    index = ", ".join(map(str, element.index))
    text = f"{what} at [{index}]: actual {number(element.actual)}, expected {number(element.expected)}"
    if element.error is not None:
        text += f", off by {element.error:.3g} (allowed {element.allowed:.3g})"
    if element.ulp is not None:
        text += f", {element.ulp} ulp"
    return f"{text}; {element.place}" if element.place else text


def number(value: Any) -> str:
    """A value short enough to read and long enough to tell neighbours apart."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
