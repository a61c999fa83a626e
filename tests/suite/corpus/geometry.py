"""Cameras, rotations, splats, grids and rays."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n 3", "", assume={"focal": "positive"})
class PinholeProjection(sg.Function):
    """Pixels of points whose depth is 1 + z²."""

    @staticmethod
    def forward(ctx, points, focal):
        x, y, z = points.unbind(1)
        depth = 1 + z * z
        ctx.save_for_backward(points, focal, depth)
        return focal * sg.stack([x / depth, y / depth], dim=1)

    @staticmethod
    def backward(ctx, g):
        points, focal, depth = ctx.saved_tensors
        x, y, z = points.unbind(1)
        gu, gv = g.unbind(1)
        grad_x, grad_y = focal * gu / depth, focal * gv / depth
        grad_depth = -focal * (gu * x + gv * y) / (depth * depth)
        grad_focal = ((gu * x + gv * y) / depth).sum()
        return sg.stack([grad_x, grad_y, 2 * z * grad_depth], dim=1), grad_focal


@wrong(PinholeProjection, bug="depth's gradient left out")
class PinholeDepth(PinholeProjection):
    @staticmethod
    def backward(ctx, g):
        points, focal, depth = ctx.saved_tensors
        x, y, _ = points.unbind(1)
        gu, gv = g.unbind(1)
        grad_focal = ((gu * x + gv * y) / depth).sum()
        return sg.stack([focal * gu / depth, focal * gv / depth, 0 * gu], dim=1), grad_focal


@wrong(PinholeProjection, bug="focal length missing in the depth's gradient")
class PinholeFocal(PinholeProjection):
    @staticmethod
    def backward(ctx, g):
        points, focal, depth = ctx.saved_tensors
        x, y, z = points.unbind(1)
        gu, gv = g.unbind(1)
        grad_depth = -(gu * x + gv * y) / (depth * depth)
        grad_focal = ((gu * x + gv * y) / depth).sum()
        columns = [focal * gu / depth, focal * gv / depth, 2 * z * grad_depth]
        return sg.stack(columns, dim=1), grad_focal


@right("n 4", "n 4")
class QuaternionProduct(sg.Function):
    @staticmethod
    def forward(ctx, p, q):
        ctx.save_for_backward(p, q)
        a, b, c, d = p.unbind(-1)
        e, f, g, h = q.unbind(-1)
        return sg.stack(
            [
                a * e - b * f - c * g - d * h,
                a * f + b * e + c * h - d * g,
                a * g - b * h + c * e + d * f,
                a * h + b * g - c * f + d * e,
            ],
            dim=-1,
        )

    @staticmethod
    def backward(ctx, grad):
        p, q = ctx.saved_tensors
        a, b, c, d = p.unbind(-1)
        e, f, g, h = q.unbind(-1)
        w, x, y, z = grad.unbind(-1)
        grad_p = [
            w * e + x * f + y * g + z * h,
            -w * f + x * e - y * h + z * g,
            -w * g + x * h + y * e - z * f,
            -w * h - x * g + y * f + z * e,
        ]
        grad_q = [
            w * a + x * b + y * c + z * d,
            -w * b + x * a + y * d - z * c,
            -w * c - x * d + y * a + z * b,
            -w * d + x * c - y * b + z * a,
        ]
        return sg.stack(grad_p, dim=-1), sg.stack(grad_q, dim=-1)


@wrong(QuaternionProduct, bug="product taken for commutative")
class QuaternionCommutes(QuaternionProduct):
    @staticmethod
    def backward(ctx, grad):
        p, q = ctx.saved_tensors
        a, b, c, d = p.unbind(-1)
        e, f, g, h = q.unbind(-1)
        w, x, y, z = grad.unbind(-1)

        def against(r, s, t, u):
            rows = [
                w * r + x * s + y * t + z * u,
                -w * s + x * r - y * u + z * t,
                -w * t + x * u + y * r - z * s,
                -w * u - x * t + y * s + z * r,
            ]
            return sg.stack(rows, dim=-1)

        return against(e, f, g, h), against(a, b, c, d)


@right("n 2", "n 3", "n", assume={"opacity": "(0, 1)"})
class SplatAlpha(sg.Function):
    """opacity·exp(-½ dᵀ C d) of a two-dimensional Gaussian, C as (a, b, c)."""

    @staticmethod
    def forward(ctx, d, conic, opacity):
        dx, dy = d[:, 0], d[:, 1]
        power = -0.5 * (conic[:, 0] * dx * dx + conic[:, 2] * dy * dy) - conic[:, 1] * dx * dy
        falloff = sg.exp(power)
        ctx.save_for_backward(d, conic, opacity, falloff)
        return opacity * falloff

    @staticmethod
    def backward(ctx, g):
        d, conic, opacity, falloff = ctx.saved_tensors
        dx, dy = d[:, 0], d[:, 1]
        a, b, c = conic[:, 0], conic[:, 1], conic[:, 2]
        grad_power = g * opacity * falloff
        grad_d = sg.zeros_like(d)
        grad_d[:, 0] = -grad_power * (a * dx + b * dy)
        grad_d[:, 1] = -grad_power * (c * dy + b * dx)
        grad_conic = sg.zeros_like(conic)
        grad_conic[:, 0] = -0.5 * grad_power * dx * dx
        grad_conic[:, 1] = -grad_power * dx * dy
        grad_conic[:, 2] = -0.5 * grad_power * dy * dy
        return grad_d, grad_conic, g * falloff


@wrong(SplatAlpha, bug="the mixed term halved")
class SplatMixed(SplatAlpha):
    @staticmethod
    def backward(ctx, g):
        d, conic, opacity, falloff = ctx.saved_tensors
        dx, dy = d[:, 0], d[:, 1]
        a, b, c = conic[:, 0], conic[:, 1], conic[:, 2]
        grad_power = g * opacity * falloff
        grad_d = sg.zeros_like(d)
        grad_d[:, 0] = -grad_power * (a * dx + b * dy)
        grad_d[:, 1] = -grad_power * (c * dy + b * dx)
        grad_conic = sg.zeros_like(conic)
        grad_conic[:, 0] = -0.5 * grad_power * dx * dx
        grad_conic[:, 1] = -0.5 * grad_power * dx * dy
        grad_conic[:, 2] = -0.5 * grad_power * dy * dy
        return grad_d, grad_conic, g * falloff


@wrong(SplatAlpha, bug="opacity left out of the distance's gradient")
class SplatOpacity(SplatAlpha):
    @staticmethod
    def backward(ctx, g):
        d, conic, opacity, falloff = ctx.saved_tensors
        dx, dy = d[:, 0], d[:, 1]
        a, b, c = conic[:, 0], conic[:, 1], conic[:, 2]
        grad_power = g * opacity * falloff
        pull = g * falloff
        grad_d = sg.stack([-pull * (a * dx + b * dy), -pull * (c * dy + b * dx)], dim=1)
        mixed = [-0.5 * grad_power * dx * dx, -grad_power * dx * dy, -0.5 * grad_power * dy * dy]
        return grad_d, sg.stack(mixed, dim=1), g * falloff


@right("c 4 4", "n", "n", assume={"u": "(0, 3)", "v": "(0, 3)"})
class BilinearGrid(sg.Function):
    """A 4×4 image read between its pixels."""

    @staticmethod
    def forward(ctx, image, u, v):
        i, j = u.floor().long(), v.floor().long()
        a, b = u - u.floor(), v - v.floor()
        corners = (image[:, i, j], image[:, i, j + 1], image[:, i + 1, j], image[:, i + 1, j + 1])
        ctx.save_for_backward(i, j, a, b, *corners)
        top = (1 - b) * corners[0] + b * corners[1]
        bottom = (1 - b) * corners[2] + b * corners[3]
        return (1 - a) * top + a * bottom

    @staticmethod
    def backward(ctx, g):
        i, j, a, b, p, q, r, s = ctx.saved_tensors
        flat = sg.zeros(g.shape[0], 16, dtype=g.dtype)
        flat = flat.index_add(1, 4 * i + j, g * (1 - a) * (1 - b))
        flat = flat.index_add(1, 4 * i + j + 1, g * (1 - a) * b)
        flat = flat.index_add(1, 4 * i + 4 + j, g * a * (1 - b))
        flat = flat.index_add(1, 4 * i + 5 + j, g * a * b)
        grad_u = (g * ((1 - b) * (r - p) + b * (s - q))).sum(0)
        grad_v = (g * ((1 - a) * (q - p) + a * (s - r))).sum(0)
        return flat.view(-1, 4, 4), grad_u, grad_v


@wrong(BilinearGrid, bug="rows' and columns' weights exchanged in the image's gradient")
class BilinearGridExchanged(BilinearGrid):
    @staticmethod
    def backward(ctx, g):
        i, j, a, b, p, q, r, s = ctx.saved_tensors
        flat = sg.zeros(g.shape[0], 16, dtype=g.dtype)
        flat = flat.index_add(1, 4 * i + j, g * (1 - a) * (1 - b))
        flat = flat.index_add(1, 4 * i + j + 1, g * a * (1 - b))
        flat = flat.index_add(1, 4 * i + 4 + j, g * (1 - a) * b)
        flat = flat.index_add(1, 4 * i + 5 + j, g * a * b)
        grad_u = (g * ((1 - b) * (r - p) + b * (s - q))).sum(0)
        grad_v = (g * ((1 - a) * (q - p) + a * (s - r))).sum(0)
        return flat.view(-1, 4, 4), grad_u, grad_v


@wrong(BilinearGrid, bug="position's gradient along one side of the cell only")
class BilinearGridSide(BilinearGrid):
    @staticmethod
    def backward(ctx, g):
        i, j, a, b, p, q, r, _ = ctx.saved_tensors
        flat = sg.zeros(g.shape[0], 16, dtype=g.dtype)
        flat = flat.index_add(1, 4 * i + j, g * (1 - a) * (1 - b))
        flat = flat.index_add(1, 4 * i + j + 1, g * (1 - a) * b)
        flat = flat.index_add(1, 4 * i + 4 + j, g * a * (1 - b))
        flat = flat.index_add(1, 4 * i + 5 + j, g * a * b)
        return flat.view(-1, 4, 4), (g * (r - p)).sum(0), (g * (q - p)).sum(0)


@right("n 3", "n 3")
class RaySphere(sg.Function):
    """Distance of the closest approach to the unit sphere: |o - (o·d)d| - 1, d of any length."""

    @staticmethod
    def forward(ctx, origin, direction):
        along = (origin * direction).sum(1, keepdim=True)
        rest = origin - along * direction
        distance = (rest.square().sum(1, keepdim=True) + 1e-4).sqrt()
        ctx.save_for_backward(origin, direction, along, rest, distance)
        return distance.squeeze(1) - 1

    @staticmethod
    def backward(ctx, g):
        origin, direction, along, rest, distance = ctx.saved_tensors
        grad_rest = g[:, None] * rest / distance
        grad_along = -(grad_rest * direction).sum(1, keepdim=True)
        grad_origin = grad_rest + grad_along * direction
        return grad_origin, -along * grad_rest + grad_along * origin


@wrong(RaySphere, bug="the rest taken for orthogonal to the direction: d of length one only")
class RaySphereUnit(RaySphere):
    @staticmethod
    def backward(ctx, g):
        _, _, along, rest, distance = ctx.saved_tensors
        grad_rest = g[:, None] * rest / distance
        return grad_rest, -along * grad_rest


@right("n 3", "n 3", "n 3")
class TriangleArea(sg.Function):
    """Half the length of the cross product of two edges."""

    @staticmethod
    def forward(ctx, a, b, c):
        e1, e2 = b - a, c - a
        normal = sg.stack(
            [
                e1[:, 1] * e2[:, 2] - e1[:, 2] * e2[:, 1],
                e1[:, 2] * e2[:, 0] - e1[:, 0] * e2[:, 2],
                e1[:, 0] * e2[:, 1] - e1[:, 1] * e2[:, 0],
            ],
            dim=1,
        )
        length = (normal * normal).sum(1).sqrt()
        ctx.save_for_backward(e1, e2, normal, length)
        return 0.5 * length

    @staticmethod
    def backward(ctx, g):
        e1, e2, normal, length = ctx.saved_tensors
        unit = 0.5 * (g / length)[:, None] * normal
        grad_e1 = sg.cross(e2, unit, dim=1)
        grad_e2 = sg.cross(unit, e1, dim=1)
        return -grad_e1 - grad_e2, grad_e1, grad_e2


@wrong(TriangleArea, bug="first corner's gradient with the wrong sign")
class TriangleCorner(TriangleArea):
    @staticmethod
    def backward(ctx, g):
        e1, e2, normal, length = ctx.saved_tensors
        unit = 0.5 * (g / length)[:, None] * normal
        grad_e1 = sg.cross(e2, unit, dim=1)
        grad_e2 = sg.cross(unit, e1, dim=1)
        return grad_e1 + grad_e2, grad_e1, grad_e2
