"""The host program: tensors, tasks, dependencies, rings."""
