"""What one call of an operation does: traced once, computed by NumPy or kernels, run on tensors."""
