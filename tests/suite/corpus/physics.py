"""Physics, geometry and rendering: distances, kernels, stencils, rotations, volume rendering."""

import math

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n d", "m d")
class SquaredDistances(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * x @ y.T

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        grad_x = 2 * (g.sum(1, keepdim=True) * x - g @ y)
        grad_y = 2 * (g.sum(0)[:, None] * y - g.T @ x)
        return grad_x, grad_y


@wrong(SquaredDistances, bug="the cross term only")
class DistancesCross(SquaredDistances):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return -2 * g @ y, -2 * g.T @ x


@wrong(SquaredDistances, bug="sign of the second points' gradient")
class DistancesSign(SquaredDistances):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        grad_x = 2 * (g.sum(1, keepdim=True) * x - g @ y)
        return grad_x, 2 * (g.T @ x - g.sum(0)[:, None] * y)


@right("n d", "m d", static={"gamma": 0.3})
class RbfKernel(sg.Function):
    @staticmethod
    def forward(ctx, x, y, gamma):
        diff = x.unsqueeze(1) - y.unsqueeze(0)
        k = sg.exp(-gamma * diff.pow(2).sum(-1))
        ctx.save_for_backward(diff, k)
        ctx.gamma = gamma
        return k

    @staticmethod
    def backward(ctx, g):
        diff, k = ctx.saved_tensors
        grad = -2 * ctx.gamma * (g * k).unsqueeze(-1) * diff
        return grad.sum(1), -grad.sum(0), None


@wrong(RbfKernel, bug="factor 2 left out")
class RbfFactor(RbfKernel):
    @staticmethod
    def backward(ctx, g):
        diff, k = ctx.saved_tensors
        grad = -ctx.gamma * (g * k).unsqueeze(-1) * diff
        return grad.sum(1), -grad.sum(0), None


@wrong(RbfKernel, bug="both gradients with the same sign")
class RbfSign(RbfKernel):
    @staticmethod
    def backward(ctx, g):
        diff, k = ctx.saved_tensors
        grad = -2 * ctx.gamma * (g * k).unsqueeze(-1) * diff
        return grad.sum(1), grad.sum(0), None


@right("n", static={"epsilon": 0.5, "sigma": 1.1}, assume={"r": "positive"})
class LennardJones(sg.Function):
    @staticmethod
    def forward(ctx, r, epsilon, sigma):
        s6 = (sigma / r) ** 6
        ctx.save_for_backward(r, s6)
        ctx.epsilon = epsilon
        return 4 * epsilon * (s6 * s6 - s6)

    @staticmethod
    def backward(ctx, g):
        r, s6 = ctx.saved_tensors
        return g * 24 * ctx.epsilon * (s6 - 2 * s6 * s6) / r, None, None


@wrong(LennardJones, bug="the 2 of the repulsive term left out")
class LennardJonesTwo(LennardJones):
    @staticmethod
    def backward(ctx, g):
        r, s6 = ctx.saved_tensors
        return g * 24 * ctx.epsilon * (s6 - s6 * s6) / r, None, None


@wrong(LennardJones, bug="the force for the gradient")
class LennardJonesForce(LennardJones):
    @staticmethod
    def backward(ctx, g):
        r, s6 = ctx.saved_tensors
        return -g * 24 * ctx.epsilon * (s6 - 2 * s6 * s6) / r, None, None


@right("b h+2 w+2")
class Laplacian(sg.Function):
    """The five-point stencil on the interior."""

    @staticmethod
    def forward(ctx, u):
        ctx.shape = u.shape
        around = u[:, 2:, 1:-1] + u[:, :-2, 1:-1] + u[:, 1:-1, 2:] + u[:, 1:-1, :-2]
        return around - 4 * u[:, 1:-1, 1:-1]

    @staticmethod
    def backward(ctx, g):
        grad = sg.zeros(ctx.shape, dtype=g.dtype)
        grad[:, 2:, 1:-1] += g
        grad[:, :-2, 1:-1] += g
        grad[:, 1:-1, 2:] += g
        grad[:, 1:-1, :-2] += g
        grad[:, 1:-1, 1:-1] -= 4 * g
        return grad


@wrong(Laplacian, bug="one neighbour twice, another never")
class LaplacianNeighbour(Laplacian):
    @staticmethod
    def backward(ctx, g):
        grad = sg.zeros(ctx.shape, dtype=g.dtype)
        grad[:, 2:, 1:-1] += g
        grad[:, 2:, 1:-1] += g
        grad[:, 1:-1, 2:] += g
        grad[:, 1:-1, :-2] += g
        grad[:, 1:-1, 1:-1] -= 4 * g
        return grad


@right("n 3", "n 3")
class CrossProduct(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        a0, a1, a2 = a.unbind(1)
        b0, b1, b2 = b.unbind(1)
        return sg.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], dim=1)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return sg.cross(b, g, dim=1), sg.cross(g, a, dim=1)


@wrong(CrossProduct, bug="order of one of the products: its sign")
class CrossProductOrder(CrossProduct):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return sg.cross(g, b, dim=1), sg.cross(g, a, dim=1)


@wrong(CrossProduct, bug="no axis named: the first of size 3", right_if="n != 3", shown_by={"n": 3})
class CrossProductAxis(CrossProduct):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return sg.cross(b, g), sg.cross(g, a)


