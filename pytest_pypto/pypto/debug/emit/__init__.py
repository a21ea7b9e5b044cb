"""From IR to the lines of a script."""

from __future__ import annotations
