"""The host program in its two forms: the one that loads and runs, and the C++ rendering."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.backend.handler import handler_for
from pytest_pypto.pypto.codegen.cpp.orchestration import orchestration_text
from pytest_pypto.pypto.codegen.host import host_program, host_text
from pytest_pypto.pypto.codegen.units import entry_function, is_kernel
from pytest_pypto.pypto.ir.structural import structural_equal
from pytest_pypto.pypto.language.parser.modules import parse
from tests.codegen.kit_units import finished_program
from tests.kit import KIT, needs_kit

pytestmark = needs_kit
UNLOADABLE = {"whiles", "dist"}


def _names() -> list[str]:
    folders = [p.parents[2] for p in KIT.glob("*/a2a3sim/artifact/compiled_meta.json")]
    return sorted(f.name for f in folders if f.name not in UNLOADABLE)


@pytest.mark.parametrize("name", _names())
def test_the_host_program_loads_again_as_itself(name: str) -> None:
    program = finished_program(name, "a2a3sim")
    entry = entry_function(program)
    assert structural_equal(parse(host_text(program, entry)), host_program(program, entry))


def test_kernels_are_declarations_and_host_functions_are_whole() -> None:
    program = finished_program("spmd_mixed", "a2a3sim")
    host = host_program(program, entry_function(program))
    kernels = [f for f in host.functions.values() if is_kernel(f)]
    assert {f.name for f in kernels} == {"entry_incore_0_aic", "entry_incore_0_aiv"}
    for func in kernels:
        original = program.get_function(func.name)
        assert original is not None
        assert func.requires_runtime_binding
        assert func.attrs == original.attrs
        assert func.param_directions == original.param_directions
    rest = {f.name for f in host.functions.values()} - {f.name for f in kernels}
    assert all(host.get_function(n) is program.get_function(n) for n in rest)


@pytest.mark.parametrize("name", _names())
def test_the_rendering_covers_every_host_statement(name: str) -> None:
    program = finished_program(name, "a2a3sim")
    text = orchestration_text(program, entry_function(program), handler_for(BackendType.Ascend910B))
    assert "/*" not in text.replace("/*manual_dep=*/", "")
    assert "?" not in text.split('extern "C"')[1]
    assert text.count("{") == text.count("}")


def test_launches_carry_directions_scalars_and_kernel_numbers() -> None:
    program = finished_program("misc", "a2a3sim")
    text = orchestration_text(program, entry_function(program), handler_for(BackendType.Ascend910B))
    wanted = [
        "params_t0.add_input(ext_a);",
        "params_t0.add_input(ext_idx);",
        "params_t0.add_output(ext_o);",
        "params_t0.add_scalar(to_u64(0.125f));",
        "rt_submit_aiv_task(0, params_t0);",
    ]
    places = [text.index(w) for w in wanted]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "platform", "expected"),
    [
        ("bi_up_down", BackendType.Ascend910B, "MixedKernels mixed_0 = {0, 1, 1};"),
        ("bi_none", BackendType.Ascend910B, "MixedKernels mixed_0 = {0, 1, 1};"),
    ],
)
def test_mixed_tasks_name_the_cube_kernel_and_both_lanes(name: str, platform: BackendType, expected: str) -> None:
    program = finished_program(name, "a2a3sim")
    assert expected in orchestration_text(program, entry_function(program), handler_for(platform))


def test_without_a_split_the_950_runs_one_lane() -> None:
    program = finished_program("bi_none", "a5sim")
    text = orchestration_text(program, entry_function(program), handler_for(BackendType.Ascend950))
    assert "MixedKernels mixed_0 = {0, 1, INVALID_KERNEL_ID};" in text
