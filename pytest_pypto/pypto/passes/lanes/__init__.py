"""Halving the vector part of a kernel between the two vector cores beside a cube core."""
