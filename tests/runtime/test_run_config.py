"""`RunConfig`: fields, the two axes of a platform, aliases, levels, rings, views."""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from typing import Any

import pytest

from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.ir.distributed_compiled_program import DistributedConfig
from pytest_pypto.pypto.passes.context import MemoryPlanner
from pytest_pypto.pypto.passes.dumps import PassDumpLevel
from pytest_pypto.pypto.passes.manager import OptimizationStrategy
from pytest_pypto.pypto.runtime import CompileOptions, DfxOptions, ExecutionMode, RunConfig
from pytest_pypto.pypto.runtime.config import HARNESS_FIELDS
from pytest_pypto.pypto.runtime.options import RunOptions

FIELDS: list[tuple[str, Any]] = [
    ("arch", BackendType.Ascend910B),
    ("execution_mode", ExecutionMode.SIM),
    ("device_id", 0),
    ("rtol", 1e-5),
    ("atol", 1e-5),
    ("strategy", OptimizationStrategy.Default),
    ("dump_passes", False),
    ("save_kernels", False),
    ("save_kernels_dir", None),
    ("codegen_only", False),
    ("enable_chip_swimlane", 0),
    ("enable_dump_args", 0),
    ("enable_pmu", 0),
    ("enable_dep_gen", False),
    ("enable_scope_stats", False),
    ("compile_profiling", False),
    ("diagnostic_phase", None),
    ("disabled_diagnostics", None),
    ("golden_data_dir", None),
    ("aicpu_thread_num", None),
    ("ring_task_window", None),
    ("ring_heap", None),
    ("ring_dep_pool", None),
    ("distributed_config", None),
    ("analyze_auto_scopes_for_deps", False),
    ("memory_planner", None),
    ("dump_ptoas_passes", False),
]
PLATFORMS = {
    "a2a3": (BackendType.Ascend910B, ExecutionMode.ONBOARD),
    "a2a3sim": (BackendType.Ascend910B, ExecutionMode.SIM),
    "a5": (BackendType.Ascend950, ExecutionMode.ONBOARD),
    "a5sim": (BackendType.Ascend950, ExecutionMode.SIM),
}


def test_fields_in_order_with_their_defaults() -> None:
    assert [(f.name, f.default) for f in dataclasses.fields(RunConfig)] == FIELDS


def test_it_takes_keywords_only() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        RunConfig("a2a3")  # type: ignore[misc]


def test_the_signature_shows_platform_and_hides_deprecated_names() -> None:
    shown = inspect.signature(RunConfig).parameters
    assert shown["platform"].kind is inspect.Parameter.KEYWORD_ONLY
    assert shown["platform"].default is None
    assert not {"backend_type", "enable_l2_swimlane"} & set(shown)


def test_derived_names_are_no_fields() -> None:
    cfg = RunConfig(platform="a5")
    assert not {"platform", "backend_type", "enable_l2_swimlane"} & set(dataclasses.asdict(cfg))
    assert "platform=" not in repr(cfg)
    assert RunConfig.__test__ is False


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_sets_both_axes_and_they_give_it_back(platform: str) -> None:
    arch, mode = PLATFORMS[platform]
    cfg = RunConfig(platform=platform)
    assert (cfg.arch, cfg.execution_mode) == (arch, mode)
    assert RunConfig(arch=arch, execution_mode=mode).platform == platform
    assert type(cfg.platform) is str
    assert cfg.backend_type is arch


def test_a_platform_wins_over_the_axes_silently() -> None:
    cfg = RunConfig(platform="a5sim", arch=BackendType.Ascend910B, execution_mode=ExecutionMode.ONBOARD)
    assert cfg.platform == "a5sim"


@pytest.mark.parametrize("platform", ["xyz", "A2A3SIM", "", None, 3])
def test_an_unknown_platform_lists_the_known_ones(platform: object) -> None:
    expected = f"Invalid platform {platform!r}. Expected 'a2a3', 'a2a3sim', 'a5', 'a5sim'."
    with pytest.raises(ValueError, match=re.escape(expected)):
        RunConfig(platform=platform)  # type: ignore[arg-type]


def test_the_platform_cannot_be_assigned() -> None:
    with pytest.raises(AttributeError):
        RunConfig().platform = "a5"  # type: ignore[misc]


@pytest.mark.parametrize("value", ["Ascend910B", 0, None])
def test_arch_must_be_a_backend_type(value: object) -> None:
    with pytest.raises(TypeError, match=r"RunConfig\.arch must be a BackendType"):
        RunConfig(arch=value)


