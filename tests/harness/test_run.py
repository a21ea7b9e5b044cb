"""The public functions, end to end, without pytest's fixtures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import pytest_pypto  # noqa: E402
from pytest_pypto import (  # noqa: E402
    CannotRun,
    CaseError,
    CheckFailed,
    Verdict,
    assert_device,
    assert_memory,
    assert_oracle,
    assert_passes,
    assert_roundtrip,
    check,
    make_inputs,
)
from pytest_pypto.harness.cache import compile_recorded  # noqa: E402
from pytest_pypto.harness.verdict import LAYERS  # noqa: E402
from tests.harness import programs  # noqa: E402


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("build")
    return compile_recorded(programs.mixed(), {"platform": "a2a3sim", "output_dir": str(out), "skip_ptoas": True})


def test_all_layers(compiled: Any) -> None:
    verdict = check(compiled, make_inputs(compiled), programs.mixed_reference, split="UP_DOWN", direction="C2V")
    assert verdict.passed
    assert [(r.layer, r.status) for r in verdict.layers] == [(layer, "passed") for layer in LAYERS]
    assert 0 <= verdict.headroom() < 1


@pytest.mark.parametrize("function", [assert_oracle, assert_passes, assert_device])
def test_single_layers_with_numbers(compiled: Any, function: Any) -> None:
    def wrong(t):
        t["c"] += t["a"] @ t["b"] + 1

    inputs = make_inputs(compiled)
    assert function(compiled, inputs, programs.mixed_reference).status == "passed"
    with pytest.raises(CheckFailed, match="4096 of 4096 elements differ") as caught:
        function(compiled, inputs, wrong)
    assert len(caught.value.verdict.layers) == 1


def test_single_layers_without_numbers(compiled: Any) -> None:
    assert assert_roundtrip(compiled).status == "passed"
    assert assert_memory(compiled).status == "passed"


def test_a_handle_that_somebody_else_compiled(tmp_path: Path) -> None:
    """Its passes run once more, in memory."""
    from pypto import ir

    made = ir.compile(programs.mixed(), platform="a5sim", output_dir=str(tmp_path), dump_passes=False, skip_ptoas=True)
    verdict = check(made, make_inputs(made), programs.mixed_reference)
    assert [r.status for r in verdict.layers] == ["passed"] * 5
    assert verdict.platform == "a5sim"


def test_a_handle_from_a_directory_uses_the_dumps(tmp_path: Path) -> None:
    from pypto import ir

    for dumps, count in ((True, 5), (False, 1)):
        folder = tmp_path / str(dumps)
        ir.compile(programs.mixed(), platform="a2a3sim", output_dir=str(folder), dump_passes=dumps, skip_ptoas=True)
        again = ir.CompiledProgram.from_dir(str(folder))
        verdict = check(again, make_inputs(again), programs.mixed_reference)
        ran = [r for r in verdict.layers if r.status == "passed"]
        assert len(ran) == count
        missing = [r.reason for r in verdict.layers if r.status == "not run"]
        assert all("compile through pypto_compile, or with dump_passes=True" in reason for reason in missing)


def test_asking_for_a_layer_that_cannot_run_is_no_success(tmp_path: Path) -> None:
    from pypto import ir

    ir.compile(programs.mixed(), platform="a2a3sim", output_dir=str(tmp_path), dump_passes=False, skip_ptoas=True)
    again = ir.CompiledProgram.from_dir(str(tmp_path))
    with pytest.raises(CannotRun, match="memory did not run: the passes left nothing to look at"):
        assert_memory(again)
    with pytest.raises(CannotRun, match="oracle did not run"):
        assert_oracle(again, make_inputs(again), programs.mixed_reference)


def test_a_wrong_artifact_is_the_devices_alone(tmp_path: Path) -> None:
    """A kernel changed on disk: the IR is still right, only the device layer disagrees."""
    options = {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True}
    made = compile_recorded(programs.vector_add(), options)
    for kernel in tmp_path.rglob("*.pto"):
        kernel.write_text(kernel.read_text().replace("pto.tadd", "pto.tsub"))
    with pytest.raises(CheckFailed) as caught:
        check(made, make_inputs(made), programs.add_reference)
    assert [r.layer for r in caught.value.verdict.failed_layers] == ["device"]
    assert "device failed" in str(caught.value)


def test_the_golden_is_computed_before_anything_runs_and_inputs_stay(compiled: Any) -> None:
    inputs = make_inputs(compiled)
    before = {name: value.clone() for name, value in inputs.items()}
    check(compiled, inputs, programs.mixed_reference)
    assert all(torch.equal(before[name], inputs[name]) for name in before)


@pytest.mark.parametrize("order", ["late", "random"])
def test_the_device_may_run_in_another_order(compiled: Any, order: str) -> None:
    result = assert_device(
        compiled, make_inputs(compiled), programs.mixed_reference, device={"order": order, "seed": 5}
    )
    assert result.status == "passed"


def test_a_wrong_device_setting(compiled: Any) -> None:
    with pytest.raises(CheckFailed, match="unknown order 'sideways'"):
        assert_device(compiled, make_inputs(compiled), programs.mixed_reference, device={"order": "sideways"})


def test_counters_are_exact(compiled: Any) -> None:
    """Two blocks of a 32x64x64 product: 2 * 32 * 64 * 64 multiply-adds."""
    result = assert_device(compiled, make_inputs(compiled), programs.mixed_reference)
    assert result.counters["cube_products"] == 2 * 32 * 64 * 64
    again = assert_device(compiled, make_inputs(compiled), programs.mixed_reference)
    assert again.counters == result.counters


def test_sanitizers_are_on_unless_switched_off(tmp_path: Path) -> None:
    """A kernel that reads a tile before it is loaded: found with sanitizers, unseen without."""
    options = {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True}
    made = compile_recorded(programs.vector_add(), options)
    for kernel in tmp_path.rglob("*.pto"):
        lines = kernel.read_text().splitlines()
        loads = [i for i, line in enumerate(lines) if "pto.tload" in line]
        del lines[loads[-1]]
        kernel.write_text("\n".join(lines) + "\n")
    with pytest.raises(CheckFailed) as caught:
        assert_device(made, make_inputs(made), programs.add_reference)
    kinds = {f.kind for f in caught.value.verdict.layers[0].findings}
    assert "uninitialised" in kinds
    with pytest.raises(CheckFailed) as caught:
        assert_device(made, make_inputs(made), programs.add_reference, sanitize=False)
    assert caught.value.verdict.layers[0].findings == ()


def test_outputs_without_expectation_are_named(tmp_path: Path) -> None:
    options = {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True}
    made = compile_recorded(programs.two_outputs(), options)

    def half(t):
        t["twice"][:] = t["x"] * 2

    verdict = check(made, make_inputs(made), half)
    assert verdict.not_compared == ("more",)


def test_a_returned_expectation_is_the_only_output(tmp_path: Path) -> None:
    options = {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True}
    made = compile_recorded(programs.vector_add(), options)
    assert check(made, make_inputs(made), lambda t: t["a"] + t["b"]).passed
    with pytest.raises(CheckFailed):
        check(made, make_inputs(made), lambda t: t["a"] - t["b"])


def test_one_tolerance_for_one_output(tmp_path: Path) -> None:
    options = {"platform": "a2a3sim", "output_dir": str(tmp_path), "skip_ptoas": True}
    made = compile_recorded(programs.two_outputs(), options)

    def off(t):
        t["twice"][:] = t["x"] * 2 + 0.1
        t["more"][:] = t["x"] + 1.1

    with pytest.raises(CheckFailed) as caught:
        check(made, make_inputs(made), off, tolerances={"twice": (0.0, 0.2)}, layers=("oracle",))
    assert [d.name for d in caught.value.verdict.layers[0].diffs if not d.passed] == ["more"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": ("oracles",)}, "no layer is called 'oracles'; the layers are roundtrip, oracle, passes, memory"),
        ({"rtol": "x"}, "rtol='x' is no tolerance"),
        ({"tolerances": {"c": (1, -1)}}, "atol=-1 is no tolerance"),
    ],
)
def test_wrong_arguments(compiled: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        check(compiled, make_inputs(compiled), programs.mixed_reference, **options)


def test_a_golden_made_for_other_inputs(compiled: Any) -> None:
    golden = pytest_pypto.compute_golden(programs.add_reference, make_inputs(programs.vector_add()))
    with pytest.raises(CaseError, match="golden 'add_reference' speaks of 'out'; parameters: a, b, c"):
        check(compiled, make_inputs(compiled), golden)


def test_a_verdict_survives_json(compiled: Any) -> None:
    def wrong(t):
        t["c"][:] = float("nan")

    good = check(compiled, make_inputs(compiled), programs.mixed_reference)
    assert Verdict.from_json(good.to_json()) == good
    with pytest.raises(CheckFailed) as caught:
        check(compiled, make_inputs(compiled), wrong)
    bad = caught.value.verdict
    again = Verdict.from_json(bad.to_json())
    assert again.to_dict() == bad.to_dict()
    assert not again.passed
    with pytest.raises(ValueError, match="no verdict of schema 1"):
        Verdict.from_json('{"schema": 0}')


def test_check_is_the_function_and_the_package() -> None:
    import pytest_pypto.check.compare

    assert callable(pytest_pypto.check)
    assert pytest_pypto.check.compare is not None
