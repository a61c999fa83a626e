"""The built-in operations whose kernels come with symgrad, as Functions.

In: the frontend's table.  Out: ``BUILTIN``: Functions by the names of their modules in
``generated``; ``symgrad regen`` compiles them, ``symgrad.tensor.shipped`` looks them up.

Each is the operation itself, so that its derivative is derived, and is the eager operation's own.
Elementwise ones take a flat array, the others rows.
"""

from __future__ import annotations

from typing import Annotated, Any

from symgrad.frontend.function import Function
from symgrad.frontend.functions import FUNCTIONS

Flat = Annotated[Any, "f32[n]"]
Rows = Annotated[Any, "f32[n m]"]
Row = Annotated[Any, "f32[m]"]
Labels = Annotated[Any, "i64[n]"]


class Relu(Function):
    """``max(x, 0)``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.relu``."""
        return FUNCTIONS["relu"](x)


class Sigmoid(Function):
    """``1 / (1 + exp(-x))``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.sigmoid``."""
        return FUNCTIONS["sigmoid"](x)


class Erf(Function):
    """The error function."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.erf``."""
        return FUNCTIONS["erf"](x)


class Gelu(Function):
    """``x Φ(x)``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.gelu``."""
        return FUNCTIONS["gelu"](x)


class Silu(Function):
    """``x sigmoid(x)``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.silu``."""
        return FUNCTIONS["silu"](x)


class Softplus(Function):
    """``log(1 + exp(x))``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.softplus``."""
        return FUNCTIONS["softplus"](x)


class Mish(Function):
    """``x tanh(softplus(x))``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.mish``."""
        return FUNCTIONS["mish"](x)


class Elu(Function):
    """``x`` above 0, ``exp(x) - 1`` elsewhere."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.elu``."""
        return FUNCTIONS["elu"](x)


class LogSigmoid(Function):
    """``log(sigmoid(x))``."""

    @staticmethod
    def forward(ctx: Any, x: Flat) -> Any:
        """``sg.logsigmoid``."""
        return FUNCTIONS["logsigmoid"](x)


class Softmax(Function):
    """Each row's powers, divided by their sum."""

    @staticmethod
    def forward(ctx: Any, x: Rows) -> Any:
        """``sg.softmax`` over the last axis."""
        return FUNCTIONS["softmax"](x, -1)


class LogSoftmax(Function):
    """The logarithm of the softmax of each row."""

    @staticmethod
    def forward(ctx: Any, x: Rows) -> Any:
        """``sg.log_softmax`` over the last axis."""
        return FUNCTIONS["log_softmax"](x, -1)


class LogSumExp(Function):
    """The logarithm of the sum of each row's powers."""

    @staticmethod
    def forward(ctx: Any, x: Rows) -> Any:
        """``sg.logsumexp`` over the last axis."""
        return FUNCTIONS["logsumexp"](x, -1)


class LayerNorm(Function):
    """Each row centred and scaled to unit variance, then ``y = x̂ w + b``."""

    @staticmethod
    def forward(ctx: Any, x: Rows, weight: Row, bias: Row) -> Any:
        """``sg.layer_norm`` over the last axis."""
        return FUNCTIONS["layer_norm"](x, (x.shape[-1],), weight, bias)


class CrossEntropy(Function):
    """The mean of ``-log softmax(x)[label]`` over the rows."""

    @staticmethod
    def forward(ctx: Any, x: Rows, labels: Labels) -> Any:
        """``sg.cross_entropy``."""
        return FUNCTIONS["cross_entropy"](x, labels)


BUILTIN: dict[str, type[Function]] = {
    "eager_relu": Relu,
    "eager_sigmoid": Sigmoid,
    "eager_erf": Erf,
    "eager_gelu": Gelu,
    "eager_silu": Silu,
    "eager_softplus": Softplus,
    "eager_mish": Mish,
    "eager_elu": Elu,
    "eager_logsigmoid": LogSigmoid,
    "eager_softmax": Softmax,
    "eager_log_softmax": LogSoftmax,
    "eager_logsumexp": LogSumExp,
    "eager_layer_norm": LayerNorm,
    "eager_cross_entropy": CrossEntropy,
}
"""By the name of the module: ``symgrad.generated.<name>``."""