@pytest.mark.parametrize("value", ["sim", True, 1, None])
def test_execution_mode_must_be_an_execution_mode(value: object) -> None:
    with pytest.raises(TypeError, match="execution_mode must be an ExecutionMode"):
        RunConfig(execution_mode=value)


@pytest.mark.parametrize("value", [None, BackendType.Ascend950])
def test_an_agreeing_backend_type_is_silent(value: BackendType | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RunConfig(platform="a5sim", backend_type=value).backend_type is BackendType.Ascend950


def test_a_contradicting_backend_type_warns_once_and_changes_nothing() -> None:
    with pytest.warns(DeprecationWarning, match="has never taken effect") as caught:
        cfg = RunConfig(platform="a5sim", backend_type=BackendType.Ascend910B)
    assert len(caught) == 1
    assert cfg.platform == "a5sim"


@pytest.mark.parametrize(("value", "level"), [(True, 4), (False, 0), (0, 0), (2, 2), (4, 4)])
def test_swimlane_levels(value: int, level: int) -> None:
    cfg = RunConfig(enable_chip_swimlane=value)
    assert cfg.enable_chip_swimlane == level
    assert type(cfg.enable_chip_swimlane) is int


@pytest.mark.parametrize("value", [-1, 5])
def test_swimlane_levels_have_a_range(value: int) -> None:
    with pytest.raises(ValueError, match=r"collection level in \[0, 4\]"):
        RunConfig(enable_chip_swimlane=value)


def test_a_swimlane_level_is_a_number() -> None:
    with pytest.raises(TypeError, match="enable_chip_swimlane"):
        RunConfig(enable_chip_swimlane="all")


def test_the_old_swimlane_name_warns_and_works() -> None:
    with pytest.warns(DeprecationWarning, match="enable_l2_swimlane is deprecated"):
        cfg = RunConfig(enable_l2_swimlane=True)
    assert cfg.enable_chip_swimlane == cfg.enable_l2_swimlane == 4
    with pytest.warns(DeprecationWarning, match="enable_l2_swimlane is deprecated"):
        cfg.enable_l2_swimlane = 2
    assert cfg.enable_chip_swimlane == 2


def test_both_swimlane_names_at_once_are_refused_after_the_warning() -> None:
    old_name = pytest.warns(DeprecationWarning, match="enable_l2_swimlane")
    with old_name, pytest.raises(ValueError, match="pass only enable_chip_swimlane"):
        RunConfig(enable_l2_swimlane=1, enable_chip_swimlane=1)


def test_errors_of_the_old_swimlane_name_name_it() -> None:
    cfg = RunConfig()
    old_name = pytest.warns(DeprecationWarning, match="enable_l2_swimlane")
    with old_name, pytest.raises(ValueError, match="enable_l2_swimlane must be"):
        cfg.enable_l2_swimlane = 9


RING_GOOD = {"ring_task_window": (4, 8, 16384), "ring_heap": (1024, 1 << 20), "ring_dep_pool": (4, 5, 2**31 - 1)}
RING_BAD = {
    "ring_task_window": (0, 2, 6, -4, True, 8.0),
    "ring_heap": (0, 512, 1025, False, 4096.0),
    "ring_dep_pool": (0, 3, 2**31, True, 4.0),
}
RING_RULE = {
    "ring_task_window": "be a power of 2 >= 4",
    "ring_heap": "be a power of 2 >= 1024 (bytes per ring)",
    "ring_dep_pool": "be in [4, INT32_MAX]",
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in RING_GOOD.items() for v in values])
def test_good_ring_sizes(name: str, value: int) -> None:
    assert getattr(RunConfig(**{name: value}), name) == value
    assert getattr(RunConfig(**{name: (0, value, 0, value)}), name) == [0, value, 0, value]


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in RING_BAD.items() for v in values])
def test_bad_ring_sizes(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{name} must {RING_RULE[name]}")):
        RunConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in RING_BAD.items() for v in values if v != 0 or v is False]
)
def test_bad_ring_entries(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{name} entries must {RING_RULE[name]} (or 0 to keep default)")):
        RunConfig(**{name: [0, value, 0, 0]})


@pytest.mark.parametrize("entries", [[], [4], [4, 4, 4], [4] * 5])
def test_ring_lists_have_four_entries(entries: list[int]) -> None:
    with pytest.raises(ValueError, match="must have exactly 4 entries"):
        RunConfig(ring_task_window=entries)


@pytest.mark.parametrize(
    "change",
    [
        {"enable_chip_swimlane": 1},
        {"enable_dump_args": 1},
        {"enable_pmu": 2},
        {"enable_dep_gen": True},
        {"enable_scope_stats": True},
    ],
)
def test_diagnostics_keep_the_kernels(change: dict[str, Any]) -> None:
    cfg = RunConfig(**change)
    assert cfg.save_kernels
    assert cfg.any_dfx_enabled()
    assert cfg.dfx_options() == DfxOptions(**change)


def test_views_take_what_they_are_for() -> None:
    cfg = RunConfig(
        platform="a5sim",
        device_id=3,
        aicpu_thread_num=2,
        dump_passes=PassDumpLevel.EXPLICIT,
        compile_profiling=True,
        save_kernels_dir="there",
        memory_planner=MemoryPlanner.DSA_RP,
        ring_heap=(0, 4096, 0, 0),
        enable_pmu=2,
    )
    assert cfg.compile_options() == CompileOptions(
        platform="a5sim",
        dump_passes=PassDumpLevel.EXPLICIT,
        profiling=True,
        output_dir="there",
        memory_planner=MemoryPlanner.DSA_RP,
    )
    assert cfg.run_options() == RunOptions(
        platform="a5sim", device_id=3, aicpu_thread_num=2, ring_heap=[0, 4096, 0, 0], dfx=DfxOptions(enable_pmu=2)
    )
    assert cfg.compile_kwargs() == cfg.compile_options().as_compile_kwargs()


ALWAYS = {
    "platform",
    "strategy",
    "dump_passes",
    "dump_ptoas_passes",
    "profiling",
    "diagnostic_phase",
    "disabled_diagnostics",
    "analyze_auto_scopes_for_deps",
}


def test_compile_keywords_leave_out_what_defers_to_a_context() -> None:
    assert set(RunConfig().compile_kwargs()) == ALWAYS
    distributed = DistributedConfig()
    full = RunConfig(save_kernels_dir="d", memory_planner=MemoryPlanner.PYPTO, distributed_config=distributed)
    assert set(full.compile_kwargs()) == ALWAYS | {"output_dir", "memory_planner", "distributed_config"}
    assert full.compile_kwargs()["distributed_config"] is distributed


def test_every_compile_keyword_is_one_of_ir_compile() -> None:
    from pytest_pypto.pypto import ir

    full = RunConfig(save_kernels_dir="d", memory_planner=MemoryPlanner.PYPTO, distributed_config=DistributedConfig())
    assert set(full.compile_kwargs()) <= set(inspect.signature(ir.compile).parameters)


@pytest.mark.parametrize("view", [CompileOptions(), RunOptions(), DfxOptions()])
def test_views_are_frozen(view: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(view, dataclasses.fields(view)[0].name, None)


def test_every_field_belongs_to_exactly_one_reader() -> None:
    renamed = {"profiling": "compile_profiling", "output_dir": "save_kernels_dir"}
    compile_side = {renamed.get(f.name, f.name) for f in dataclasses.fields(CompileOptions)} - {"platform"}
    run_side = {f.name for f in dataclasses.fields(RunOptions)} - {"platform", "dfx"}
    dfx_side = {f.name for f in dataclasses.fields(DfxOptions)}
    parts = [compile_side, run_side, dfx_side, set(HARNESS_FIELDS), {"arch", "execution_mode"}]
    assert sorted(n for part in parts for n in part) == sorted(n for n, _ in FIELDS)


def test_dfx_options_normalise_on_replace_too() -> None:
    assert dataclasses.replace(DfxOptions(), enable_chip_swimlane=True).enable_chip_swimlane == 4
    assert not DfxOptions().any()


@pytest.mark.parametrize(
    ("change", "platform"),
    [
        ({"platform": "a5"}, "a5"),
        ({"arch": BackendType.Ascend950}, "a5sim"),
        ({"execution_mode": ExecutionMode.ONBOARD}, "a2a3"),
        ({"enable_chip_swimlane": 2}, "a2a3sim"),
    ],
)
def test_replace_changes_one_thing_without_a_warning(change: dict[str, Any], platform: str) -> None:
    base = RunConfig(platform="a2a3sim", ring_heap=(0, 4096, 0, 0), device_id=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = dataclasses.replace(base, **change)
    assert made.platform == platform
    assert (made.ring_heap, made.device_id) == ([0, 4096, 0, 0], 7)


def test_run_options_are_not_a_public_name() -> None:
    import pytest_pypto.pypto.runtime as runtime

    assert not hasattr(runtime, "RunOptions")
    from pytest_pypto.pypto.runtime.runner import RunOptions as internal

    assert internal is RunOptions
