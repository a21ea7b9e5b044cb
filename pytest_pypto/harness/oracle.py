"""Running a program through `torch_codegen`.

Generated texts are executed once each: stages that generate the same text share a namespace, and a namespace can be
called again with other data.
"""

from __future__ import annotations

import linecache
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_pypto.harness.inputs import Inputs
from pytest_pypto.harness.signature import entry_of

KEEP = 64
_NAMESPACES: OrderedDict[str, dict[str, Any]] = OrderedDict()


@dataclass(frozen=True)
class Run:
    """What one run did.

    Attributes:
        tensors: every tensor argument after the run, by parameter name.
        returned: what the program returned.
    """

    tensors: Mapping[str, Any]
    returned: Any = None


@dataclass(frozen=True)
class Script:
    """Generated code of one program, and the name of its entry."""

    text: str
    entry: str

    @property
    def filename(self) -> str:
        """Name under which tracebacks and traces find the text."""
        return f"<oracle {self.entry} {hash(self.text) & 0xFFFFFFFF:08x}>"

    def namespace(self) -> dict[str, Any]:
        """The executed text, from memory when it was executed before."""
        space = _NAMESPACES.get(self.text)
        if space is None:
            lines = self.text.splitlines(keepends=True)
            linecache.cache[self.filename] = (len(self.text), None, lines, self.filename)
            space = {"__name__": "pypto_oracle"}
            exec(compile(self.text, self.filename, "exec"), space)
            _NAMESPACES[self.text] = space
            if len(_NAMESPACES) > KEEP:
                _NAMESPACES.popitem(last=False)
        else:
            _NAMESPACES.move_to_end(self.text)
        return space

    def run(self, inputs: Inputs) -> Run:
        """Call the entry on clones of the inputs.

        Raises:
            Exception: whatever the generated code raises.
        """
        import torch

        arguments = inputs.clones()
        with torch.no_grad():
            returned = self.namespace()[self.entry](*arguments.values())
        return Run(tensors_of(arguments), returned)


def script_of(program: Any, *, check_shapes: bool = True) -> Script:
    """Generate the torch code of a program.

    Raises:
        Exception: the generator meets something it does not support; its message names it.
    """
    from pypto.debug import torch_codegen

    return Script(torch_codegen(program, check_shapes=check_shapes), entry_of(program).name)


def tensors_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors among the arguments."""
    return {name: value for name, value in arguments.items() if hasattr(value, "dtype")}
