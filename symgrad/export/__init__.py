"""Compiled ops handed to other frameworks: ``symgrad.export.torch`` and ``symgrad.export.jax``.

In: an op of ``sg.compile``, or a module of a generated package.  Out: a torch custom op, a
``torch.autograd.Function``, or a JAX function.  Each framework is imported by its own module alone.
"""
