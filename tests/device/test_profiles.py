"""Profile files: swimlane, arguments, counters, dependencies, scopes. Same run, same files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, DeviceSettings, DfxSettings, run_artifact

from .faults import UP_DOWN, c2v, eye, named, two_tasks, zeros
from .texts import Kernel, dirs, host, mixed, module, single, typ, write

F = np.float32


def profiled(folder: Path, *args: Any, **asked: Any) -> Path:
    """Run and give the directory of the profile files."""
    out = folder / "dfx_outputs"
    run_artifact(folder, list(args), DeviceSettings(dfx=DfxSettings(directory=out, **asked)))
    return out


def chain(folder: Path) -> Path:
    """fill(a) -> t; use(t) -> o."""
    return write(folder, two_tasks(False), k=module(named("fill"), named("use")))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    assert not profiled(chain(tmp_path), zeros(16, 16), zeros(16, 16)).exists()


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_swimlane_levels(level: int, tmp_path: Path) -> None:
    out = profiled(chain(tmp_path), zeros(16, 16), zeros(16, 16), chip_swimlane=level)
    data = read(out / "chip_swimlane_records.json")
    sections = ["aicpu_tasks", "aicpu_scheduler_phases", "aicpu_orchestrator_phases"]
    assert [s in data for s in sections] == [level >= 2, level >= 3, level >= 4]
    assert data["chip_swimlane_level"] == level
    meta = data["metadata"]
    assert meta["clock_freq_hz"] == 50_000_000
    assert len(meta["core_types"]) == meta["num_cores"]
    assert ("core_to_thread" in meta) is (level >= 3)
    (core, first, _, start, end), (_, second, _, later, last) = data["aicore_tasks"]
    assert meta["core_types"][core] == "aiv"
    assert (first, second) == (0, 1)
    assert start == 0 < end <= later < last  # the second task waits for the first
    names = read(out / f"name_map_{tmp_path.name}.json")
    assert names["callable_id_to_name"] == {"0": "fill", "1": "use"}
    if level >= 2:
        assert {(r[0], r[1]) for r in data["aicpu_tasks"]} == {(r[0], r[2]) for r in data["aicore_tasks"]}


def test_mixed_task_takes_three_cores(tmp_path: Path) -> None:
    out = profiled(mixed(tmp_path, *c2v(), ["o"], UP_DOWN), eye(), zeros(32, 32), chip_swimlane=1)
    data = read(out / "chip_swimlane_records.json")
    kinds = [data["metadata"]["core_types"][r[0]] for r in data["aicore_tasks"]]
    assert sorted(kinds) == ["aic", "aiv", "aiv"]
    assert len({r[0] for r in data["aicore_tasks"]}) == 3
    assert len({(r[3], r[4]) for r in data["aicore_tasks"]}) == 1


def test_blocks_share_the_cores(tmp_path: Path) -> None:
    """Four blocks on one cluster run one after another on each vector core."""
    k = named("k")
    t = typ("f32", (16, 16))
    ways = dirs("input", "output_existing", more=', "core_num": 4')
    body = f"with pl.scope():\n    self.k(a, o, {ways})"
    folder = write(tmp_path, host(f"a: {t}, o: pl.Out[{t}]", body, k.declaration(["o"])), k=module(k))
    spans = {}
    for clusters in (1, 4):
        out = folder / f"dfx{clusters}"
        dfx = DfxSettings(directory=out, chip_swimlane=1)
        run_artifact(folder, [zeros(16, 16), zeros(16, 16)], DeviceSettings(dfx=dfx, clusters=clusters))
        rows = read(out / "chip_swimlane_records.json")["aicore_tasks"]
        assert len(rows) == 4
        spans[clusters] = max(r[4] for r in rows)
    assert spans[1] == 4 * spans[4]


def test_counters_file(tmp_path: Path) -> None:
    out = profiled(mixed(tmp_path, *c2v(), ["o"], UP_DOWN), eye(), zeros(32, 32), pmu=2)
    rows = list(csv.DictReader((out / "pmu.csv").read_text().splitlines()))
    head = "thread_id core_id task_id func_id core_type pmu_total_cycles"
    busy = [f"{unit}_busy_cycles" for unit in ("vec", "cube", "scalar", "mte1", "mte2", "mte3")]
    assert list(rows[0]) == [*head.split(), *busy, "icache_miss", "icache_req", "event_type"]
    assert [r["core_type"] for r in rows].count("aiv") == 2
    by_kind = {r["core_type"]: r for r in rows}
    assert int(by_kind["aic"]["cube_busy_cycles"]) > 0 == int(by_kind["aiv"]["cube_busy_cycles"])
    assert int(by_kind["aiv"]["vec_busy_cycles"]) > 0 == int(by_kind["aic"]["vec_busy_cycles"])
    assert {r["event_type"] for r in rows} == {"2"}


@pytest.mark.parametrize("wrong", [{"pmu": 3}, {"chip_swimlane": 5}, {"dump_args": 3}])
def test_unknown_levels(wrong: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"unknown pmu event 3|is a level 0\.\.4"):
        profiled(chain(tmp_path), zeros(16, 16), zeros(16, 16), **wrong)


def test_arguments_before_and_after(tmp_path: Path) -> None:
    a = np.arange(256, dtype=F).reshape(16, 16) / 256
    out = profiled(chain(tmp_path), a, zeros(16, 16), dump_args=2)
    data = read(out / "args_dump" / "args_dump.json")
    raw = (out / "args_dump" / data["bin_file"]).read_bytes()
    rows = data["args"]
    assert data["total_args"] == len(rows) == 6  # each task: input and inout before, inout after
    assert (data["before_dispatch"], data["after_completion"]) == (4, 2)
    assert (data["input_args"], data["output_args"], data["inout_args"]) == (2, 0, 4)
    values = [np.frombuffer(raw, F, 256, r["bin_offset"]).reshape(16, 16) for r in rows]
    np.testing.assert_array_equal(values[0], a)
    np.testing.assert_allclose(values[-1], np.exp(np.exp(a)), rtol=1e-6)
    assert {(r["task_id"], r["dtype"], tuple(r["shape"]), r["is_contiguous"]) for r in rows} == {
        ("0x0", "fp32", (16, 16), True),
        ("0x1", "fp32", (16, 16), True),
    }


def test_strided_arguments_are_dumped_densely(tmp_path: Path) -> None:
    t, wide = typ("f32", (16, 16)), typ("f32", (16, 48))
    k = named("k")
    body = f"""
    with pl.scope():
        w: {t} = pl.tensor.slice(a, [16, 16], [0, 16])
        self.k(w, o, {dirs("input", "output_existing")})
    """
    folder = write(tmp_path, host(f"a: {wide}, o: pl.Out[{t}]", body, k.declaration(["o"])), k=module(k))
    a = np.arange(16 * 48, dtype=F).reshape(16, 48) / 1000
    out = profiled(folder, a, zeros(16, 16), dump_args=2)
    data = read(out / "args_dump" / "args_dump.json")
    row = data["args"][0]
    assert (row["strides"], row["start_offset"], row["is_contiguous"], row["bin_size"]) == ([48, 1], 16, False, 1024)
    raw = (out / "args_dump" / "args.bin").read_bytes()
    np.testing.assert_array_equal(np.frombuffer(raw, F, 256).reshape(16, 16), a[:, 16:32])


def test_scalar_arguments_are_dumped(tmp_path: Path) -> None:
    k = Kernel("k", [("o", "f32", (16, 16))], [("s", "f32"), ("n", "index")])
    k.tile("t", 16, 16, 0)
    k.op("texpands", [("s", "f32")], ["t"])
    k.store("t", "o", ("n", 0), (1, 16))
    folder = single(tmp_path, k, ["o"])
    out = profiled(folder, zeros(16, 16), 1.5, 3, dump_args=2)
    data = read(out / "args_dump" / "args_dump.json")
    raw = (out / "args_dump" / "args.bin").read_bytes()
    scalars = [r for r in data["args"] if r["kind"] == "scalar"]
    assert [(r["arg_index"], r["role"], r["stage"]) for r in scalars] == [(i, "in", "before_dispatch") for i in (1, 2)]
    assert np.frombuffer(raw, np.float64, 1, scalars[0]["bin_offset"])[0] == 1.5
    assert np.frombuffer(raw, np.int64, 1, scalars[1]["bin_offset"])[0] == 3


def test_only_marked_arguments(tmp_path: Path) -> None:
    t = typ("f32", (16, 16))
    k = named("k")
    for marked in (True, False):
        folder = tmp_path / str(marked)
        more = ', "dump_vars": [a]' if marked else ""
        body = f"with pl.scope():\n    self.k(a, o, {dirs('input', 'output_existing', more=more)})"
        write(folder, host(f"a: {t}, o: pl.Out[{t}]", body, k.declaration(["o"])), k=module(k))
        out = profiled(folder, zeros(16, 16), zeros(16, 16), dump_args=1)
        data = read(out / "args_dump" / "args_dump.json")
        assert [(r["arg_index"], r["role"]) for r in data["args"]] == ([(0, "in")] if marked else [])


def test_dependencies(tmp_path: Path) -> None:
    out = profiled(chain(tmp_path), zeros(16, 16), zeros(16, 16), dep_gen=True)
    data = read(out / "deps.json")
    assert [t["task_id"] for t in data["tasks"]] == ["0", "1"]
    assert [t["kernel_ids"] for t in data["tasks"]] == [[-1, 0, -1], [-1, 1, -1]]
    assert {t["scope"] for t in data["tasks"]} == {"auto"}
    assert [(a["type"], a["dtype"], a["shape"]) for a in data["tasks"][0]["args"]] == [
        ("input", "fp32", [16, 16]),
        ("inout", "fp32", [16, 16]),
    ]
    (edge,) = data["edges"]
    assert (edge["pred"], edge["succ"], edge["arg"]) == ("0", "1", 0)
    assert edge["source"] in ("tensormap", "creator")
    tensors = {t["tensor_id"]: t for t in data["tensors"]}
    assert edge["tensor_id"] in tensors
    assert tensors[edge["tensor_id"]]["buffer_numel"] == "256"


def test_scopes(tmp_path: Path) -> None:
    out = profiled(chain(tmp_path), zeros(16, 16), zeros(16, 16), scope_stats=True)
    head, *events = (json.loads(x) for x in (out / "scope_stats" / "scope_stats.jsonl").read_text().splitlines())
    assert (head["version"], head["fatal"], head["dropped"], head["total"]) == (6, False, 0, len(events))
    assert max(head["task_window_max"]) == 2
    assert max(head["heap_max"]) >= 1024
    assert [e["phase"] for e in events].count("begin") == [e["phase"] for e in events].count("end")
    keys = "site phase depth ring task_window_start task_window_end heap_start heap_end dep_pool_start dep_pool_end"
    assert all(set(keys.split()) | {"tensormap"} == set(e) for e in events)


def test_files_repeat(tmp_path: Path) -> None:
    everything = {"chip_swimlane": 4, "dump_args": 2, "pmu": 2, "dep_gen": True, "scope_stats": True}
    seen = []
    chain(tmp_path)
    for _ in range(2):
        out = profiled(tmp_path, zeros(16, 16), zeros(16, 16), **everything)
        files = [f for f in sorted(out.rglob("*")) if f.is_file()]
        seen.append({f.name: f.read_bytes() for f in files})
    assert len(seen[0]) == 7
    assert seen[0] == seen[1]


@pytest.mark.parametrize("order", ["program", "late"])
def test_kernels_have_one_number_in_all_files(order: str, tmp_path: Path) -> None:
    t, ways = typ("f32", (16, 16)), dirs("input", "output_existing")
    kernels = [named(n) for n in ("first", "second")]
    body = f"with pl.scope():\n    self.first(a, p, {ways})\n    self.second(a, q, {ways})"
    text = host(f"a: {t}, p: pl.Out[{t}], q: pl.Out[{t}]", body, *(k.declaration(["o"]) for k in kernels))
    folder, out = write(tmp_path, text, k=module(*kernels)), tmp_path / "dfx_outputs"
    dfx = DfxSettings(directory=out, chip_swimlane=1, dump_args=2, pmu=2, dep_gen=True)
    run_artifact(folder, [zeros(16, 16)] * 3, DeviceSettings(dfx=dfx, order=order))
    names = read(out / f"name_map_{tmp_path.name}.json")["callable_id_to_name"]
    by_task = {"0": "first", "1": "second"}
    with (out / "pmu.csv").open() as file:
        assert {r["task_id"]: names[r["func_id"]] for r in csv.DictReader(file)} == by_task
    deps = read(out / "deps.json")["tasks"]
    assert {r["task_id"]: names[str(r["kernel_ids"][1])] for r in deps} == by_task
    args = read(out / "args_dump" / "args_dump.json")["args"]
    assert {str(int(r["task_id"], 16)): names[str(r["func_id"][0])] for r in args} == by_task