@right("n 4")
class QuaternionToRotation(sg.Function):
    """The first row of the rotation matrix of w, x, y, z (not normalised)."""

    @staticmethod
    def forward(ctx, q):
        w, x, y, z = q.unbind(-1)
        ctx.save_for_backward(q)
        return sg.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1)

    @staticmethod
    def backward(ctx, g):
        (q,) = ctx.saved_tensors
        w, x, y, z = q.unbind(-1)
        g0, g1, g2 = g.unbind(-1)
        grad_w = 2 * (y * g2 - z * g1)
        grad_x = 2 * (y * g1 + z * g2)
        grad_y = 2 * (x * g1 + w * g2) - 4 * y * g0
        grad_z = 2 * (x * g2 - w * g1) - 4 * z * g0
        return sg.stack([grad_w, grad_x, grad_y, grad_z], dim=-1)


@wrong(QuaternionToRotation, bug="one sign among twelve terms")
class QuaternionSign(QuaternionToRotation):
    @staticmethod
    def backward(ctx, g):
        (q,) = ctx.saved_tensors
        w, x, y, z = q.unbind(-1)
        g0, g1, g2 = g.unbind(-1)
        grad_w = 2 * (y * g2 + z * g1)
        grad_x = 2 * (y * g1 + z * g2)
        grad_y = 2 * (x * g1 + w * g2) - 4 * y * g0
        grad_z = 2 * (x * g2 - w * g1) - 4 * z * g0
        return sg.stack([grad_w, grad_x, grad_y, grad_z], dim=-1)


@right("r s", "r s c", assume={"sigma": "positive"})
class VolumeRendering(sg.Function):
    """Colours along rays, weighted by exp(-Σ earlier density)·(1 - exp(-density))."""

    @staticmethod
    def forward(ctx, sigma, rgb):
        through = sg.exp(-sg.cumsum(sigma, dim=1))
        before = sg.exp(-(sg.cumsum(sigma, dim=1) - sigma))
        weights = before - through
        ctx.save_for_backward(rgb, weights, through)
        return (weights.unsqueeze(-1) * rgb).sum(1)

    @staticmethod
    def backward(ctx, g):
        rgb, weights, through = ctx.saved_tensors
        value = (g.unsqueeze(1) * rgb).sum(-1)
        behind = (weights * value).flip(1).cumsum(1).flip(1) - weights * value
        return through * value - behind, weights.unsqueeze(-1) * g.unsqueeze(1)


@wrong(VolumeRendering, bug="what lies behind is not dimmed")
class RenderingBehind(VolumeRendering):
    @staticmethod
    def backward(ctx, g):
        rgb, weights, through = ctx.saved_tensors
        value = (g.unsqueeze(1) * rgb).sum(-1)
        return through * value, weights.unsqueeze(-1) * g.unsqueeze(1)


@wrong(VolumeRendering, bug="sum of what lies before, not behind")
class RenderingDirection(VolumeRendering):
    @staticmethod
    def backward(ctx, g):
        rgb, weights, through = ctx.saved_tensors
        value = (g.unsqueeze(1) * rgb).sum(-1)
        behind = (weights * value).cumsum(1) - weights * value
        return through * value - behind, weights.unsqueeze(-1) * g.unsqueeze(1)


@right("n d", static={"levels": 3})
class FrequencyEncoding(sg.Function):
    @staticmethod
    def forward(ctx, x, levels):
        parts = []
        for level in range(levels):
            angle = x * (2**level * math.pi)
            parts += [sg.sin(angle), sg.cos(angle)]
        out = sg.cat(parts, dim=-1)
        ctx.save_for_backward(out)
        ctx.levels, ctx.d = levels, x.shape[-1]
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        d = ctx.d
        grad = 0
        for level in range(ctx.levels):
            at = 2 * level * d
            s, c = out[:, at : at + d], out[:, at + d : at + 2 * d]
            gs, gc = g[:, at : at + d], g[:, at + d : at + 2 * d]
            grad = grad + 2**level * math.pi * (gs * c - gc * s)
        return grad, None


@wrong(FrequencyEncoding, bug="frequency of the next level")
class FrequencyLevel(FrequencyEncoding):
    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        d = ctx.d
        grad = 0
        for level in range(ctx.levels):
            at = 2 * level * d
            s, c = out[:, at : at + d], out[:, at + d : at + 2 * d]
            gs, gc = g[:, at : at + d], g[:, at + d : at + 2 * d]
            grad = grad + 2 ** (level + 1) * math.pi * (gs * c - gc * s)
        return grad, None


@right("n 2", "m 2", "m")
class Gravity(sg.Function):
    """Softened potential of point masses at each position."""

    @staticmethod
    def forward(ctx, x, source, mass):
        diff = x[:, None, :] - source[None, :, :]
        inverse = (diff.square().sum(-1) + 0.01).rsqrt()
        ctx.save_for_backward(diff, inverse, mass)
        return -(mass * inverse).sum(1)

    @staticmethod
    def backward(ctx, g):
        diff, inverse, mass = ctx.saved_tensors
        pull = (g[:, None] * mass * inverse**3)[:, :, None] * diff
        return pull.sum(1), -pull.sum(0), -(g[:, None] * inverse).sum(0)


@wrong(Gravity, bug="inverse square for the inverse cube")
class GravityPower(Gravity):
    @staticmethod
    def backward(ctx, g):
        diff, inverse, mass = ctx.saved_tensors
        pull = (g[:, None] * mass * inverse**2)[:, :, None] * diff
        return pull.sum(1), -pull.sum(0), -(g[:, None] * inverse).sum(0)


@wrong(Gravity, bug="sources' gradient summed over the sources", kind="shape")
class GravityAxis(Gravity):
    @staticmethod
    def backward(ctx, g):
        diff, inverse, mass = ctx.saved_tensors
        pull = (g[:, None] * mass * inverse**3)[:, :, None] * diff
        return pull.sum(1), -pull.sum(1), -(g[:, None] * inverse).sum(0)
