"""Hand-written kernels that obey ``symgrad.ir.abi``: the runtime's tests stand on them.

In: nothing.  Out: ``Example`` records: signatures and C.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.codegen.wrapper.view import render_wrapper, wrapper_view
from symgrad.ir.abi import (
    ArrayArgument,
    BackwardSignature,
    KernelSignature,
    OpSignature,
    Residual,
)
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, float32, float64, int64
from symgrad.runtime.op import CompiledOp, make_op

n, m, k, v = (Dim.size(name) for name in "nmkv")


@dataclass(frozen=True)
class Example:
    """An op whose C is written by hand."""

    name: str
    signatures: tuple[OpSignature, ...]
    c: str
    header: str
    blas: bool = False

    @property
    def stem(self) -> str:
        return self.name.lower()

    @property
    def texts(self) -> dict[str, str]:
        return {f"{self.stem}.c": self.c, f"{self.stem}.h": self.header}

    def wrapper(self, runtime: str = "symgrad.runtime") -> str:
        view = wrapper_view(
            self.name,
            self.signatures,
            files=(f"{self.stem}.c",),
            header=f"{self.stem}.h",
            blas=self.blas,
            runtime=runtime,
        )
        return render_wrapper(view)

    def op(self) -> CompiledOp:
        return make_op(self.wrapper(), self.texts)


def _header(stem: str, *prototypes: str) -> str:
    guard = f"{stem.upper()}_H"
    body = "".join(f"{one};\n" for one in prototypes)
    return f"#ifndef {guard}\n#define {guard}\n#include <stdint.h>\n{body}#endif\n"


def _softplus() -> Example:
    x, y = ArrayArgument("x", float32, (n, m)), ArrayArgument("y", float32, (n, m))
    gy, gx = ArrayArgument("grad_y", float32, (n, m)), ArrayArgument("grad_x", float32, (n, m))
    forward = KernelSignature("softplus_forward", ("n", "m"), (x,), (y,))
    backward = KernelSignature("softplus_backward", ("n", "m"), (x, gy), (gx,))
    signature = OpSignature(
        "Softplus",
        (x,),
        (y,),
        (True,),
        (Residual(x, "input"),),
        forward,
        forward,
        (BackwardSignature((True,), backward, (0,), (0,)),),
    )
    prototypes = (
        "int softplus_forward(int64_t n, int64_t m, const float *x, float *y, void *workspace)",
        "int64_t softplus_forward_workspace(int64_t n, int64_t m)",
        "int softplus_backward(int64_t n, int64_t m, const float *x, const float *grad_y,"
        " float *grad_x, void *workspace)",
        "int64_t softplus_backward_workspace(int64_t n, int64_t m)",
    )
    c = f"""\
#include <math.h>
#include "softplus.h"

{prototypes[0]}
{{
    (void)workspace;
    #pragma omp parallel for if(n*m > 4096)
    for (int64_t i = 0; i < n*m; i++) y[i] = log1pf(expf(x[i]));
    return 0;
}}

{prototypes[1]} {{ (void)n; (void)m; return 0; }}

{prototypes[2]}
{{
    (void)workspace;
    #pragma omp parallel for if(n*m > 4096)
    for (int64_t i = 0; i < n*m; i++) grad_x[i] = grad_y[i]/(1.0f + expf(-x[i]));
    return 0;
}}

