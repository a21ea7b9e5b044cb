"""Counters, the cost clock and the profile files."""
