"""Sanitizers."""
