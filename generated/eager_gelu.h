/*
 * Gelu, written by symgrad.
 * Backward PROVED, under: 0.7071067811865476 is read as 1/sqrt(2) (off by 7.6e-17);
 *     1.1283791670955126 is read as 2/sqrt(pi) (off by 2.6e-17).
 */
#ifndef SYMGRAD_EAGER_GELU_H
#define SYMGRAD_EAGER_GELU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_gelu_forward_workspace(int64_t n);
int eager_gelu_forward(int64_t n, const float *x, float *output, void *workspace);
int64_t eager_gelu_backward_workspace(int64_t n);
int eager_gelu_backward(int64_t n, const float *x, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
