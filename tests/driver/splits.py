"""Functions that split by size into cases which have little in common, over symgrad or torch.

In: the library, and its class of Functions.  Out: ``programs``: classes by name.

The cases of a split differ in the names, order, ranks, dtypes and sources of what they return, in
what they save, and in which gradients there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SPECS: Mapping[str, tuple[str, ...]] = {
    "swapped": ("f64[n m]", "f64[n m]"),
    "rolled": ("f64[n m]", "f64[n m]"),
    "turned": ("f64[n m]", "f64[n m]", "f64[m]"),
    "squeezed": ("f64[n m]", "f64[m]"),
    "mixed": ("f64[n m]", "f64[n m]"),
    "named": ("f64[n m]", "f64[n m]"),
    "derived": ("f64[n m]", "f64[m n]"),
}


def programs(lib: Any, base: Any) -> dict[str, Any]:  # noqa: C901  (classes side by side)
    """The Functions by name; ``SPECS`` says what each takes."""

    class Swapped(base):
        """Two outputs change places."""

        @staticmethod
        def forward(ctx: Any, x: Any, z: Any) -> Any:
            ctx.rows = x.shape[0]
            ctx.save_for_backward(x, z)
            a = x * 2.0
            b = z * z
            if x.shape[0] == 1:
                return b, a
            return a, b

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            _, z = ctx.saved_tensors
            if ctx.rows == 1:
                g, h = h, g
            return g * 2.0, h * 2.0 * z

    class Rolled(base):
        """Where there is one column, what is returned is called otherwise."""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            z = x * w
            return lib.roll(z, 1, 1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            g = lib.roll(g, -1, 1)
            return g * w, g * x

    class Turned(base):
        """Four cases, three outputs in another order in each, other things saved."""

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, w: Any) -> Any:
            a, b, c = lib.tanh(x), y * x, (y * w).sum(1)
            ctx.case = (x.shape[0] == 1, x.shape[1] == 1)
            ctx.save_for_backward(x, y, w, *((a,) if ctx.case[0] else ()))
            if ctx.case == (True, True):
                return c, a, b
            if ctx.case == (True, False):
                return b, c, a
            if ctx.case == (False, True):
                return a, c, b
            return a, b, c

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            order = {(True, True): (1, 2, 0), (True, False): (2, 0, 1), (False, True): (0, 2, 1)}
            ga, gb, gc = (given[place] for place in order.get(ctx.case, (0, 1, 2)))
            x, y, w, *kept = ctx.saved_tensors
            a = kept[0] if kept else lib.tanh(x)
            wide = gc.unsqueeze(1)
            return ga * (1 - a * a) + gb * y, gb * x + wide * w, (wide * y).sum(0)

    class Squeezed(base):
        """The rank of the output depends on sizes, and one gradient is missing in a case."""

        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            if x.shape[1] == 1:
                return (x * 3.0).squeeze()
            rows = (x * w).sum(1, keepdim=True)
            return rows.squeeze()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            if x.shape[1] == 1:
                return g.reshape(x.shape) * 3.0, None
            g = g.reshape(x.shape[0], 1)
            return g * w, (g * x).sum(0)

    class Mixed(base):
        """An output is a whole number in one case, and has no cotangent there."""

        @staticmethod
        def forward(ctx: Any, x: Any, z: Any) -> Any:
            ctx.save_for_backward(x, z)
            total = (x * z).sum(1)
            if x.shape[0] == 1:
                first = x[0] * 2.0
                return first, total
            count = (x > z).sum(1)
            ctx.mark_non_differentiable(count)
            return count, total

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, z = ctx.saved_tensors
            h = h.unsqueeze(1)
            if x.shape[0] == 1:
                return h * z + g.unsqueeze(0) * 2.0, h * x
            return h * z, h * x

    class Named(base):
        """Inputs are called as outputs and cotangents would be."""

        @staticmethod
        def forward(ctx: Any, output_1: Any, grad_output_0: Any) -> Any:
            ctx.save_for_backward(output_1, grad_output_0)
            residual_0 = output_1 * grad_output_0
            out = lib.sin(output_1)
            if output_1.shape[1] == 1:
                return out, residual_0
            return residual_0, out

        @staticmethod
        def backward(ctx: Any, p: Any, q: Any) -> Any:
            x, y = ctx.saved_tensors
            if x.shape[1] == 1:
                p, q = q, p
            return p * y + q * lib.cos(x), p * x

    class Derived(base):
        """Without a backward: square matrices are treated by themselves."""

        @staticmethod
        def forward(ctx: Any, x: Any, z: Any) -> Any:
            product = lib.exp(x) @ z
            if x.shape[0] == x.shape[1]:
                sides = x * z
                return sides, product
            return product, z.sum(0)

    found = (Swapped, Rolled, Turned, Squeezed, Mixed, Named, Derived)
    return {one.__name__.lower(): one for one in found}
