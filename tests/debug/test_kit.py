"""Programs of the compatibility kit: every stage agrees with the golden written for the program."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug import run_oracle
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.language.parser import loads
from tests.kit import KIT, needs_kit

pytestmark = needs_kit

CHOSEN = {
    "vadd": None,
    "softmax_loop": None,
    "mm_explicit": None,
    "acc_mat": None,
    "odd_split": None,
    "ex_both_left_right": None,
    "bi_none": None,
    "explicit_pipe": None,
    "region_none": None,
    "spmd_mixed": None,
    "task_arr": None,
    "dyn_valid": None,
    "valid_len": None,
    "neg_idx": None,
    "misc": None,
    "whiles": None,
    "three_d": None,
    "cmp_all": None,
    "sin": None,
    "scope3": ("00", "21", "22", "24", "47"),
}
"""Programs, with the stages that are run (None: all)."""
SHARED_UP_TO = "22"
"""Before this stage the platforms have the same dumps, but for what the first one shows already."""


def facts(name: str) -> dict[str, Any]:
    if not KIT.is_dir():
        return {}
    found: dict[str, Any] = json.loads((KIT / "index.json").read_text(encoding="utf-8")).get(name, {})
    return found


def stages() -> list[Any]:
    rows = []
    for name, wanted in CHOSEN.items():
        broken = set(facts(name).get("reference_cannot_load", []))
        for path in sorted((KIT / name).glob("*/passes/*.py")):
            inner = str(path.relative_to(KIT / name))
            again = inner.startswith("a5sim") and path.name < SHARED_UP_TO
            if inner not in broken and not again and (wanted is None or path.name[:2] in wanted):
                rows.append(pytest.param(path, id=f"{name}-{path.parent.parent.name}-{path.stem}"))
    return rows


def golden_of(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"kit_golden_{name}", KIT / name / "golden.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seeds_for(name: str, module: Any, stage: str) -> list[int]:
    wrong = facts(name).get("reference_wrong")
    bad = wrong["seeds"] if wrong and stage >= wrong["from"] else []
    return [k for k in getattr(module, "SEEDS", (0,)) if k not in bad]


@pytest.mark.parametrize("path", stages())
def test_stage(path: Path) -> None:
    name = path.parents[2].name
    module, node = golden_of(name), loads(str(path))
    assert isinstance(node, (Program, Function))
    for seed in seeds_for(name, module, path.name[:2]):
        inputs = module.inputs(seed)
        want = {k: v.clone() if torch.is_tensor(v) else v for k, v in inputs.items()}
        module.golden(want)
        returned = run_oracle(node, list(inputs.values()), entry=module.ENTRY, check_shapes=True, leftover="error")
        have = inputs | {"__return__": returned}
        for key, value in want.items():
            if torch.is_tensor(value):
                torch.testing.assert_close(have[key], value, rtol=module.RTOL, atol=module.ATOL, equal_nan=True)
            elif isinstance(value, tuple):
                torch.testing.assert_close(have[key], value, rtol=module.RTOL, atol=module.ATOL)
            else:
                assert have[key] == value


@pytest.mark.parametrize("seed", [1, 7])
@pytest.mark.parametrize("name", ["bi_up_down", "ex_both_none", "round_trip"])
def test_other_schedules_give_the_same_numbers(name: str, seed: int) -> None:
    last = sorted((KIT / name / "a2a3sim" / "passes").glob("*.py"))[-1]
    module, node = golden_of(name), loads(str(last))
    assert isinstance(node, Program)
    inputs = module.inputs(0)
    plain = {k: v.clone() if torch.is_tensor(v) else v for k, v in inputs.items()}
    run_oracle(node, list(plain.values()), entry=module.ENTRY)
    run_oracle(node, list(inputs.values()), entry=module.ENTRY, schedule_seed=seed, bounded_pipes=True)
    for key, value in plain.items():
        if torch.is_tensor(value):
            assert torch.equal(inputs[key], value)
