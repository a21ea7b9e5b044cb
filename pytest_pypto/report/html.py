"""A verdict as one HTML file: no server, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from pytest_pypto.report import text

if TYPE_CHECKING:
    from pytest_pypto.check.compare import TensorDiff
    from pytest_pypto.harness.verdict import LayerResult, Verdict

_STYLE = """
body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:70em;color:#222;background:#fff}
table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}
pre{background:#f6f6f6;padding:.8em;overflow:auto}.failed{color:#b00020}.passed{color:#1b5e20}.run{color:#666}
.heat{display:inline-grid;gap:1px;background:#ccc;border:1px solid #999}.heat i{width:12px;height:12px;background:#fff}
"""
CELL = "rgb(255,{0},{0})"


def render(verdicts: Sequence[Verdict]) -> str:
    """One page for any number of verdicts."""
    body = "\n".join(_verdict(v) for v in verdicts)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>pytest-pypto</title>"
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _verdict(verdict: Verdict) -> str:
    state = "passed" if verdict.passed else "failed"
    facts = [verdict.platform, f"split {verdict.split}", verdict.direction, f"seed {verdict.seed}", verdict.toolchain]
    parts = [
        f"<h1 class='{state}'>{escape(verdict.name or 'check')}: {state}</h1>",
        f"<p>{escape(', '.join(f for f in facts if f))}</p>",
        "<table><tr><th>layer</th><th>result</th><th>scope</th><th>seconds</th></tr>",
        *(_row(layer) for layer in verdict.layers),
        "</table>",
        *(_layer(layer) for layer in verdict.failed_layers),
    ]
    notes = text.advice(verdict)
    if verdict.not_compared:
        notes.append(f"not compared: {', '.join(verdict.not_compared)}")
    if notes:
        parts.append("<pre>" + escape("\n".join(notes)) + "</pre>")
    if verdict.repro:
        parts.append(f"<h2>Repeat</h2><pre>{escape(verdict.repro)}</pre>")
    return "\n".join(parts)


def _row(layer: LayerResult) -> str:
    css = layer.status.split()[-1]
    note = escape(layer.reason or layer.scope)
    cells = [layer.layer, f"<span class='{css}'>{layer.status}</span>", note, f"{layer.seconds:.3f}"]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _layer(layer: LayerResult) -> str:
    parts = [f"<h2>{escape(layer.layer)}</h2><p>{escape(layer.reason)}</p>"]
    for diff in layer.diffs:
        if not diff.passed:
            parts.append("<pre>" + escape("\n".join(_without_map(diff))) + "</pre>" + heat_table(diff))
    if layer.findings:
        items = "".join(f"<li>{escape(f'{f.kind} [{f.where}]: {f.message}')}</li>" for f in layer.findings)
        parts.append(f"<ul>{items}</ul>")
    if layer.first_value is not None:
        first = escape(f"{layer.first_value.name} ({layer.first_value.where})")
        parts.append(f"<p>first value that differs: {first}</p>")
    if layer.ir_diff:
        parts.append("<pre>" + escape("\n".join(layer.ir_diff)) + "</pre>")
    return "\n".join(parts)


def _without_map(diff: TensorDiff) -> list[str]:
    lines = text.difference(diff)
    cut = next((i for i, line in enumerate(lines) if line.lstrip().startswith("map (")), len(lines))
    return lines[:cut]


def heat_table(diff: TensorDiff) -> str:
    """The mismatch density as a grid of coloured cells; "" when there is none."""
    if not diff.heat:
        return ""
    cells = "".join(
        f"<i style='background:{CELL.format(int(255 * (1 - int(c) / 9)))}'></i>" if c != "0" else "<i></i>"
        for row in diff.heat
        for c in row
    )
    return f"<p><span class='heat' style='grid-template-columns:repeat({len(diff.heat[0])},12px)'>{cells}</span></p>"
