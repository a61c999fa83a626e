"""How far kernels are from their formulas, by ball arithmetic.

In: the plan of an op, and the op compiled.  Out: ``Accuracy``: the worst error of each output and
each gradient, where it is, and special values.  ``measure.py`` is the entry.
"""
