"""``sg.jit``: functions of tensors as kernels."""
