/*
 * Silu, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_EAGER_SILU_H
#define SYMGRAD_EAGER_SILU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_silu_forward_workspace(int64_t n);
int eager_silu_forward(int64_t n, const float *x, float *output, void *workspace);
int64_t eager_silu_backward_workspace(int64_t n);
int eager_silu_backward(int64_t n, const float *x, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
