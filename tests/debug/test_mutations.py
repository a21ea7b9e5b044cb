"""A fault put into one dump is found and blamed on that dump; sound dumps raise no alarm.

Every row of `FAULTS` changes one thing in the text of one lowered dump of a kit program. The dumps around it stay as
they are, so a report has to name the changed one, and where that is possible the variable that changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug.validate import PassReport, check_passes
from tests.kit import KIT, needs_kit

from .test_kit import golden_of, seeds_for

pytestmark = needs_kit

FAULTS = [
    # what is wrong, program, dump, old text, new text, what the report must mention
    ("operator", "vadd", 38, "pl.tile.add(", "pl.tile.sub(", "s__tile"),
    ("operand order", "bi_up_down", 38, "sub(t__tile_Vec, old__tile)", "sub(old__tile, t__tile_Vec)", "y__tile"),
    ("constant", "bi_up_down", 38, "muls(a__tile, 2.0)", "muls(a__tile, 2.5)", "s__tile"),
    ("step left out", "softmax", 38, "pl.tile.exp(t__tile)", "pl.tile.muls(t__tile, 1.0)", "e__tile"),
    ("small factor", "rms_col", 38, "0.0078125)", "0.00806)", "t__row_major_tmp_v1"),
    ("power", "rms_col", 38, "pl.tile.rsqrt(", "pl.tile.sqrt(", "inv__row_major_tmp_v5"),
    ("minimum for maximum", "tail", 38, "pl.tile.row_max(", "pl.tile.row_min(", "m__ssa_v0"),
    ("another tile", "softmax", 38, "row_sum(e__tile,", "row_sum(x__tile,", "d__tile"),
    ("times for divided", "softmax", 38, "row_expand_div(e__tile", "row_expand_mul(e__tile", "y__tile"),
    ("comparison", "cmp_all", 38, "0.5, cmp_type=2)", "0.5, cmp_type=3)", "t__tmp_v4"),
    ("threshold", "cmp_all", 38, "0.5, cmp_type=4)", "0.75, cmp_type=4)", "t__tmp_v8"),
    ("rounding", "cast_chain", 38, "target_type=pl.BF16, mode='round'", "target_type=pl.BF16, mode='trunc'", "t__tile"),
    (
        "load one row off",
        "loops",
        38,
        "(a__ssa_v0, [i__idx_v0 * 64, 0]",
        "(a__ssa_v0, [i__idx_v0 * 64 + 1, 0]",
        "t__ssa_v0",
    ),
    ("window one column off", "col_window", 38, "t__ssa_v0, 0, 3, [", "t__ssa_v0, 0, 4, [", "odd__ssa_v0_textract"),
    ("read of the wrong cell", "neg_idx", 38, "[z__ssa_v0, 1])", "[z__ssa_v0, 0])", "w__ssa_v0"),
    ("store one tile off", "spmd_forms", 38, "[i__ssa_v0 * 64, 0], p__ssa_v0)", "[0, 0], p__ssa_v0)", "p__ssa_v1"),
    ("missing accumulation", "acc_mat", 38, "matmul_acc(acc__iter_v1, ", "matmul(", "acc__tile_1"),
    ("one step less", "acc_mat", 38, "pl.range(1, 4, init", "pl.range(1, 3, init", "acc__rv_v2"),
    ("one step twice", "acc_mat", 38, "pl.range(1, 4, init", "pl.range(0, 4, init", "t__tile_2"),
    ("step width", "loops", 38, "pl.range(0, 64, 32, init", "pl.range(0, 64, 64, init", "acc__rv_v4"),
    ("yields swapped", "loops", 38, "pl.yield_(t__tmp_v0, t__tmp_v1)", "pl.yield_(t__tmp_v1, t__tmp_v0)", "t__tmp_v0"),
    ("start value", "loops", 38, "dtype=pl.FP32, value=1)", "dtype=pl.FP32, value=0)", "p0__ssa_v0"),
    ("condition of a branch", "branches", 38, "if i__idx_v0 == 0:", "if i__idx_v0 < 2:", "t"),
    ("value of a branch", "scal_if", 38, "pl.yield_(t__ssa_v2)", "pl.yield_(t__ssa_v1)", "t__phi_v3"),
    ("block index", "spmd_forms", 38, "(a__ssa_v0, [i__ssa_v0 * 64, 0]", "(a__ssa_v0, [0, 0]", "t__tmp_v0"),
    ("blocks of a launch", "spmd_forms", 38, '"core_num": 4', '"core_num": 3', "o__ssa_v1"),
    ("argument of a call", "spmd_forms", 38, "self.strip_spmd(o__ssa_v1, ", "self.strip_spmd(a__ssa_v0, ", "t__tmp_v0"),
    (
        "lane of a load",
        "bi_up_down",
        38,
        "load(a__ssa_v0, [0 + subblock_idx * 16, 0]",
        "load(a__ssa_v0, [0, 0]",
        "a__tile",
    ),
    (
        "lane of a store",
        "gate_c2v_left_right",
        38,
        "(y__tile, [0, 0 + subblock",
        "(y__tile, [0, 32 - subblock",
        "res__tile",
    ),
    ("split axis", "sum_v2c_left_right", 38, "(t__tile_1, split=2)", "(t__tile_1, split=1)", "split"),
    ("push left out", "bi_up_down", 38, "            pl.tile.tpush_to_aic(s__tile, split=1)\n", "", "waits"),
    ("one transfer less", "bi_up_down", 38, "for j__idx_v0 in pl.range(3):", "for j__idx_v0 in pl.range(2):", "waits"),
    ("valid rows", "dyn_valid", 38, "[64, 128], [36, 128]", "[64, 128], [35, 128]", "t__ssa_v0"),
    ("region widened", "valid_len", 38, "[0, 0], [16, n__ssa_v0])", "[0, 0], [16, 64])", "w__ssa_v0"),
    (
        "padding",
        "tail",
        38,
        "t__ssa_v0, pad_value=pl.PadValue.min",
        "t__ssa_v0, pad_value=pl.PadValue.max",
        "p__ssa_v0",
    ),
    ("odd split", "odd_split", 24, "split=3", "split=4", "split mode 4"),
]


def around(name: str, number: int) -> list[Path]:
    """The dump of that number and its neighbours."""
    files = sorted((KIT / name / "a2a3sim" / "passes").glob("*.py"))
    at = next(k for k, f in enumerate(files) if f.name.startswith(f"{number:02}_"))
    return files[at - 1 : at + 2]


def check(name: str, files: list[Path]) -> list[PassReport]:
    """The reports of the dumps for every seed of the program."""
    module = golden_of(name)
    reports = []
    for seed in seeds_for(name, module, files[-1].name[:2]):
        tensors = module.inputs(seed)
        want = {k: v.clone() if torch.is_tensor(v) else v for k, v in tensors.items()}
        module.golden(want)
        returned = want.pop("__return__", ())
        expected = {k: v for k, v in want.items() if torch.is_tensor(v)}
        if isinstance(returned, tuple):
            expected |= {f"return[{i}]": v for i, v in enumerate(returned) if torch.is_tensor(v)}
        reports.append(
            check_passes(
                files, tensors, expected, rtol=module.RTOL, atol=module.ATOL, equal_nan=True, entry=module.ENTRY
            )
        )
    return reports


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f[0].replace(" ", "-"))
def test_a_fault_is_found_and_attributed(fault: tuple[Any, ...], tmp_path: Path) -> None:
    _, name, number, old, new, word = fault
    files = []
    for path in around(name, number):
        text = path.read_text(encoding="utf-8")
        if path.name.startswith(f"{number:02}_"):
            assert old in text
            text = text.replace(old, new)
        files.append(tmp_path / path.name)
        files[-1].write_text(text, encoding="utf-8")
    reports = [r for r in check(name, files) if r.first_bad]
    assert reports, "nothing noticed"
    for report in reports:
        before, changed, after = report.results
        assert before.good
        assert not changed.good
        assert after.good
        assert report.first_bad is changed
        assert f"first bad pass: {changed.file.stem} (last good: {before.file.stem})" in report.summary()
    said = [f"{r.located} {r.first_bad.error}" for r in reports if r.first_bad]
    assert any(word in text for text in said), said


@pytest.mark.parametrize("name", sorted({f[1] for f in FAULTS}))
def test_sound_dumps_are_silent(name: str) -> None:
    numbers = {f[2] for f in FAULTS if f[1] == name}
    for number in numbers:
        for report in check(name, around(name, number)):
            assert report.first_bad is None
            assert report.located == ""
