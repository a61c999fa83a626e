"""What torch's functions of complex tensors are, in terms of real ones.

In: the name of a function and its arguments, complex ones among them.  Out: what it gives: tensors
of reals, or pairs of reals (``frontend.complexes``).

A function that moves elements moves the pairs, in the same memory; one that computes does so with
the real and the imaginary part.  What stands in no table here is refused.
"""

from symgrad.interop.torch.complexes import arithmetic, fourier, movement, writes  # noqa: F401
from symgrad.interop.torch.complexes.table import concerns as concerns
from symgrad.interop.torch.complexes.table import is_known as is_known
from symgrad.interop.torch.complexes.table import operation_of as operation_of
from symgrad.interop.torch.complexes.table import taken as taken
