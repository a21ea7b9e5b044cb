"""Parts of ConvertTensorToTileOps: what a kernel's tensors become, one module per group of operators."""
