/*
 * Branches, written by symgrad.
 * Backward PROVED for all real alpha, all integer factor.
 * Each kernel takes the sizes that it needs first, in this order: n, m.
 * alpha is a number (double), rounded to the precision of what it meets; 0.0 by default.
 * factor is an integer (int64_t), rounded to the precision of what it meets; 2 by default.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 * _case0: for x f32[n m], where alpha == 0.
 * _case1: for x f32[n m], where alpha < 0.
 * _case2: for x f32[n m], where alpha > 0.
 */
#ifndef SYMGRAD_BRANCHES_H
#define SYMGRAD_BRANCHES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[n m], factor i64
 * out:  output f32[n m]
 */
int64_t branches_forward_case0_workspace(int64_t n, int64_t m);
int branches_forward_case0(int64_t n, int64_t m, const float *x, int64_t factor, float *output, void *workspace);

/*
 * in:   factor i64, grad_output f32[n m]
 * out:  grad_x f32[n m]
 */
int64_t branches_backward_case0_workspace(int64_t n, int64_t m);
int branches_backward_case0(int64_t n, int64_t m, int64_t factor, const float *grad_output, float *grad_x, void *workspace);

/*
 * in:   x f32[n m], alpha f64, factor i64
 * out:  output f32[n m]
 */
int64_t branches_forward_case1_workspace(int64_t n, int64_t m);
int branches_forward_case1(int64_t n, int64_t m, const float *x, double alpha, int64_t factor, float *output, void *workspace);

/*
 * in:   x f32[n m], alpha f64, factor i64, grad_output f32[n m]
 * out:  grad_x f32[n m]
 */
int64_t branches_backward_case1_workspace(int64_t n, int64_t m);
int branches_backward_case1(int64_t n, int64_t m, const float *x, double alpha, int64_t factor, const float *grad_output, float *grad_x, void *workspace);

/*
 * in:   x f32[n m], alpha f64, factor i64
 * out:  output f32[n m]
 */
int64_t branches_forward_case2_workspace(int64_t n, int64_t m);
int branches_forward_case2(int64_t n, int64_t m, const float *x, double alpha, int64_t factor, float *output, void *workspace);

/*
 * in:   alpha f64, factor i64, grad_output f32[n m]
 * out:  grad_x f32[n m]
 */
int64_t branches_backward_case2_workspace(int64_t n, int64_t m);
int branches_backward_case2(int64_t n, int64_t m, double alpha, int64_t factor, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
