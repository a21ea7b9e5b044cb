"""What has to be known about a program before its script is written: storage, regions, groups, blocking."""

from __future__ import annotations
