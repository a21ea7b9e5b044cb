"""The kit's own snippets: accepted ones print as recorded, refused ones have the recorded class, text and place."""

from __future__ import annotations

import json
from typing import Any

import pypto.language as pl
import pytest
from pypto import ir

from ..kit import KIT, needs_kit

pytestmark = needs_kit
PRINTING = KIT / "printing"

OURS = {
    "oks:inf": 'pl.tensor.adds(x, float("inf"))',
    "oks2:shape idx op": "pl.tensor.slice(x, [32, 64], [0, 0])",
    "oks2:list arg op": "pl.tensor.slice(x, [16, 64], [0, 0])",
    "while else": "else: on a while loop is not supported",
}
"""Where we differ on purpose: infinities load (they print as a call of float), items of closure lists are constants,
and an `else` that would never run is refused instead of dropped. The value must appear in what we print or say."""


def _snippets() -> list[Any]:
    found = []
    for name in ("conformance_print", "conformance_errors"):
        path = PRINTING / f"{name}.json"
        for key, record in json.loads(path.read_text(encoding="utf-8")).items() if path.exists() else ():
            found.append(pytest.param(key, record, id=key.replace(" ", "-")))
    return found


def _outcome(source: str) -> tuple[str, str, dict[str, Any] | None]:
    """(class or "ok", text, place)"""
    try:
        return "ok", ir.python_print(pl.parse(source, "<t>")), None
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "span", None)


@pytest.mark.filterwarnings("ignore:default values of parameters have no effect")
@pytest.mark.parametrize(("key", "record"), _snippets())
def test_snippet(key: str, record: dict[str, Any]) -> None:
    kind, text, span = _outcome(record["source"])
    if key in OURS:
        assert OURS[key] in text
    elif record["ok"]:
        assert (kind, text) == ("ok", record["printed"])
    else:
        assert (kind, text[: len(record["message"])]) == (record["error"], record["message"])
        if "line" in record:
            assert span is not None
            assert (span["line"], span["column"]) == (record["line"], record["column"])


@pytest.mark.parametrize("number", range(1, 8))
def test_verified_program(number: int) -> None:
    source = (PRINTING / f"G{number}.py").read_text(encoding="utf-8")
    want = (PRINTING / f"G{number}.printed.txt").read_text(encoding="utf-8").rstrip("\n")
    if number == 7:  # the reference loses the dtype of offsets; we print the very source
        want = source.rstrip("\n")
    text = ir.python_print(pl.parse(source))
    assert text == want
    assert ir.python_print(pl.parse(text)) == text
