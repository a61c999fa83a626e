"""Index notation to C text: definitions, a schedule, C, and the Python wrapper around it.

In: graphs with named outputs.  Out: C, a header, the declarations for cffi, the signatures.

``program``: a graph as definitions in index notation; ``schedule``: their loops, and where values
are stored; ``emit``: the loops in C; ``wrapper``: the Python that calls the C.
"""

from symgrad.codegen.emit.file import CFile, FileDoc, emit_file
from symgrad.codegen.emit.kernel import EmittedKernel, KernelDoc, emit_kernel

__all__ = ["CFile", "EmittedKernel", "FileDoc", "KernelDoc", "emit_file", "emit_kernel"]
