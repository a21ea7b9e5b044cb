"""Random programs: after every pass, and on the simulated device, they do what their text says when run as Python."""

from __future__ import annotations

import tempfile
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pypto import ir
from pypto.runtime import device_settings

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.debug.runner import run_oracle
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.context import PassContext, VerificationLevel
from pytest_pypto.pypto.passes.diagnostic_types import DiagnosticPhase
from pytest_pypto.pypto.passes.instruments import VerificationInstrument, VerificationMode
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager
from tests.passes_back.support import PLATFORMS
from tests.passes_back.whole import stages

from . import random_products
from .random_programs import arguments, expected, host_program, kernel_program

FAMILIES = {"kernel": kernel_program, "host": host_program}
TAPES = st.lists(st.integers(0, 999), max_size=120)
QUICK: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
COUNTS = (-3, 0, 1, 2, 5)


def wanted(text: str, n: int) -> torch.Tensor:
    args = arguments(n)
    expected(text, *args)
    found: torch.Tensor = args[3]
    return found


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, **QUICK)
@given(tape=TAPES, size=st.integers(1, 14), platform=st.sampled_from(["a2a3sim", "a5sim"]))
def test_every_pass_keeps_the_numbers(family: str, tape: list[int], size: int, platform: str) -> None:
    text = FAMILIES[family](tape, size)
    note(text)
    for name, node in stages(text, platform).items():
        for n in COUNTS:
            args = arguments(n)
            run_oracle(node, args, entry="main")
            assert torch.equal(args[3], wanted(text, n)), f"after {name} with n = {n}"


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=10, **QUICK)
@given(
    tape=TAPES,
    size=st.integers(1, 14),
    platform=st.sampled_from(["a2a3sim", "a5sim"]),
    order=st.sampled_from(["program", "late", "random"]),
)
def test_the_device_gives_the_numbers_in_every_order(
    family: str, tape: list[int], size: int, platform: str, order: str
) -> None:
    text = FAMILIES[family](tape, size)
    note(text)
    with tempfile.TemporaryDirectory() as folder:
        compiled = ir.compile(parse(text), platform=platform, output_dir=folder, dump_passes=False, skip_ptoas=True)
        for n in COUNTS:
            args = arguments(n)
            with device_settings(order=order, seed=n, sanitize={"race"}):
                compiled(*args)
            assert torch.equal(args[3], wanted(text, n)), f"n = {n}"


def close(values: dict[str, torch.Tensor], want: dict[str, torch.Tensor], rows: int) -> bool:
    return all(torch.equal(values[k][:rows], want[k][:rows]) for k in ("o", "s"))


@settings(max_examples=40, **QUICK)
@given(tape=st.lists(st.integers(0, 999), max_size=60), platform=st.sampled_from(["a2a3sim", "a5sim"]))
def test_every_pass_keeps_products(tape: list[int], platform: str) -> None:
    text, rows = random_products.product_program(tape), random_products.valid_rows(tape)
    note(text)
    want = random_products.arguments(tape)
    random_products.expected(text, want)
    for name, node in stages(text, platform).items():
        values = random_products.arguments(tape)
        run_oracle(node, list(values.values()), entry="main")
        assert close(values, want, rows), f"after {name}"


@pytest.mark.parametrize("family", [*FAMILIES, "product"])
@settings(max_examples=15, **QUICK)
@given(tape=TAPES, size=st.integers(1, 14), platform=st.sampled_from(["a2a3sim", "a5sim"]))
def test_promises_hold_and_the_text_loads_after_every_pass(
    family: str, tape: list[int], size: int, platform: str
) -> None:
    text = random_products.product_program(tape) if family == "product" else FAMILIES[family](tape, size)
    note(text)
    checks = VerificationInstrument(VerificationMode.BEFORE_AND_AFTER)
    level = VerificationLevel.ROUNDTRIP
    with selected_backend(PLATFORMS[platform]), PassContext([checks], level, DiagnosticPhase.NONE):
        PassManager.get_strategy(OptimizationStrategy.Default).run_passes(parse(text))


@settings(max_examples=10, **QUICK)
@given(tape=st.lists(st.integers(0, 999), max_size=60), platform=st.sampled_from(["a2a3sim", "a5sim"]))
def test_the_device_multiplies(tape: list[int], platform: str) -> None:
    text, rows = random_products.product_program(tape), random_products.valid_rows(tape)
    note(text)
    want = random_products.arguments(tape)
    random_products.expected(text, want)
    values = random_products.arguments(tape)
    with tempfile.TemporaryDirectory() as folder:
        compiled = ir.compile(parse(text), platform=platform, output_dir=folder, dump_passes=False, skip_ptoas=True)
        compiled(*values.values())
    assert close(values, want, rows)


def test_the_text_run_as_python_is_what_it_looks_like() -> None:
    """The generator's own meaning of a program, on one that is easy to follow."""
    text = kernel_program([2, 0, 3], 1)
    assert "t1 = pl.minimum(pl.maximum(pl.add(x, y), low), high)\n        o = pl.store(t1, [16, 0], o)" in text
    args = arguments(1)
    expected(text, *args)
    assert torch.equal(args[3][:16], torch.full((16, 16), -7.0))
    assert torch.equal(args[3][16:], args[0] + args[1])
