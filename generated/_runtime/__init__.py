"""What the kernels of this package are called through; copied from symgrad."""
