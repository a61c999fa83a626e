"""Index notation to C text: definitions, a schedule, C, and the Python wrapper around it.

In: graphs with named outputs.  Out: C, a header, the declarations for cffi, the signatures.

``program``: a graph as definitions in index notation; ``schedule``: their loops, and where values
are stored; ``emit``: the loops in C (``emit.kernel`` one kernel, ``emit.file`` a file of them);
``wrapper``: the Python that calls the C.
"""
