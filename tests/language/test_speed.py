"""The limits of the benchmark hold for a few dumps (the script measures more: tests/benchmarks/bench_language.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ..kit import dump_files, needs_kit

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "bench_language.py"


@needs_kit
def test_loading_and_printing_stay_within_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("bench_language", SCRIPT)
    assert spec
    assert spec.loader
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    bench.IMPORTS = {}
    assert bench.main([str(p) for p in dump_files("scope3")[:8]]) == 0, capsys.readouterr().out
