"""Every operator of the language has a `.pto` form, or a reason why no finished kernel holds it."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.codegen.errors import CodegenError
from pytest_pypto.pypto.codegen.pto import dispatch
from pytest_pypto.pypto.ir.op_table import all_ops
from tests.codegen.kernels import kernel, text

WRITTEN = {*dispatch.EFFECTS, *dispatch.EITHER, *dispatch.RESULTS, *dispatch.INSTRUCTIONS}


def _kernel_operators() -> list[str]:
    return sorted(n for n in all_ops() if not n.startswith(("tensor.", *dispatch.DISTRIBUTED)))


@pytest.mark.parametrize("name", _kernel_operators())
def test_written_or_explained(name: str) -> None:
    assert (name in WRITTEN) != (name in dispatch.ELSEWHERE)


def test_no_form_for_an_operator_that_does_not_exist() -> None:
    assert set(all_ops()) >= WRITTEN
    assert set(all_ops()) >= set(dispatch.ELSEWHERE)


def test_an_operator_of_the_host_is_refused_with_the_reason() -> None:
    with pytest.raises(CodegenError, match=r"kernel 'k': operator 'system\.available_aiv_count' .* orchestration"):
        text(kernel("n: pl.Scalar[pl.INDEX] = pl.system.available_aiv_count()\nreturn o"))


def test_a_pop_without_a_name_is_refused() -> None:
    with pytest.raises(CodegenError, match=r"tpop_from_aic.* has no name; write"):
        text(kernel("pl.tile.tpop_from_aic(split=0, shape=[16, 32], dtype=pl.FP32)\nreturn o"))
