"""On-chip memory: buffers, who may share them, and their addresses."""
