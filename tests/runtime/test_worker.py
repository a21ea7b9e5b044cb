"""`ChipWorker`: life cycle, memory, registration. Dispatches are in `test_dispatch.py`."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from pypto import ir
from pypto.runtime import ChipWorker, DeviceTensor, RunConfig, Worker

from tests.runtime.programs import AddOne

SIM = RunConfig(platform="a2a3sim")


@pytest.fixture
def worker() -> ChipWorker:
    return ChipWorker(SIM)


def test_construction_opens_it_unless_told_not_to() -> None:
    assert ChipWorker().initialized
    assert ChipWorker(auto_init=True).initialized
    assert not ChipWorker(auto_init=False).initialized


def test_what_it_is_bound_to(worker: ChipWorker) -> None:
    assert isinstance(worker, Worker)
    assert (worker.level, worker.platform, worker.device_id) == (2, "a2a3sim", 0)
    assert worker.runtime == "tensormap_and_ringbuffer"


def test_only_one_chip() -> None:
    with pytest.raises(ValueError, match="only supports level=2, got 3"):
        ChipWorker(level=3)


def test_hardware_is_refused_with_the_simulator_s_name() -> None:
    with pytest.raises(RuntimeError, match=r"'a5' is hardware.*'a5sim'"):
        ChipWorker(RunConfig(platform="a5"))


def test_init_and_close_can_be_repeated(worker: ChipWorker) -> None:
    worker.close()
    worker.close()
    assert not worker.initialized
    worker.init()
    worker.init()
    assert worker.initialized


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("malloc", (16,)),
        ("free", (1,)),
        ("copy_to", (1, 1, 1)),
        ("copy_from", (1, 1, 1)),
        ("alloc_tensor", ((2,), torch.float32)),
        ("free_tensor", (DeviceTensor(1, (1,), torch.int8),)),
        ("run", (None,)),
        ("register", (None,)),
    ],
)
def test_a_closed_worker_refuses_every_operation(worker: ChipWorker, operation: str, args: tuple[object, ...]) -> None:
    worker.close()
    with pytest.raises(RuntimeError, match=rf"ChipWorker\.{operation}\(\) requires an initialized ChipWorker"):
        getattr(worker, operation)(*args)


def test_bytes_go_there_and_back(worker: ChipWorker) -> None:
    source, target = torch.arange(8, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    pointer = worker.malloc(32)
    worker.copy_to(pointer, source.data_ptr(), 32)
    worker.copy_from(target.data_ptr(), pointer, 32)
    worker.free(pointer)
    assert torch.equal(source, target)


@pytest.mark.parametrize("nbytes", [0, -1, True, 1.5, "8"])
def test_sizes_are_positive_ints(worker: ChipWorker, nbytes: object) -> None:
    with pytest.raises(ValueError, match="nbytes must be a positive int"):
        worker.malloc(nbytes)  # type: ignore[arg-type]


def test_copies_name_an_allocation_by_its_base(worker: ChipWorker) -> None:
    pointer, host = worker.malloc(32), torch.zeros(64, dtype=torch.uint8)
    with pytest.raises(ValueError, match="allocation base"):
        worker.copy_to(pointer + 4, host.data_ptr(), 4)
    with pytest.raises(ValueError, match="cannot copy 64 bytes, the allocation has 32"):
        worker.copy_from(host.data_ptr(), pointer, 64)
    worker.free(pointer)
    with pytest.raises(ValueError, match="freed already"):
        worker.free(pointer)


def test_only_worker_zero(worker: ChipWorker) -> None:
    with pytest.raises(ValueError, match="only supports worker_id=0, got 1"):
        worker.malloc(16, worker_id=1)


def test_buffers_that_were_not_freed_are_reported_at_close(worker: ChipWorker) -> None:
    worker.malloc(16)
    with pytest.warns(ResourceWarning, match=r"1 malloc\(\) buffer\(s\) not freed"):
        worker.close()


def test_tensors_that_were_not_freed_go_silently(worker: ChipWorker) -> None:
    worker.alloc_tensor((4,), torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        worker.close()


def test_a_tensor_starts_with_what_it_is_given(worker: ChipWorker) -> None:
    init = torch.arange(6.0).reshape(3, 2).t()
    made = worker.alloc_tensor((2, 3), torch.float32, init=init)
    assert torch.equal(worker.read_tensor(made), init)


@pytest.mark.parametrize(
    ("dtype", "poison"),
    [(torch.int8, -128), (torch.int32, -(2**31)), (torch.uint8, 0), (torch.int64, -(2**63))],
)
def test_integers_without_init_are_the_smallest(worker: ChipWorker, dtype: torch.dtype, poison: int) -> None:
    assert worker.read_tensor(worker.alloc_tensor((4,), dtype)).tolist() == [poison] * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_floats_without_init_are_nan(worker: ChipWorker, dtype: torch.dtype) -> None:
    assert worker.read_tensor(worker.alloc_tensor((4,), dtype)).isnan().all()


@pytest.mark.parametrize("init", [torch.zeros(3, 2), torch.zeros(2, 3).half()])
def test_an_init_of_another_shape_or_dtype(worker: ChipWorker, init: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"init must have shape=\(2, 3\) dtype=torch.float32, got"):
        worker.alloc_tensor((2, 3), torch.float32, init=init)


def test_freeing_twice_does_nothing_but_a_stale_handle_is_refused(worker: ChipWorker) -> None:
    first = worker.alloc_tensor((4,), torch.float32)
    worker.free_tensor(first)
    worker.free_tensor(first)
    second = worker.alloc_tensor((4,), torch.float32)
    stale = DeviceTensor(second.data_ptr, (4,), torch.float32)
    with pytest.raises(ValueError, match="stale DeviceTensor"):
        worker.free_tensor(stale)
    with pytest.raises(ValueError, match="worker_id 0, not 2"):
        worker.free_tensor(second, worker_id=2)


def test_a_with_block_publishes_the_worker() -> None:
    binding = {"level": 2, "platform": "a5sim", "device_id": 1, "runtime": "tensormap_and_ringbuffer"}
    cfg = RunConfig(platform="a5sim", device_id=1)
    assert ChipWorker.current(**binding) is None
    with ChipWorker(cfg) as worker:
        assert ChipWorker.current(**binding) is worker
        assert ChipWorker.current(**{**binding, "device_id": 0}) is None
        with pytest.raises(RuntimeError, match="without enable_sdma=True"):
            ChipWorker.current(**binding, require_sdma=True)
        other = ChipWorker(cfg)
        with pytest.raises(ValueError, match="already active in an enclosing scope"), other:
            pass
        with ChipWorker(RunConfig(platform="a2a3sim")) as inner:
            assert ChipWorker.current(**{**binding, "platform": "a2a3sim", "device_id": 0}) is inner
    assert ChipWorker.current(**binding) is None
    assert not worker.initialized


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ir.CompiledProgram:
    return ir.compile(AddOne, platform="a2a3sim", output_dir=tmp_path_factory.mktemp("add"), dump_passes=False)


def test_a_registration_dies_alone(worker: ChipWorker, compiled: ir.CompiledProgram) -> None:
    one, two = worker.register(compiled), worker.register(compiled)
    assert one.cid == two.cid
    one.unregister()
    assert one.closed
    assert not two.closed
    with pytest.raises(RuntimeError, match="has been unregistered"):
        one()
    worker.close()
    with pytest.raises(RuntimeError, match="unregistered or its worker closed"):
        two()


def test_another_platform_or_runtime_is_refused(compiled: ir.CompiledProgram, tmp_path: Path) -> None:
    text = r"CompiledProgram\.platform='a2a3sim' does not match ChipWorker\.platform='a5sim'"
    with pytest.raises(ValueError, match=text):
        ChipWorker(RunConfig(platform="a5sim")).run(compiled)
    with pytest.raises(ValueError, match="requires runtime='tensormap_and_ringbuffer' but ChipWorker was constructed"):
        ChipWorker(SIM, runtime="host_build_graph").run(compiled)


def test_something_that_is_no_program(worker: ChipWorker) -> None:
    with pytest.raises(TypeError, match=r"takes a CompiledProgram first, got int"):
        worker.run(3)


def test_tensors_of_another_worker_are_refused_with_their_position(
    worker: ChipWorker, compiled: ir.CompiledProgram
) -> None:
    foreign = ChipWorker(SIM).alloc_tensor((32, 64), torch.float32)
    with pytest.raises(ValueError, match=r"At position 1: .* is not a live allocation owned by this ChipWorker"):
        worker.run(compiled, torch.zeros(32, 64), foreign)
    raw = DeviceTensor(4096, (32, 64), torch.float32)
    with pytest.raises(TypeError, match="At position 0: a raw-pointer DeviceTensor cannot be dispatched"):
        worker.run(compiled, raw, torch.zeros(32, 64))
