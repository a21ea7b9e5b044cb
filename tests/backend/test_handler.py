"""The two architectures, their selection and the public backend objects."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pytest_pypto.pypto import backend
from pytest_pypto.pypto.backend import BackendType, selected_backend
from pytest_pypto.pypto.backend.handler import current_handler, handler_for, require_handler
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import CoreType, MemorySpace


@pytest.fixture(autouse=True)
def _clean():
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


def test_capacities():
    kib = {s: v // 1024 for s, v in handler_for(BackendType.Ascend910B).capacity.items()}
    space = MemorySpace
    assert kib == {space.Vec: 184, space.Mat: 512, space.Left: 64, space.Right: 64, space.Acc: 128, space.Bias: 1}
    sizes = handler_for(BackendType.Ascend950).capacity
    assert (sizes[space.Vec], sizes[space.Acc], sizes[space.Bias]) == (245760, 262144, 4096)
    assert sizes[space.LeftScale] == sizes[space.RightScale] == 4096


def test_cast_tables():
    a2, a5 = (handler_for(b).casts for b in BackendType)
    assert DataType.BF16 not in a2[DataType.FP16]
    assert DataType.FP16 not in a2[DataType.BF16]
    assert DataType.FP16 in a5[DataType.BF16]
    assert DataType.UINT32 not in a2
    assert a5[DataType.UINT32] >= {DataType.UINT8, DataType.INT16}
    assert DataType.FP8E4M3FN in a5[DataType.FP32]
    assert DataType.FP8E4M3FN not in a2[DataType.FP32]


def test_selection_round_trip():
    assert not backend.is_backend_configured()
    assert current_handler() is None
    with pytest.raises(RuntimeError, match="set_backend_type"):
        backend.get_backend_type()
    with pytest.raises(RuntimeError, match="planner needs to know the architecture"):
        require_handler("planner")
    backend.set_backend_type(BackendType.Ascend950)
    assert backend.get_backend_type() is BackendType.Ascend950
    assert current_handler().arch == "a5"
    backend.set_backend_type(BackendType.Ascend910B)
    assert current_handler().arch == "a2a3"
    backend.reset_for_testing()
    assert not backend.is_backend_configured()


@pytest.mark.parametrize("bad", ["Ascend910B", 0, None])
def test_only_members_are_accepted(bad):
    with pytest.raises(TypeError, match=r"BackendType\.Ascend910B, BackendType\.Ascend950"):
        backend.set_backend_type(bad)
    assert not backend.is_backend_configured()


def test_threads_keep_their_own_selection():
    backend.set_backend_type(BackendType.Ascend910B)
    seen = []

    def other():
        seen.append(backend.get_backend_type())
        with selected_backend(BackendType.Ascend950):
            seen.append(backend.get_backend_type())
            ready.set()
            go.wait(5)
        seen.append(backend.get_backend_type())

    ready, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    assert ready.wait(5)
    assert backend.get_backend_type() is BackendType.Ascend910B
    go.set()
    thread.join()
    assert seen == [BackendType.Ascend910B, BackendType.Ascend950, BackendType.Ascend910B]


def test_selected_backend_restores_nothing_selected():
    with selected_backend(BackendType.Ascend950):
        assert backend.is_backend_configured()
    assert not backend.is_backend_configured()


def test_backend_objects():
    old, new = backend.Backend910B.instance(), backend.get_backend_instance(BackendType.Ascend950)
    assert old is backend.Backend910B.instance()
    assert new.get_type_name() == "Ascend950"
    assert (old.get_core_count(CoreType.CUBE), old.get_core_count(CoreType.VECTOR)) == (24, 48)
    assert (new.get_core_count(CoreType.CUBE), new.get_core_count(CoreType.VECTOR)) == (36, 72)
    assert new.soc.total_die_count() == 2
    assert new.soc.total_cluster_count() == 36
    assert old.soc.total_core_count() == 72
    assert old.get_mem_size(MemorySpace.Left) == 65536
    with pytest.raises(ValueError, match="LeftScale"):
        old.get_mem_size(MemorySpace.LeftScale)
    with pytest.raises(TypeError, match="instance"):
        backend.Backend()


def test_memory_paths():
    space = MemorySpace
    old, new = (backend.get_backend_instance(b) for b in BackendType)
    assert old.find_mem_path(space.DDR, space.Left) == [space.DDR, space.Mat, space.Left]
    assert old.find_mem_path(space.Acc, space.Vec) == [space.Acc, space.DDR, space.Vec]
    assert new.find_mem_path(space.Acc, space.Vec) == [space.Acc, space.Vec]
    assert old.find_mem_path(space.Left, space.DDR) == []


def test_description_file(tmp_path: Path):
    path = tmp_path / "chip.json"
    backend.Backend950.instance().export_to_file(str(path))
    assert backend.Backend.import_from_file(str(path)) is backend.Backend950.instance()
    path.write_text(path.read_text().replace("245760", "245761"))
    with pytest.raises(ValueError, match="differ from those of Ascend950"):
        backend.Backend.import_from_file(str(path))
    path.write_text("{}")
    with pytest.raises(ValueError, match="not a backend description"):
        backend.Backend.import_from_file(str(path))
