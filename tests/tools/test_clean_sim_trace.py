"""Trace cleaning: from the profile files of a run to a trace and to tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceSettings, DfxSettings, run_artifact
from pytest_pypto.pypto.tools import clean_sim_trace
from pytest_pypto.pypto.tools.sim.events import Span, lanes
from tests.device.faults import named, two_tasks, zeros
from tests.device.texts import module, write

HEAD = "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,vec_busy_cycles,scalar_busy_cycles,icache_miss"
RECORDS: dict[str, Any] = {
    "chip_swimlane_level": 4,
    "metadata": {"clock_freq_hz": 50_000_000, "num_cores": 3, "core_types": ["aic", "aiv", "aiv"]},
    "aicore_tasks": [[1, 0, 0, 0, 100], [2, 1, 1, 50, 80], [1, 0, 2, 100, 150]],
    "aicpu_tasks": [[1, 0, 0, 101], [2, 1, 49, 81], [1, 2, 99, 151]],
    "aicpu_scheduler_phases": [
        [
            {"kind": "dispatch", "start_cycles": 0, "end_cycles": 10, "loop_iter": 0, "tasks_processed": 1},
            {"kind": "poll", "start_cycles": 10, "end_cycles": 12, "loop_iter": 1, "tasks_processed": 0},
            {"kind": "dispatch", "start_cycles": 5, "end_cycles": 9, "loop_iter": 2, "tasks_processed": 2},
        ]
    ],
    "aicpu_orchestrator_phases": [[{"submit_idx": 0, "task_id": 0, "start_cycles": 0, "end_cycles": 1}]],
}
COUNTERS = [HEAD, "0,1,0,7,aiv,100,60,5,9", "0,2,1,8,aiv,30,20,1,2", "0,1,0,7,aiv,50,10,0,0", ""]
DEPS = {
    "tasks": [{"task_id": "0", "kernel_ids": [-1, 7, 7]}, {"task_id": "1", "kernel_ids": [-1, 8, -1]}],
    "edges": [{"pred": "0", "succ": "1", "arg": 0}, {"pred": "0", "succ": "1", "arg": 1}],
}


def profile(folder: Path, *, counters: bool = True, deps: bool = True, names: bool = True, **changed: Any) -> Path:
    """A directory of profile files."""
    (folder / "chip_swimlane_records.json").write_text(json.dumps(RECORDS | changed))
    if counters:
        (folder / "pmu.csv").write_text("\n".join(COUNTERS))
    if deps:
        (folder / "deps.json").write_text(json.dumps(DEPS))
    if names:
        (folder / "name_map_x.json").write_text(json.dumps({"callable_id_to_name": {"7": "fill", "8": "use"}}))
    return folder


def cleaned(folder: Path, *flags: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The trace and the tables."""
    out = folder / "out"
    assert clean_sim_trace.main([str(folder), "-o", str(out), *flags]) == 0
    return json.loads((out / "trace.clean.json").read_text()), json.loads((out / "instr_metrics.json").read_text())


def bars(trace: dict[str, Any]) -> dict[str, list[tuple[str, float, float]]]:
    """(name, start, duration) by `process/lane`."""
    metas = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    process = {e["pid"]: e["args"]["name"] for e in metas if e["name"] == "process_name"}
    lane = {(e["pid"], e["tid"]): e["args"]["name"] for e in metas if e["name"] == "thread_name"}
    out: dict[str, list[tuple[str, float, float]]] = {}
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            key = f"{process[e['pid']]}/{lane[e['pid'], e['tid']]}"
            out.setdefault(key, []).append((e["name"], e["ts"], e["dur"]))
    return out


def test_bars_by_core_and_lane(tmp_path: Path) -> None:
    trace, _ = cleaned(profile(tmp_path))
    assert bars(trace) == {  # 50 MHz: a tick is 0.02 microseconds
        "aiv 1/TASK": [("fill", 0.0, 2.0), ("fill", 2.0, 1.0)],
        "aiv 2/TASK": [("use", 1.0, 0.6)],
        "control processor/SCHEDULER 0#1": [("dispatch", 0.0, 0.2)],
        "control processor/SCHEDULER 0#2": [("dispatch", 0.1, 0.08)],
        "control processor/ORCHESTRATOR 0": [("submit 0", 0.0, 0.02)],
    }


def test_one_arrow_per_pair_of_tasks(tmp_path: Path) -> None:
    trace, _ = cleaned(profile(tmp_path))
    arrows = [(e["ph"], e["pid"], e["ts"]) for e in trace["traceEvents"] if e["ph"] in "sf"]
    assert arrows == [("s", 1, 3.0), ("f", 2, 1.0)]


def test_what_a_bar_says(tmp_path: Path) -> None:
    plain, _ = cleaned(profile(tmp_path))
    scalar, _ = cleaned(tmp_path, "--keep-scalar")
    first, kept = (next(e["args"] for e in t["traceEvents"] if e["ph"] == "X") for t in (plain, scalar))
    assert (first["task_id"], first["dispatch_tick"], first["finish_tick"]) == (0, 0, 101)
    assert first["busy_ticks"] == {"pmu_total_cycles": 100, "vec_busy_cycles": 60}
    assert kept["busy_ticks"] == {"pmu_total_cycles": 100, "vec_busy_cycles": 60, "scalar_busy_cycles": 5}


