"""Does the generated Python wrapper call the emitted C as its graphs say?

In: the wrapper's text, the header, the traced Function, the graphs of its kernels.  Out:
``symgrad.validate.symbolic.kernel.Outcome``.  ``wrapper.validate`` is the entry.

The straight-line code of the text is executed symbolically, each path of it.  The record ``OP``,
from which ``symgrad.runtime`` makes every other call, is held against the same header and graphs.
Trusted: that ``symgrad.runtime`` does what the record says (``support``, ``arguments``,
``residuals``, ``values``, the C of ``binding``, which refuses arrays that overlap or are not
aligned and workspaces that are too small, and that of ``entry``, which Python asks first), cffi,
NumPy, and the simplification of graphs.
"""
