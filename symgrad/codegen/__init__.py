"""Index notation to C text: schedule, C tree, printer, templates.

In: graphs with named outputs.  Out: C, a header, the declarations for cffi, the signatures.

The road of a graph: ``equations`` (each node in index notation), ``axes`` (which loops are the
same), ``cuts`` (what becomes an array), ``program``, ``items`` and ``arrange`` (the schedule, a
longest path), ``layout`` (where values live), ``nests`` and ``outer`` (loops), ``kernel``,
``render``.
"""

from symgrad.codegen.kernel import EmittedKernel, KernelDoc, emit_kernel
from symgrad.codegen.render import CFile, FileDoc, emit_file

__all__ = ["CFile", "EmittedKernel", "FileDoc", "KernelDoc", "emit_file", "emit_kernel"]
