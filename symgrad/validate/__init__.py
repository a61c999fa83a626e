"""Is the emitted C what was proved?

In: the C text of a kernel and its graph.  Nothing here imports ``symgrad.codegen``: what judges
the C shares no code with what writes it.
"""
