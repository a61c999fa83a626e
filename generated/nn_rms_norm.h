/*
 * RMSNorm, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_NN_RMS_NORM_H
#define SYMGRAD_NN_RMS_NORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_rms_norm_forward_workspace(int64_t n, int64_t m);
int nn_rms_norm_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, float *y, void *workspace);
int64_t nn_rms_norm_backward_workspace(int64_t n, int64_t m);
int nn_rms_norm_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_weight, void *workspace);
int64_t nn_rms_norm_backward_10_workspace(int64_t n, int64_t m);
int nn_rms_norm_backward_10(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, void *workspace);
int64_t nn_rms_norm_backward_01_workspace(int64_t n, int64_t m);
int nn_rms_norm_backward_01(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *grad_y, int64_t grad_y_s0, float *grad_weight, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
