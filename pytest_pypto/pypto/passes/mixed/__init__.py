"""Splitting a kernel that uses both cores into a cube and a vector function."""
