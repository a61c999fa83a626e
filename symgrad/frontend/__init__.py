"""Python -> graph: Functions, symbolic tensors, shape specs, tracing.

In: a ``Function`` and shape specs.  Out: ``symgrad.ir.function.FunctionGraphs``.
"""
