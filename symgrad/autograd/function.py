"""What ``torch.autograd.function`` has.

In: nothing.  Out: the names.
"""

from symgrad.frontend.function import Function as Function
from symgrad.frontend.function import once_differentiable as once_differentiable