{prototypes[3]} {{ (void)n; (void)m; return 0; }}
"""
    return Example("Softplus", (signature,), c, _header("softplus", *prototypes))


def _matmul() -> Example:
    """The product x w: two inputs, rows strided, a BLAS, a workspace, three backward masks."""
    x = ArrayArgument("x", float64, (n, k), (0,))
    w = ArrayArgument("w", float64, (k, m), (0,))
    y, gy = ArrayArgument("y", float64, (n, m)), ArrayArgument("grad_y", float64, (n, m))
    gx, gw = ArrayArgument("grad_x", float64, (n, k)), ArrayArgument("grad_w", float64, (k, m))
    sizes = ("n", "k", "m")
    forward = KernelSignature("matmul_forward", sizes, (x, w), (y,))
    left = KernelSignature("matmul_backward_10", sizes, (w, gy), (gx,))
    right = KernelSignature("matmul_backward_01", sizes, (x, gy), (gw,))
    both = KernelSignature("matmul_backward_11", sizes, (x, w, gy), (gx, gw))
    signature = OpSignature(
        "Matmul",
        (x, w),
        (y,),
        (True, True),
        (Residual(x, "input", 0), Residual(w, "input", 1)),
        forward,
        forward,
        (
            BackwardSignature((True, True), both, (0, 1), (0,)),
            BackwardSignature((True, False), left, (1,), (0,)),
            BackwardSignature((False, True), right, (0,), (0,)),
        ),
    )
    size = "int64_t n, int64_t k, int64_t m"
    in_x, in_w = "const double *x, int64_t x_s0", "const double *w, int64_t w_s0"
    calls = {
        "matmul_forward": f"{in_x}, {in_w}, double *y",
        "matmul_backward_10": f"{in_w}, const double *grad_y, double *grad_x",
        "matmul_backward_01": f"{in_x}, const double *grad_y, double *grad_w",
        "matmul_backward_11": f"{in_x}, {in_w}, const double *grad_y, double *grad_x,"
        " double *grad_w",
    }
    prototypes = [f"int {name}({size}, {rest}, void *workspace)" for name, rest in calls.items()]
    works = [f"int64_t {name}_workspace({size})" for name in calls]
    product = """\
    if (n && m && !k) for (int64_t i = 0; i < n*m; i++) y[i] = 0;
    double *copy = workspace;
    if (n && m && k) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < k; j++) copy[i*k + j] = x[i*x_s0 + j];
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)m, (int)k, 1.0,
            copy, (int)k, w, (int)w_s0, 0.0, y, (int)m);
    }
"""
    grad_x = """\
    for (int64_t i = 0; i < n*k; i++) grad_x[i] = 0;
    if (n && m && k) cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)k, (int)m,
        1.0, grad_y, (int)m, w, (int)w_s0, 0.0, grad_x, (int)k);
"""
    grad_w = """\
    for (int64_t i = 0; i < k*m; i++) grad_w[i] = 0;
    if (n && m && k) cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)k, (int)m, (int)n,
        1.0, x, (int)x_s0, grad_y, (int)m, 0.0, grad_w, (int)m);
"""
    bodies = [product, grad_x, grad_w, grad_x + grad_w]
    c = '#include "cblas.h"\n#include "matmul.h"\n'
    for prototype, body in zip(prototypes, bodies, strict=True):
        c += f"\n{prototype}\n{{\n    (void)workspace;\n{body}    return 0;\n}}\n"
    c += "\n" + "".join(
        f"{one} {{ (void)m; return {'8*n*k' if 'forward' in one else '0*n*k'}; }}\n"
        for one in works
    )
    return Example("Matmul", (signature,), c, _header("matmul", *prototypes, *works), blas=True)


def _pick() -> Example:
    """y[n], rest[n] = x[n, index[n]], x[n, 0]: an integer input, a status, two outputs.

    The gradient of ``index`` does not exist; ``rest`` is a residual of source "kernel" as well.
    """
    x, index = ArrayArgument("x", float32, (n, v)), ArrayArgument("index", int64, (n,))
    y, first = ArrayArgument("y", float32, (n,)), ArrayArgument("first", float32, (n,))
    kept = ArrayArgument("doubled", int64, (n,))
    gy, gf = ArrayArgument("grad_y", float32, (n,)), ArrayArgument("grad_first", float32, (n,))
    gx = ArrayArgument("grad_x", float32, (n, v))
    statuses = ("index holds a number that is not in 0 ... v - 1",)
    inference = KernelSignature("pick_inference", ("n", "v"), (x, index), (y, first), statuses)
    forward = KernelSignature("pick_forward", ("n", "v"), (x, index), (y, first, kept), statuses)
    backward = KernelSignature("pick_backward", ("n", "v"), (kept, gy, gf), (gx,))
    signature = OpSignature(
        "Pick",
        (x, index),
        (y, first),
        (True, False),
        (Residual(kept, "kernel"),),
        inference,
        forward,
        (BackwardSignature((True, False), backward, (0,), (0, 1)),),
        ("v != 1",),
    )
    size = "int64_t n, int64_t v"
    prototypes = (
        f"int pick_inference({size}, const float *x, const int64_t *index, float *y, float *first,"
        " void *workspace)",
        f"int pick_forward({size}, const float *x, const int64_t *index, float *y, float *first,"
        " int64_t *doubled, void *workspace)",
        f"int pick_backward({size}, const int64_t *doubled, const float *grad_y,"
        " const float *grad_first, float *grad_x, void *workspace)",
        *(
            f"int64_t pick_{name}_workspace({size})"
            for name in ("inference", "forward", "backward")
        ),
    )
    loop = """\
    (void)workspace;
    for (int64_t i = 0; i < n; i++) {{
        if (index[i] < 0 || index[i] >= v) return 1;
        y[i] = x[i*v + index[i]];
        first[i] = x[i*v];{more}
    }}
    return 0;
