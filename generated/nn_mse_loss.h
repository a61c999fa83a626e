/*
 * MSELoss, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_NN_MSE_LOSS_H
#define SYMGRAD_NN_MSE_LOSS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_mse_loss_forward_workspace(int64_t s_0, int64_t s_1);
int nn_mse_loss_forward(int64_t s_0, int64_t s_1, const float *x, const float *target, float *output, void *workspace);
int64_t nn_mse_loss_backward_workspace(int64_t s_0, int64_t s_1);
int nn_mse_loss_backward(int64_t s_0, int64_t s_1, const float *x, const float *target, const float *grad_output, float *grad_x, float *grad_target, void *workspace);
int64_t nn_mse_loss_backward_10_workspace(int64_t s_0, int64_t s_1);
int nn_mse_loss_backward_10(int64_t s_0, int64_t s_1, const float *x, const float *target, const float *grad_output, float *grad_x, void *workspace);
int64_t nn_mse_loss_backward_01_workspace(int64_t s_0, int64_t s_1);
int nn_mse_loss_backward_01(int64_t s_0, int64_t s_1, const float *x, const float *target, const float *grad_output, float *grad_target, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
