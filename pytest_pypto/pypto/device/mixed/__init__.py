"""Agents of one task: cube core, vector lanes, blocks, pipes and their scheduler."""
