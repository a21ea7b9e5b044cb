"""Numbers only: tolerance policy, comparison, ulp distance, and where the differences lie.

`pytest_pypto.check` is also the name of the function that runs every layer; so this package can be called and hands
the call on.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_pypto.harness.verdict import Verdict


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Verdict:
        """See `pytest_pypto.harness.run.check`."""
        from pytest_pypto.harness.run import check

        return check(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
