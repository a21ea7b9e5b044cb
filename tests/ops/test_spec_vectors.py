"""Every inference vector of the specification: result type, valid shape, memory space, or the class of the error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import SPEC, needs_spec
from tests.ops.vectors import describe, infer

_FILE = SPEC / "ops_vectors.json"
_VECTORS: list[dict[str, Any]] = json.loads(_FILE.read_text())["vectors"] if _FILE.is_file() else []


def _label(vector: dict[str, Any]) -> str:
    kwargs = ",".join(f"{k}={v}" for k, v in vector.get("kwargs", {}).items())
    return f"{vector['op']}({'; '.join(vector['args'])}{'; ' + kwargs if kwargs else ''})"


@needs_spec
def test_the_file_has_all_vectors() -> None:
    assert len(_VECTORS) == 273


@pytest.mark.parametrize("vector", _VECTORS, ids=_label)
def test_vector(vector: dict[str, Any]) -> None:
    if "error" in vector:
        error = {"ValueError": ValueError, "TypeError": TypeError}[vector["error"]]
        with pytest.raises(error, match=vector["op"].replace(".", r"\.")):
            infer(vector["op"], vector["args"], vector.get("kwargs"))
        return
    found, wanted = describe(infer(vector["op"], vector["args"], vector.get("kwargs"))), dict(vector["result"])
    if "s:index" in vector["args"] and "valid" in wanted:
        # the vector names the run-time extent by a number of its own
        wanted["valid"] = ["s" if isinstance(v, str) else v for v in wanted["valid"]]
    assert found == wanted
