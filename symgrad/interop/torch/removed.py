"""Functions that torch has removed altogether, and what it has in their place.

In: a name, of a function or a method of tensors.  Out: the function to call.

What torch has left in order to say so itself (``symeig``, ``eig``, ``solve``, ``lstsq``,
``matrix_rank``) is not here.
"""

REMOVED = {
    "potrf": "torch.linalg.cholesky", "potri": "torch.cholesky_inverse",
    "potrs": "torch.cholesky_solve", "gesv": "torch.linalg.solve", "gels": "torch.linalg.lstsq",
    "trtrs": "torch.linalg.solve_triangular", "btrifact": "torch.linalg.lu_factor",
    "btrisolve": "torch.linalg.lu_solve", "btriunpack": "torch.lu_unpack",
    "rfft": "torch.fft.rfft", "irfft": "torch.fft.irfft", "ifft": "torch.fft.ifft",
}  # fmt: skip
