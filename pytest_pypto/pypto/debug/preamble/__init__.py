"""The run-time helpers of generated scripts.

The modules here are ordinary Python, but they are never imported by the package: `catalog.py` includes them in scripts
as text. They may import torch and the standard library, and each other with one-dot imports.
"""

from __future__ import annotations