"""
    scatter = """\
    (void)workspace;
    for (int64_t i = 0; i < n*v; i++) grad_x[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        grad_x[i*v + doubled[i]/2] += grad_y[i];
        grad_x[i*v] += grad_first[i];
    }
    return 0;
"""
    more = "\n        doubled[i] = 2*index[i];"
    bodies = (loop.format(more=""), loop.format(more=more), scatter)
    c = '#include "pick.h"\n'
    for prototype, body in zip(prototypes[:3], bodies, strict=True):
        c += f"\n{prototype}\n{{\n{body}}}\n"
    c += "".join(f"\n{one} {{ (void)n; (void)v; return 0; }}\n" for one in prototypes[3:])
    return Example("Pick", (signature,), c, _header("pick", *prototypes))


def _gated() -> Example:
    """The product x[:, :m]*x[:, m:] for x of 2*m columns, or 3*x[:, 0] where it has one column.

    Sizes called ``in`` and ``out``, one solved from ``2*in``; two cases; a gradient that is zero.
    """
    rows, half = Dim.size("out"), Dim.size("in")
    x, c = ArrayArgument("x", float64, (rows, half * 2)), ArrayArgument("c", float64, ())
    y = ArrayArgument("y", float64, (rows, half))
    gy, gx = ArrayArgument("grad_y", float64, y.shape), ArrayArgument("grad_x", float64, x.shape)
    sizes = ("out", "in")
    forward = KernelSignature("gated_forward", sizes, (x,), (y,))
    backward = KernelSignature("gated_backward", sizes, (x, gy), (gx,))
    two = OpSignature(
        "Gated",
        (x, c),
        (y,),
        (True, True),
        (Residual(x, "input"),),
        forward,
        forward,
        (BackwardSignature((True, True), backward, (0,), (0,), (1,)),),
        ("in != 0",),
    )
    one_x, one_y = (
        ArrayArgument("x", float64, (rows, Dim.of(1))),
        ArrayArgument("y", float64, (rows, Dim.of(1))),
    )
    one_gy, one_gx = (
        ArrayArgument("grad_y", float64, one_y.shape),
        ArrayArgument("grad_x", float64, one_x.shape),
    )
    triple = KernelSignature("gated_one_forward", ("out",), (one_x,), (one_y,))
    triple_back = KernelSignature("gated_one_backward", ("out",), (one_gy,), (one_gx,))
    one = OpSignature(
        "Gated",
        (one_x, c),
        (one_y,),
        (True, True),
        (),
        triple,
        triple,
        (BackwardSignature((True, True), triple_back, (), (0,), (1,)),),
    )
    size = "int64_t rows, int64_t half"
    prototypes = (
        f"int gated_forward({size}, const double *x, double *y, void *workspace)",
        f"int gated_backward({size}, const double *x, const double *grad_y, double *grad_x,"
        " void *workspace)",
        "int gated_one_forward(int64_t rows, const double *x, double *y, void *workspace)",
        "int gated_one_backward(int64_t rows, const double *grad_y, double *grad_x,"
        " void *workspace)",
    )
    bodies = (
        """\
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < half; j++) y[i*half + j] = x[2*i*half + j]*x[(2*i + 1)*half + j];
""",
        """\
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < half; j++) {
            grad_x[2*i*half + j] = grad_y[i*half + j]*x[(2*i + 1)*half + j];
            grad_x[(2*i + 1)*half + j] = grad_y[i*half + j]*x[2*i*half + j];
        }
