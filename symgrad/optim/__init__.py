"""Optimizers as in torch, the update of a parameter one compiled kernel.

In: parameters with gradients.  Out: the parameters, moved.
Imports: ``symgrad.tensor``, ``symgrad.compiler`` and what is below.
"""