def test_sums_by_kernel(tmp_path: Path) -> None:
    _, tables = cleaned(profile(tmp_path))
    assert tables["instructions"] == [
        {
            "kernel": "fill",
            "core_type": "aiv",
            "runs": 2,
            "ticks": 150,
            "max_ticks": 100,
            "pmu_total_cycles": 150,
            "vec_busy_cycles": 70,
        },
        {
            "kernel": "use",
            "core_type": "aiv",
            "runs": 1,
            "ticks": 30,
            "max_ticks": 30,
            "pmu_total_cycles": 30,
            "vec_busy_cycles": 20,
        },
    ]
    types = tables["column_types"]
    assert {name for name, kind in types.items() if kind == "str"} == {"kernel", "core_type"}
    busy = {"core": 1, "core_type": "aiv", "tasks": 2, "busy_ticks": 150, "first_tick": 0, "last_tick": 150}
    assert tables["cores"][0] == busy


def test_raw_metrics(tmp_path: Path) -> None:
    _, tables = cleaned(profile(tmp_path), "--raw-metrics")
    assert [r["icache_miss"] for r in tables["instructions"]] == [9, 2, 0]
    assert [(r["start_tick"], r["end_tick"]) for r in tables["instructions"]] == [(0, 100), (50, 80), (100, 150)]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"counters": False}, "fill"),
        ({"deps": False}, "fill"),
        ({"counters": False, "deps": False}, "task 0"),
        ({"names": False}, "task 0"),
    ],
)
def test_fewer_files_mean_less_to_say(tmp_path: Path, files: dict[str, bool], name: str) -> None:
    trace, _ = cleaned(profile(tmp_path, **files))
    assert bars(trace)["aiv 1/TASK"][0][0] == name
    assert any(e["ph"] == "s" for e in trace["traceEvents"]) is files.get("deps", True)


def test_level_one_has_tasks_only(tmp_path: Path) -> None:
    low = {k: RECORDS[k] for k in ("metadata", "aicore_tasks")}
    (tmp_path / "chip_swimlane_records.json").write_text(json.dumps(low | {"chip_swimlane_level": 1}))
    trace, _ = cleaned(tmp_path)
    assert set(bars(trace)) == {"aiv 1/TASK", "aiv 2/TASK"}
    assert all("dispatch_tick" not in e["args"] for e in trace["traceEvents"] if e["ph"] == "X")


def test_overlapping_spans_get_lanes_of_their_own() -> None:
    spans = [Span("c", 10, 20), Span("a", 0, 10), Span("b", 5, 15), Span("d", 15, 16), Span("e", 0, 0)]
    assert [[s.name for s in lane] for lane in lanes(spans)] == [["e", "a", "c"], ["b", "d"]]
    assert lanes([]) == []


@pytest.mark.parametrize(("flag", "copied"), [((), True), (("--copy-raw",), True), (("--no-copy-raw",), False)])
def test_raw_files(tmp_path: Path, flag: tuple[str, ...], copied: bool) -> None:
    cleaned(profile(tmp_path), *flag)
    raw = tmp_path / "out" / "raw_simulator"
    assert raw.exists() is copied
    if copied:
        assert {f.name: f.read_bytes() for f in raw.iterdir()} == {
            f.name: f.read_bytes() for f in tmp_path.iterdir() if f.is_file()
        }


def test_profile_of_a_device_run(tmp_path: Path) -> None:
    folder = write(tmp_path, two_tasks(False), k=module(named("fill"), named("use")))
    dfx = DfxSettings(directory=folder / "dfx_outputs", chip_swimlane=4, pmu=2, dep_gen=True)
    result = run_artifact(folder, [np.ones((16, 16), np.float32), zeros(16, 16)], DeviceSettings(dfx=dfx))
    assert clean_sim_trace.main([str(folder)]) == 0
    out = folder / "clean_trace"
    trace = json.loads((out / "trace.clean.json").read_text())
    names = [name for lane, spans in bars(trace).items() if lane.startswith("aiv") for name, _, _ in spans]
    assert names == ["fill", "use"]
    assert "not a prediction" in trace["otherData"]["clock"]
    (_, _, end), (_, _, begin) = [(e["ph"], e["pid"], e["ts"]) for e in trace["traceEvents"] if e["ph"] in "sf"]
    assert end <= begin
    tables = json.loads((out / "instr_metrics.json").read_text())
    assert sum(row["ticks"] for row in tables["instructions"]) == result.counters.ticks


DAMAGE = [
    ("chip_swimlane_records.json", "{", "chip_swimlane_records.json is no JSON text"),
    ("chip_swimlane_records.json", "[]", "is damaged: TypeError"),
    ("chip_swimlane_records.json", json.dumps(RECORDS | {"aicore_tasks": [[1, 2]]}), "is damaged: ValueError"),
    ("chip_swimlane_records.json", json.dumps(RECORDS | {"aicore_tasks": [[9, 0, 0, 0, 1]]}), "core 9 of task 0"),
    ("chip_swimlane_records.json", json.dumps(RECORDS | {"metadata": {}}), "KeyError: 'core_types'"),
    ("pmu.csv", "core_id\n1\n", "KeyError: 'task_id'"),
    ("pmu.csv", "\n".join(COUNTERS).replace("60", "many"), "'many'"),
    ("chip_swimlane_records.json", json.dumps(RECORDS | {"aicpu_scheduler_phases": [[{}]]}), "KeyError: 'kind'"),
    ("deps.json", '{"edges": [{}]}', "KeyError: 'pred'"),
]


@pytest.mark.parametrize(("name", "text", "message"), DAMAGE)
def test_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str) -> None:
    (profile(tmp_path) / name).write_text(text)
    assert clean_sim_trace.main([str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert not (tmp_path / "clean_trace").exists()


def test_nothing_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean_sim_trace.main([str(tmp_path / "no")]) == 1
    assert "is no directory" in capsys.readouterr().err
    assert clean_sim_trace.main([str(tmp_path)]) == 1
    assert "run with RunConfig(enable_chip_swimlane=4)" in capsys.readouterr().err


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        clean_sim_trace.main([])
    assert exit_.value.code == 2
