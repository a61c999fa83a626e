"""Any number of batch axes, judged at once: the trace that asks whether their number matters.

In: a Function and specs with ``*batch``.  Out: what depends on the number of batch axes, if
anything does.

The axes that ``*batch`` stands for are one axis here, the *batch axis*, of an opaque size.
Whatever would answer differently for another number of them ends the trace.  What is known not to
is listed, operation by operation (``rules.py``); anything else counts as dependent.
"""
