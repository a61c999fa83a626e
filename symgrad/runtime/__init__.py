"""C text to callable kernels, and generated packages that need nothing of symgrad.

In: C, wrappers and the literals in them.  Out: ops on NumPy arrays; folders that can be imported.
No sympy, no jinja2.  What follows is copied into every generated package, but for the last line:

- ``symgrad.abi`` what an op is; ``binding`` the C between cffi and its kernels; ``digests``
- ``compiler``, ``blas``, ``build`` C to a shared object; ``cache`` where it is kept
- ``load`` into the process; ``threads``; ``workspace``
- ``arguments``, ``residuals``, ``values``, ``support`` the careful way to call, with every error
- ``op`` a wrapper loaded in this process, ``carried`` to another; ``package`` one written to disk
"""
