"""Functions of PyTorch, unmodified: ``torch.autograd.Function`` classes traced as symgrad's own.

In: a class of the user's.  Out: a ``symgrad.Function`` of the same methods, whose trace runs in the
user's process with the real torch: its tensors are torch's by class, and every function of torch
that meets one becomes part of the graph, or an error with the user's line.

``classes`` adapts a class; ``running`` is what stands around its trace; ``tensors`` are the classes
of tensors, sizes and numbers; ``calls`` finds what a function of torch is here; ``constants`` takes
in torch's own tensors; ``beneath`` catches the ATen operations that torch takes a function apart
into.
"""

from symgrad.interop.torch.classes import adapted as adapted
