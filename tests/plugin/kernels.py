"""Source of a test module that inner sessions run: the programs of the harness's tests, as text."""

from __future__ import annotations

import inspect
from types import FunctionType

from tests.harness import programs


def source(program: FunctionType, reference: FunctionType) -> str:
    """A module with one program and its golden, under the names `program` and `reference`."""
    named = {"program": program, "reference": reference}
    texts = [inspect.getsource(each).replace(each.__name__, name) for name, each in named.items()]
    return "\n\n".join(["from typing import Any\n\nimport pypto.language as pl\nimport pytest\n", *texts, ""])


ADD = (
    source(programs.vector_add, programs.add_reference)
    + """
def off_by_one(t):
    reference(t)
    t["out"][5, 7] += 1.0

"""
)

MIXED = source(programs.mixed, programs.mixed_reference)
