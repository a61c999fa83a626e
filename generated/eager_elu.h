/*
 * Elu, written by symgrad.
 * Backward PROVED, under: x == 0 (yours gives 1 there).
 */
#ifndef SYMGRAD_EAGER_ELU_H
#define SYMGRAD_EAGER_ELU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_elu_forward_workspace(int64_t n);
int eager_elu_forward(int64_t n, const float *x, float *output, void *workspace);
int64_t eager_elu_backward_workspace(int64_t n);
int eager_elu_backward(int64_t n, const float *x, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
