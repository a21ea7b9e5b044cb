"""`CompiledProgram`: the handle of an artifact directory, and how it is called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..backend import BackendType
from ..codegen.metadata import META_NAME
from ..ir.param_info import ParamInfo, output_indices
from ..ir.program import Program
from .options import RunOptions
from .platforms import ExecutionMode, check_platform, platform_name
from .sidecar import Sidecar, load_sidecar

if TYPE_CHECKING:
    import torch

    from ..device import DeviceResult, DeviceSettings
    from .config import RunConfig
    from .worker import ChipWorker


class _Callable:
    """An artifact with one entry: signature, platform, dispatch."""

    __test__ = False
    _label: str

    def __init__(self, output_dir: Path, sidecar: Sidecar, platform: str, backend_type: BackendType) -> None:
        self._dir = output_dir
        self._sidecar = sidecar
        self._platform = platform
        self._backend = backend_type
        self.last_result: DeviceResult | None = None
        """Report of the last dispatch through this handle: returned values, findings, counters."""

    @property
    def output_dir(self) -> Path:
        """The artifact directory."""
        return self._dir

    @property
    def platform(self) -> str:
        """The platform a call without a config runs on."""
        return self._platform

    @property
    def backend_type(self) -> BackendType:
        """The architecture the kernels were generated for."""
        return self._backend

    @property
    def params(self) -> tuple[ParamInfo, ...]:
        """The parameters, in order."""
        return self._sidecar.params

    @property
    def param_names(self) -> list[str]:
        """Names of the parameters, in order."""
        return [p.name for p in self.params]

    @property
    def output_indices(self) -> list[int]:
        """Positions of the pure `Out` parameters; `InOut` ones are not among them."""
        return output_indices(self.params)

    @property
    def has_return(self) -> bool:
        """Whether the program declares return values."""
        return self._sidecar.num_return_types > 0

    @property
    def findings(self) -> tuple[Any, ...]:
        """What the sanitizers found in the last dispatch."""
        return tuple(getattr(self.last_result, "findings", ()) or ())

    @property
    def runtime_name(self) -> str:
        """Wire name of the runtime the artifact is made for."""
        name: str = self.runtime_config["runtime"]
        return name

    @property
    def runtime_config(self) -> dict[str, Any]:
        """Runtime settings stored in the artifact."""
        from .manifest import runtime_config

        return runtime_config(self._dir)

    @property
    def chip_callable(self) -> Callable[..., Any]:
        """What a worker registers: the loaded artifact. On the simulator that is the handle itself."""
        self.load()
        return self

    def load(self) -> None:
        """Read the artifact now instead of at the first call.

        Raises:
            DeviceError: it is damaged.
        """
        from .manifest import check_artifact

        check_artifact(self._dir)

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Run once. With one argument per parameter, results are written into the arguments.

        With a config, platform, rings and diagnostics come from it alone; without, from the artifact and the
        defaults. A `ChipWorker` entered with `with` and bound to the same platform is used.

        Raises:
            TypeError, ValueError: arguments that do not fit the signature, or another architecture.
            DeviceError: a damaged artifact or a fault that stops the run.
        """
        options = RunOptions(platform=self._platform) if config is None else _dispatch_view(config)
        worker = self._worker(options)
        if worker is not None:
            return worker.run(self, *args, config=config)
        check_platform(self._label, self._backend, self._platform, options.platform)
        return self._run(args, options)

    def _worker(self, options: RunOptions) -> ChipWorker | None:
        from .worker import ChipWorker

        return ChipWorker.current(
            level=2, platform=options.platform, device_id=options.device_id, runtime=self.runtime_name
        )

    def _run(self, args: Sequence[Any], options: RunOptions, settings: DeviceSettings | None = None) -> Any:
        from .arguments import bind
        from .dispatch import dispatch, settings_for, stopped

        call = bind(self._label, self.params, self.has_return, args)
        self.last_result = None
        returned, result = dispatch(self._dir, call.values, settings_for(options, self._dir, settings))
        self.last_result = result
        if not result.completed:
            raise stopped(result)
        if call.made is None:
            return returned
        return call.made[0] if len(call.made) == 1 else tuple(call.made)


def _dispatch_view(config: RunConfig) -> RunOptions:
    """The dispatch half of a config. A bare `RunOptions` lacks `dfx_options` and is refused by the attribute error."""
    if not hasattr(config, "dfx_options") and not isinstance(config, RunOptions):
        raise TypeError(f"config takes a RunConfig, got {type(config).__name__}")
    config.dfx_options()
    return config.run_options()


class SubProgram(_Callable):
    """One orchestration of an artifact that has several."""

    def __init__(self, name: str, output_dir: Path, sidecar: Sidecar, platform: str, backend: BackendType) -> None:
        super().__init__(output_dir, sidecar, platform, backend)
        self.name = name
        self._label = f"orchestration '{name}'"

    def __repr__(self) -> str:
        return f"SubProgram({self.name!r}, {self._dir})"


