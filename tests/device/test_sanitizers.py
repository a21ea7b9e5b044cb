"""What all sanitizers share: they can be chosen, findings are JSON, name their place and repeat."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .faults import line_of, unary, windowed, zeros
from .texts import Kernel, kinds, plain, run, single


def test_kinds_can_be_chosen(tmp_path: Path) -> None:
    folder = single(tmp_path, unary((16, 12)), ["o"])
    assert plain(folder, zeros(16, 16), zeros(16, 16)).findings == ()
    chosen = plain(folder, zeros(16, 16), zeros(16, 16), sanitize=frozenset({"race"}))
    assert chosen.findings == ()
    chosen = plain(folder, zeros(16, 16), zeros(16, 16), sanitize=frozenset({"uninitialised"}))
    assert kinds(chosen) == ["uninitialised"]


def test_findings_are_json(tmp_path: Path) -> None:

    result = run(single(tmp_path, unary((16, 12)), ["o"]), zeros(16, 16), zeros(16, 16))
    data = json.loads(json.dumps([f.to_json() for f in result.findings]))
    assert data[0]["kind"] == "uninitialised"
    assert data[0]["site"]["line"] == line_of(tmp_path, "texp")
    json.dumps(result.counters.to_json())


def test_source_place_is_reported(tmp_path: Path) -> None:
    folder = single(tmp_path, unary((16, 12)), ["o"])
    file = folder / "kernels" / "k.pto"
    lines = [x + ' loc("user.py":7:9)' if "texp" in x else x for x in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    assert run(folder, zeros(16, 16), zeros(16, 16)).findings[0].site.source == "user.py:7:9"


@pytest.mark.parametrize("make", [lambda: unary((16, 12)), lambda: windowed(5)])
def test_findings_repeat_in_every_run(make: Callable[[], Kernel], tmp_path: Path) -> None:
    k = make()
    folder = single(tmp_path, k, ["o"])
    shape = k.tensors[0][2]
    texts = [[str(f) for f in run(folder, zeros(*shape), zeros(16, 16)).findings] for _ in range(3)]
    assert texts[0] == texts[1] == texts[2] != []
