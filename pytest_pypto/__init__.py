"""pytest-pypto: test PyPTO kernels with pytest."""