class CompiledProgram(_Callable):
    """An artifact directory and what is needed to call it. Path-like; equal to other handles of the same directory.

    Made by `ir.compile`, `kernel.compile` and `CompiledProgram.from_dir`.

    Raises:
        FileNotFoundError: the directory holds no finished artifact. ValueError: its sidecar is malformed.
    """

    _label = "CompiledProgram"

    def __init__(
        self,
        program: Program | None,
        output_dir: str | os.PathLike[str],
        *,
        backend_type: BackendType = BackendType.Ascend910B,
        platform: str | None = None,
    ) -> None:
        directory = Path(os.fspath(output_dir)).resolve()
        self.program = program
        chosen = platform if platform is not None else platform_name(backend_type, ExecutionMode.SIM)
        self._subs = _sub_programs(directory, chosen, backend_type) if program is not None else {}
        if not self._subs:
            super().__init__(directory, load_sidecar(directory), chosen, backend_type)
        else:
            super().__init__(directory, Sidecar((), 0, chosen, backend_type), chosen, backend_type)

    @classmethod
    def from_dir(
        cls,
        output_dir: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
    ) -> CompiledProgram:
        """Open an artifact from disk; nothing is compiled and nothing on disk changes.

        Args:
            platform: overrides the stored platform (of calls without a config).
            backend_type: overrides the stored architecture.

        Raises:
            FileNotFoundError: no artifact there; the text says what is there instead.
            ValueError: the sidecar is malformed or of another version.
        """
        directory = Path(os.fspath(output_dir)).resolve()
        stored = load_sidecar(directory)
        backend = stored.backend_type if backend_type is None else backend_type
        own = stored.platform or platform_name(backend, ExecutionMode.SIM)
        return cls(None, directory, backend_type=backend, platform=platform or own)

    @property
    def orchestration_names(self) -> list[str]:
        """Names of the orchestrations when there are several, else empty."""
        return sorted(self._subs)

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        self._refuse_several("select one explicitly via compiled[<name>]")
        return super().__call__(*args, config=config)

    @property
    def runtime_config(self) -> dict[str, Any]:
        """Runtime settings stored in the artifact."""
        self._refuse_several("access runtime artefacts via compiled[<name>]")
        return super().runtime_config

    def load(self) -> None:
        """Read the artifact now instead of at the first call."""
        self._refuse_several("access runtime artefacts via compiled[<name>]")
        super().load()

    def _refuse_several(self, advice: str) -> None:
        if self._subs:
            names = self.orchestration_names
            subject = "L2 orchestrations" if advice.startswith("select") else "orchestrations"
            head = "Program" if advice.startswith("select") else "Multi-orch program"
            raise TypeError(f"{head} has {len(names)} {subject} {names}; {advice}")

    def __getitem__(self, name: str) -> SubProgram:
        found = self._subs.get(name)
        if found is None:
            self._no_such(name)
        return found

    def _no_such(self, name: str) -> NoReturn:
        if not self._subs and (self._dir / "next_levels" / str(name) / META_NAME).is_file():
            raise RuntimeError(
                f"'{name}' can be selected only on a handle with live IR; "
                f"open next_levels/{name} with CompiledProgram.from_dir"
            )
        listed = ", ".join(self.orchestration_names) or "none: the program has a single orchestration"
        raise KeyError(f"no orchestration {name!r}; available: {listed}")

    def __getattr__(self, name: str) -> SubProgram:
        found: SubProgram | None = self.__dict__.get("_subs", {}).get(name)
        if found is None:
            raise AttributeError(f"'CompiledProgram' object has no attribute {name!r}")
        return found

    def validate_ir(
        self,
        tensors: Mapping[str, torch.Tensor],
        expected: Mapping[str, torch.Tensor],
        *,
        rtol: float = 5e-2,
        atol: float = 5e-2,
    ) -> None:
        """Run the oracle on every dump in `passes_dump/` and compare the named outputs with `expected`.

        Args:
            tensors: arguments by parameter name.
            expected: outputs by parameter name.

        Raises:
            FileNotFoundError: the artifact has no dumps; compile with `dump_passes=True`.
            AssertionError: the first dump that differs, with the tensor and the difference.
        """
        from importlib import import_module

        folder = self._dir / "passes_dump"
        if not folder.is_dir():
            raise FileNotFoundError(f"No passes_dump/ under {self._dir}; compile with dump_passes=True first")
        debug = import_module("pytest_pypto.pypto.debug")  # looked up at call time: tests replace the function there
        debug.validate_pass_ir_codegen_results(str(folder), dict(tensors), dict(expected), rtol=rtol, atol=atol)

    def __fspath__(self) -> str:
        return str(self._dir)

    def __str__(self) -> str:
        return str(self._dir)

    def __repr__(self) -> str:
        return f"CompiledProgram({self._dir})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CompiledProgram):
            return self._dir == other._dir
        if isinstance(other, (str, os.PathLike)):
            return str(self._dir) == os.fspath(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(str(self._dir))


def _sub_programs(directory: Path, platform: str, backend: BackendType) -> dict[str, SubProgram]:
    """Handles of the sub-builds; only a parent without a sidecar of its own has any."""
    if (directory / META_NAME).is_file():
        return {}
    found = sorted(directory.glob(f"next_levels/*/{META_NAME}"))
    return {
        p.parent.name: SubProgram(p.parent.name, p.parent, load_sidecar(p.parent), platform, backend) for p in found
    }