""",
        "    for (int64_t i = 0; i < rows; i++) y[i] = 3*x[i];\n",
        "    for (int64_t i = 0; i < rows; i++) grad_x[i] = 3*grad_y[i];\n",
    )
    works = (
        f"int64_t gated_forward_workspace({size})",
        f"int64_t gated_backward_workspace({size})",
        "int64_t gated_one_forward_workspace(int64_t rows)",
        "int64_t gated_one_backward_workspace(int64_t rows)",
    )
    text = '#include "gated.h"\n'
    for prototype, body in zip(prototypes, bodies, strict=True):
        text += f"\n{prototype}\n{{\n    (void)workspace;\n{body}    return 0;\n}}\n"
    text += "".join(f"\n{w} {{ return 0*rows{'*half' if 'half' in w else ''}; }}\n" for w in works)
    return Example("Gated", (two, one), text, _header("gated", *prototypes, *works))


def _keep() -> Example:
    """The numbers that ``double`` marks, and its negation: truth values, names from elsewhere."""
    size = Dim.size("λ")
    x, mask = ArrayArgument("in", float32, (size,)), ArrayArgument("double", bool_, (size,))
    y, negated = ArrayArgument("y", float32, (size,)), ArrayArgument("β", bool_, (size,))
    gy, gx = ArrayArgument("grad_y", float32, (size,)), ArrayArgument("grad_in", float32, (size,))
    forward = KernelSignature("keep_forward", ("λ",), (x, mask), (y, negated))
    backward = KernelSignature("keep_backward", ("λ",), (mask, gy), (gx,))
    signature = OpSignature(
        "Keep",
        (x, mask),
        (y, negated),
        (True, False),
        (Residual(mask, "input", 1),),
        forward,
        forward,
        (BackwardSignature((True, False), backward, (0,), (0,)),),
    )
    prototypes = (
        "int keep_forward(int64_t n, const float *x, const uint8_t *mask, float *y,"
        " uint8_t *negated, void *workspace)",
        "int keep_backward(int64_t n, const uint8_t *mask, const float *grad_y, float *grad_x,"
        " void *workspace)",
        "int64_t keep_forward_workspace(int64_t n)",
        "int64_t keep_backward_workspace(int64_t n)",
    )
    bodies = (
        "y[i] = mask[i] ? x[i] : 0.0f, negated[i] = !mask[i];",
        "grad_x[i] = mask[i] ? grad_y[i] : 0.0f;",
    )
    c = '#include "keep.h"\n'
    for prototype, body in zip(prototypes[:2], bodies, strict=True):
        loop = f"    for (int64_t i = 0; i < n; i++) {body}\n"
        c += f"\n{prototype}\n{{\n    (void)workspace;\n{loop}    return 0;\n}}\n"
    c += "".join(f"\n{one} {{ return 0*n; }}\n" for one in prototypes[2:])
    return Example("Keep", (signature,), c, _header("keep", *prototypes))


SOFTPLUS, MATMUL, PICK, GATED = _softplus(), _matmul(), _pick(), _gated()
KEEP = _keep()
ALL = (SOFTPLUS, MATMUL, PICK, GATED, KEEP)
