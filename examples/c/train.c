/*
 * Trains a classifier of points in the plane with the kernels of a package: there is no Python here.
 *
 *     symgrad build examples/ops.py -o build/kit --package kit
 *     cmake -S build/kit -B build/kit/made && cmake --build build/kit/made
 *     cmake --install build/kit/made --prefix build/kit/there
 *     export PKG_CONFIG_PATH=build/kit/there/lib/pkgconfig LD_LIBRARY_PATH=build/kit/there/lib
 *     cc -std=c11 examples/c/train.c $(pkg-config --cflags --libs kit) -lm -o build/train
 *     build/train
 *
 * Where CMake finds no BLAS, build/kit/README.md says how it is told of one.
 *
 * Three spiral arms, one hidden layer: logits = tanh(x W1' + b1) W2' + b2.
 */
#include <kit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 300, INPUTS = 2, HIDDEN = 32, CLASSES = 3, STEPS = 1000 };
static const float RATE = 0.5f;

typedef struct {
    float w1[HIDDEN * INPUTS], b1[HIDDEN], w2[CLASSES * HIDDEN], b2[CLASSES];
} Net;

typedef struct {
    float hidden[POINTS * HIDDEN], active[POINTS * HIDDEN], logits[POINTS * CLASSES];
    float log_probabilities[POINTS * CLASSES], x[POINTS * INPUTS];
} Values;

static float x[POINTS * INPUTS];
static int64_t labels[POINTS];
static Net net, gradient;
static Values values, slopes;

/* Uniform between -1 and 1, the same on every machine. */
static float noise(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static void draw_points(void)
{
    for (int i = 0; i < POINTS; i++) {
        const int arm = i % CLASSES;
        const float radius = (float)(i / CLASSES + 1) / (POINTS / CLASSES);
        const float angle = 2.1f * (float)arm + 4.0f * radius + 0.2f * noise();
        x[INPUTS * i] = radius * cosf(angle);
        x[INPUTS * i + 1] = radius * sinf(angle);
        labels[i] = arm;
    }
}

static void check(int status, const char *kernel)
{
    if (status == KIT_OK)
        return;
    fprintf(stderr, "%s: %s\n", kernel,
        status == KIT_OUT_OF_RANGE ? "a label is out of range" : "a matrix is too large");
    exit(EXIT_FAILURE);
}

/* The most that any kernel asks for: they run one after the other, and share it. */
static size_t workspace_size(void)
{
    const int64_t needs[] = {
        KIT_ALIGNMENT,
        linear_forward_workspace(POINTS, INPUTS, HIDDEN),
        linear_forward_workspace(POINTS, HIDDEN, CLASSES),
        linear_backward_workspace(POINTS, INPUTS, HIDDEN),
        linear_backward_workspace(POINTS, HIDDEN, CLASSES),
        tanh_forward_workspace(POINTS, HIDDEN),
        tanh_backward_workspace(POINTS, HIDDEN),
        softmax_cross_entropy_forward_workspace(POINTS, CLASSES),
        softmax_cross_entropy_backward_workspace(POINTS, CLASSES),
    };
    int64_t most = 0;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        most = needs[i] > most ? needs[i] : most;
    return (size_t)most;
}

static float forward(void *space)
{
    float loss = 0.0f;
    check(linear_forward(POINTS, INPUTS, HIDDEN, x, net.w1, net.b1, values.hidden, space), "linear");
    check(tanh_forward(POINTS, HIDDEN, values.hidden, values.active, space), "tanh");
    check(linear_forward(POINTS, HIDDEN, CLASSES, values.active, net.w2, net.b2, values.logits,
        space), "linear");
    check(softmax_cross_entropy_forward(POINTS, CLASSES, values.logits, CLASSES, labels, &loss,
        values.log_probabilities, space), "loss");
    return loss;
}

static void backward(void *space)
{
    const float one = 1.0f;
    check(softmax_cross_entropy_backward(POINTS, CLASSES, labels, values.log_probabilities,
        CLASSES, &one, slopes.logits, space), "loss");
    check(linear_backward(POINTS, HIDDEN, CLASSES, values.active, net.w2, slopes.logits,
        slopes.active, gradient.w2, gradient.b2, space), "linear");
    check(tanh_backward(POINTS, HIDDEN, values.active, slopes.active, slopes.hidden, space),
        "tanh");
    check(linear_backward(POINTS, INPUTS, HIDDEN, x, net.w1, slopes.hidden, slopes.x, gradient.w1,
        gradient.b1, space), "linear");
}

static void descend(float *parameters, const float *slope, int count)
{
    for (int i = 0; i < count; i++)
        parameters[i] -= RATE * slope[i];
}

static int right(void)
{
    int found = 0;
    for (int i = 0; i < POINTS; i++) {
        const float *row = values.logits + CLASSES * i;
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            best = row[c] > row[best] ? c : best;
        found += best == labels[i];
    }
    return found;
}

int main(void)
{
    void *space = aligned_alloc(KIT_ALIGNMENT, workspace_size());
    if (space == NULL)
        return EXIT_FAILURE;
    draw_points();
    for (int i = 0; i < HIDDEN * INPUTS; i++)
        net.w1[i] = noise();
    for (int i = 0; i < CLASSES * HIDDEN; i++)
        net.w2[i] = 0.3f * noise();
    for (int step = 0; step <= STEPS; step++) {
        const float loss = forward(space);
        if (step % 200 == 0)
            printf("step %4d  loss %.3f  right %d of %d\n", step, (double)loss, right(), POINTS);
        backward(space);
        descend(net.w1, gradient.w1, HIDDEN * INPUTS);
        descend(net.b1, gradient.b1, HIDDEN);
        descend(net.w2, gradient.w2, CLASSES * HIDDEN);
        descend(net.b2, gradient.b2, CLASSES);
    }
    const int found = right();
    free(space);
    return found >= POINTS * 95 / 100 ? EXIT_SUCCESS : EXIT_FAILURE;
}
