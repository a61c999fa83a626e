"""Functions of JAX, unmodified: ``jax.custom_vjp`` functions traced as symgrad's own.

In: a function of the user's.  Out: a ``symgrad.Function`` whose trace runs in the user's process
with the real JAX: that traces ``fun``, ``fwd`` and ``bwd`` for symbolic sizes, and each equation
of what it finds becomes part of the graph, or an error with the user's line.

``functions`` adapts a function; ``running`` is what stands around its trace; ``tracing`` has JAX
trace a program; ``sizes`` are JAX's symbolic sizes and ours; ``equations`` goes through what JAX
traced; ``primitives``, ``places`` and ``calls`` say what a primitive is here.
"""

from importlib.metadata import version

from symgrad.errors import SpecError

_OLDEST = (0, 10)
if tuple(map(int, version("jax").split(".")[:2])) < _OLDEST:
    raise SpecError(
        f"functions of JAX are judged with JAX 0.10 or later, and this is {version('jax')}",
        hint="pip install --upgrade jax",
    )

from symgrad.interop.jax.functions import adapted as adapted  # noqa: E402
