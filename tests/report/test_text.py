"""Renderings of verdicts made by hand."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.check.compare import compare  # noqa: E402
from pytest_pypto.check.locate import Layout  # noqa: E402
from pytest_pypto.check.tolerance import Tolerance  # noqa: E402
from pytest_pypto.harness.verdict import Finding, FirstValue, LayerResult, Verdict  # noqa: E402
from pytest_pypto.report import heatmap, html, json_report, text  # noqa: E402


def difference():
    b = torch.arange(32.0 * 64).reshape(32, 64)
    a = b.clone()
    a[16:] += 1
    return compare("out", a, b, Tolerance(1e-5, 1e-5, "marker", "ini"), layout=Layout((32, 64), "UP_DOWN"))


def failed() -> Verdict:
    diff = difference()
    layers = (
        LayerResult("roundtrip", "passed", scope="50 stages, 17 distinct"),
        LayerResult("oracle", "passed", scope="00_frontend"),
        LayerResult(
            "passes",
            "failed",
            "24_after_SplitVectorKernel is the first whose numbers leave the tolerance",
            "49 passes, 12 distinct scripts",
            (diff,),
            first_bad="24_after_SplitVectorKernel",
            last_good="22_after_ExpandMixedKernel",
            ir_diff=("-    x = pl.tile.add(a, b)", "+    x = pl.tile.sub(a, b)"),
            first_value=FirstValue("x", "k_aiv, generated line 7", "22", "24", diff),
        ),
        LayerResult("memory", "not run", "no pass AllocateMemoryAddr ran"),
        LayerResult("device", "failed", "the device and the golden disagree", "a2a3sim", (diff,)),
    )
    return Verdict(
        "test_k.py::test_k[a2a3sim-UP_DOWN]", "a2a3sim", layers, "UP_DOWN", "C2V", 42, "embedded", ("more",),
        "python -m pytest 'test_k.py::test_k'", "pypto_artifacts/test_k",
    )  # fmt: skip


@pytest.mark.parametrize("wrong", [torch.zeros(2, 3), torch.zeros(2, 2, dtype=torch.int32)], ids=["shape", "dtype"])
def test_one_difference_in_two_layers(wrong: torch.Tensor) -> None:
    diff = compare("out", wrong, torch.zeros(2, 2), Tolerance(0, 0))
    layers = tuple(LayerResult(name, "failed", "x", diffs=(diff,)) for name in ("oracle", "device"))
    lines = text.render(Verdict("n", "a2a3sim", layers)).splitlines()
    assert f"  out: {diff.detail}, the same as in oracle" in lines


def test_a_finding_that_is_the_reason_is_said_once() -> None:
    found = (Finding("split", "not split"), Finding("split", "other"))
    shown = text.render(Verdict("n", "p", (LayerResult("split", "failed", "not split", findings=found),)))
    assert shown.count("not split") == 1
    assert "- split: other" in shown


def test_the_whole_report() -> None:
    lines = text.render(failed()).splitlines()
    assert lines[0] == (
        "pypto: passes, device failed: test_k.py::test_k[a2a3sim-UP_DOWN] "
        "(a2a3sim, split UP_DOWN, direction C2V, seed 42)"
    )
    whole = "\n".join(lines)
    for part in (
        "passes (program after every pass against golden): 24_after_SplitVectorKernel is the first",
        "last good stage 22_after_ExpandMixedKernel, first bad stage 24_after_SplitVectorKernel",
        "out: float32[32, 64]: 1024 of 2048 elements differ (50 %)",
        "rtol=1e-05 (marker) atol=1e-05 (ini)",
        "where: all 1024 lie in rows 16-31 = lane 1 of the UP_DOWN split",
        "first value that differs: x (k_aiv, generated line 7)",
        "+    x = pl.tile.sub(a, b)",
        "out: 1024 of 2048 elements differ (50 %), the same as in passes",
        "memory    not run  no pass AllocateMemoryAddr ran",
        "not compared (the golden does not write it): more",
        "kept: pypto_artifacts/test_k",
        "repeat: python -m pytest 'test_k.py::test_k'",
    ):
        assert part in whole, part


def test_the_map() -> None:
    rows = heatmap.render(difference().heat)
    assert rows[0] == rows[-1] == "+" + "-" * 32 + "+"
    assert rows[1:9] == ["|" + " " * 32 + "|"] * 8
    assert rows[9:17] == ["|" + "@" * 32 + "|"] * 8
    assert heatmap.render(()) == []


def test_colours_only_when_asked() -> None:
    assert "\x1b" not in text.render(failed())
    assert "\x1b[31m@\x1b[0m" in text.render(failed(), colour=True)


def test_findings_and_advice() -> None:
    layer = LayerResult(
        "device",
        "failed",
        "race: two blocks write one cell",
        findings=(
            Finding("race", "two blocks write one cell\nthe other party: block 1", "k.py:3"),
            Finding("dead_store", "nobody reads it", "k.py:5", "advice"),
        ),
    )
    whole = text.render(Verdict("t", "a2a3sim", (layer,)))
    assert "- race [k.py:3]: two blocks write one cell" in whole
    assert "    the other party: block 1" in whole
    assert "- advice, dead_store [k.py:5]: nobody reads it" in whole


def test_shape_and_dtype_mismatches_are_one_line() -> None:
    for a, b in ((torch.ones(3), torch.ones(4)), (torch.ones(3).half(), torch.ones(3))):
        assert len(text.difference(compare("o", a, b, Tolerance(0.0, 0.0)))) == 1


def test_not_a_number_is_counted() -> None:
    a, b = torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0])
    lines = text.difference(compare("o", a, b, Tolerance(0.0, 0.0)))
    assert "1 of 2 elements differ (50 %), 1 NaN or Inf on one side only" in lines[0]
    assert any("actual nan, expected 2" in line for line in lines)


class Checked(HTMLParser):
    """Every element that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_one_self_contained_page() -> None:
    page = html.render([failed()])
    parser = Checked()
    parser.feed(page)
    assert parser.open == []
    assert parser.links == []
    assert page.count("<i ") + page.count("<i>") == 2 * 16 * 32
    assert "test_k.py::test_k[a2a3sim-UP_DOWN]: failed" in page


def test_html_escapes() -> None:
    layer = LayerResult("oracle", "failed", "<script>alert(1)</script>")
    page = html.render([Verdict("<b>", "a2a3sim", (layer,))])
    assert "<script>" not in page
    assert "<b>" not in page


def test_json_says_whether_it_is_complete() -> None:
    data = json.loads(json_report.render([failed()], complete=False))
    assert data["complete"] is False
    assert data["verdicts"][0]["layers"][2]["diffs"][0]["worst"]["index"][0] >= 16
    assert data["verdicts"][0]["passed"] is False
