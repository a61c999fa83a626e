"""Right backwards that ask much of a proof, each beside a wrong one of the same shape.

Derivatives by the output, clamps that never act, weights in one product, steps of a recurrence,
rows masked by minus infinity.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
op = programs.op
ANY = {"fails": at(), "hides": False}

# -- by the output
BY_OUTPUT = {
    "InverseRoot": ("x / (1 + x * x).sqrt()", "g * (1 - y * y) ** 1.5", "g * (1 - y * y)"),
    "Softplus": ("(1 + x.exp()).log()", "g * (1 - (-y).exp())", "g * (1 - y.exp())"),
    "LogSigmoid": ("x.sigmoid().log()", "g * (1 - y.exp())", "g * (1 - y)"),
    "Reciprocal": ("1 / (x * x + 1)", "-2 * g * x * y * y", "-2 * g * x * y"),
    "Elu": (
        "sg.where(x > 0, x, x.exp() - 1)",
        "sg.where(y > 0, g, g * (y + 1))",
        "sg.where(y > 0, g, g * y)",
    ),
    "Tanh": ("x.tanh()", "g * (1 - y) * (1 + y)", "g * (1 - y.abs())"),
    "Asinh": ("x.asinh()", "g / y.cosh()", "g / y.sinh()"),
    "Atan": ("x.atan()", "g * y.cos() ** 2", "g * y.cos()"),
    "Square": ("x.square() + 1", "2 * g * (y - 1).sqrt() * x.sign()", "2 * g * (y - 1).sqrt()"),
    "Gaussian": ("(-x * x).exp()", "-2 * g * x * y", "-2 * g * y"),
}
for name, (forward, backward, slip) in BY_OUTPUT.items():
    op(f"{name}ByOutput", forward, f"y = {forward}\n{backward}", "n")
    op(f"{name}ByOutputSlip", forward, f"y = {forward}\n{slip}", "n", **ANY)

# -- clamps that never act
op("ClampUnderRoot", "(x * x).clamp(min=0.0).sqrt() * x", "2 * g * x.abs()", "n")
op("ClampOfSigmoid", "x.sigmoid().clamp(0, 1)", "s = x.sigmoid()\ng * s * (1 - s)", "n")
op("ClampOfCosh", "x.cosh().clamp(min=1.0)", "g * x.sinh()", "n")
op("ClampOfSum", "(x.exp() + 1).clamp(min=1.0).log()", "g * x.sigmoid()", "n")
op("ClampOfTanh", "x.tanh().clamp(-1, 1)", "g * (1 - x.tanh() ** 2)", "n")
op(
    "ClampOfDeclared",
    "x.clamp(min=1.0).acosh()",
    "g / (x * x - 1).sqrt()",
    "n",
    assume={"x": "(1.1, 5)"},
    inside={"x": (1.2, 4.0)},
)
op(
    "ClampThatActs",
    "x.tanh().clamp(-0.5, 0.5)",
    "g * (1 - x.tanh() ** 2)",
    "n",
    fails=at(x=2.0),
    inside={"x": (-0.4, 0.4)},
)
op(
    "ClampOfNorm",
    "(1 + (x * x).sum()).clamp(min=1.0).sqrt()",
    "g * x / (1 + (x * x).sum()).sqrt()",
    "n",
)

# -- halves and one product for two weights
op(
    "Glu",
    "a, b = x.chunk(2, 1)\na * b.sigmoid()",
    "a, b = x.chunk(2, 1)\ns = b.sigmoid()\nsg.cat([g * s, g * a * s * (1 - s)], 1)",
    "n 2*m",
)
op(
    "GluSwapped",
    "a, b = x.chunk(2, 1)\na * b.sigmoid()",
    "a, b = x.chunk(2, 1)\ns = b.sigmoid()\nsg.cat([g * a * s * (1 - s), g * s], 1)",
    "n 2*m",
    **ANY,
)
GATED = "h = x @ sg.cat([y, z], 0).t()\na, b = h.chunk(2, 1)\n"
BACK = f"{GATED}t = b.tanh()\nda, db = g * t, g * a * (1 - t * t)\n"
op(
    "GatedProduct",
    f"{GATED}a * b.tanh()",
    f"{BACK}(da @ y + db @ z, da.t() @ x, db.t() @ x)",
    "n k",
    "m k",
    "m k",
)
op(
    "GatedProductSlip",
    f"{GATED}a * b.tanh()",
    f"{BACK}(da @ y + db @ z, db.t() @ x, da.t() @ x)",
    "n k",
    "m k",
    "m k",
    **ANY,
)

# -- steps of a recurrence
op(
    "NewtonReciprocal",
    "r = 0.5 - 0.1 * x\nr = r * (2 - x * r)\nr * (2 - x * r)",
    "r = 0.5 - 0.1 * x\nq = r * (2 - x * r)\ndr = -0.1 * (2 - 2 * x * r) - r * r\n"
    "g * (dr * (2 - 2 * x * q) - q * q)",
    "n",
)
op(
    "NewtonRoot",
    "r = (x + 1) / 2\nr = (r + x / r) / 2\nr",
    "r = (x + 1) / 2\ng * (0.5 * (1 - x / (r * r)) + 1 / r) / 2",
    "n",
    inside={"x": (0.2, 3.0)},
    unless=r"x \+ 1",
)
STEPS = "h1 = (x + y * 0.5).tanh()\nh2 = (x * h1 + y).tanh()\nh3 = (x * h2 + y).tanh()\n"
DELTAS = (
    f"{STEPS}d3 = g * (1 - h3 * h3)\nd2 = d3 * x * (1 - h2 * h2)\nd1 = d2 * x * (1 - h1 * h1)\n"
)
op("ThreeSteps", f"{STEPS}h3", f"{DELTAS}(d3 * h2 + d2 * h1 + d1, d3 + d2 + 0.5 * d1)", "n", "n")
op(
    "ThreeStepsSlip",
    f"{STEPS}h3",
    f"{DELTAS}(d3 * h2 + d2 * h1, d3 + d2 + 0.5 * d1)",
    "n",
    "n",
    **ANY,
)
op("Momentum", "v = 0.9 * y + x\n0.9 * v + x", "(1.9 * g, 0.81 * g)", "n", "n")
op(
    "NewtonSchulzStep",
    "1.5 * x - 0.5 * x @ x.t() @ x",
    "1.5 * g - 0.5 * (g @ x.t() @ x + x @ g.t() @ x + x @ x.t() @ g)",
    "n m",
)
op(
    "NewtonSchulzStepSlip",
    "1.5 * x - 0.5 * x @ x.t() @ x",
    "1.5 * g - 0.5 * (g @ x.t() @ x + x @ g.t() @ x + x @ x.t() @ x)",
    "n m",
    **ANY,
)
op(
    "PowerIteration",
    "u = x @ y\nu / (u * u).sum().sqrt()",
    "u = x @ y\nr = (u * u).sum().sqrt()\nd = (g - u * (g * u).sum() / (r * r)) / r\n"
    "(d.unsqueeze(1) * y, x.t() @ d)",
    "n m",
    "m",
)

# -- rows under minus infinity
CAUSAL = "n = x.shape[0]\ni = sg.arange(n)\nm = i.unsqueeze(1) < i\n"
MASKED = f"{CAUSAL}s = x.masked_fill(m, float('-inf')).softmax(1)\n"
op(
    "CausalSoftmax",
    f"{CAUSAL}x.masked_fill(m, float('-inf')).softmax(1)",
    f"{MASKED}s * (g - (g * s).sum(1, keepdim=True))",
    "n n",
)
op(
    "CausalSoftmaxSlip",
    f"{CAUSAL}x.masked_fill(m, float('-inf')).softmax(1)",
    f"{CAUSAL}s = x.softmax(1)\ns * (g - (g * s).sum(1, keepdim=True))",
    "n n",
    **ANY,
)
op(
    "CausalLogSumExp",
    f"{CAUSAL}x.masked_fill(m, float('-inf')).logsumexp(1)",
    f"{MASKED}g.unsqueeze(1) * s",
    "n n",
)
