"""IR kernels as `.pto` text."""
