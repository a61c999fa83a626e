"""The C that copies an array from one layout to another, in tiles.

In: nothing.  Out: its text, and its declaration for cffi.
"""

from __future__ import annotations

COPY = """
#include <string.h>

#define SYMGRAD_TILE 16 /* elements */

/* A tile: along i to is written, along j from is read, each close together.  A whole one whose
   elements lie side by side goes through registers. */
#define SYMGRAD_COPY_TILE(T) do { \\
    T in[SYMGRAD_TILE][SYMGRAD_TILE], out[SYMGRAD_TILE][SYMGRAD_TILE]; \\
    if (rows == SYMGRAD_TILE && columns == SYMGRAD_TILE \\
        && from_j == (int64_t)sizeof(T) && to_i == (int64_t)sizeof(T)) { \\
        for (int64_t i = 0; i < SYMGRAD_TILE; i++) memcpy(in[i], from + i*from_i, sizeof in[i]); \\
        for (int64_t j = 0; j < SYMGRAD_TILE; j++) \\
            for (int64_t i = 0; i < SYMGRAD_TILE; i++) out[j][i] = in[i][j]; \\
        for (int64_t j = 0; j < SYMGRAD_TILE; j++) memcpy(to + j*to_j, out[j], sizeof out[j]); \\
        break; \\
    } \\
    for (int64_t i = 0; i < rows; i++) \\
        for (int64_t j = 0; j < columns; j++) \\
            memcpy(&in[i][j], from + i*from_i + j*from_j, sizeof(T)); \\
    for (int64_t j = 0; j < columns; j++) \\
        for (int64_t i = 0; i < rows; i++) \\
            memcpy(to + i*to_i + j*to_j, &in[i][j], sizeof(T)); \\
} while (0)

static void symgrad_copy_tile(
    char *to, const char *from, int64_t rows, int64_t columns, int64_t to_i, int64_t to_j,
    int64_t from_i, int64_t from_j, int64_t size)
{
    switch (size) {
    case 1: SYMGRAD_COPY_TILE(uint8_t); break;
    case 2: SYMGRAD_COPY_TILE(uint16_t); break;
    case 4: SYMGRAD_COPY_TILE(uint32_t); break;
    default: SYMGRAD_COPY_TILE(uint64_t); break;
    }
}

/* The axis along which elements are closest, of those with several. */
static int64_t symgrad_closest(int64_t rank, const int64_t *extents, const int64_t *steps)
{
    int64_t found = rank - 1;
    for (int64_t axis = rank; axis-- > 0;) {
        const int64_t step = steps[axis] < 0 ? -steps[axis] : steps[axis];
        const int64_t least = steps[found] < 0 ? -steps[found] : steps[found];
        if (extents[axis] > 1 && (extents[found] == 1 || step < least)) found = axis;
    }
    return found;
}

/* Copy elements of 1, 2, 4 or 8 bytes from one layout to another; steps are in bytes. */
static void symgrad_copy(
    char *to, const char *from, int64_t rank, const int64_t *extents, const int64_t *to_steps,
    const int64_t *from_steps, int64_t size)
{
    const int64_t a = symgrad_closest(rank, extents, from_steps);
    int64_t b = symgrad_closest(rank, extents, to_steps), outer = 1;
    if (a == b) b = a ? a - 1 : a + 1;
    for (int64_t axis = 0; axis < rank; axis++)
        if (axis != a && axis != b) outer *= extents[axis];
    const int64_t across = (extents[a] + SYMGRAD_TILE - 1)/SYMGRAD_TILE, tiles = outer*across;
    #pragma omp parallel for schedule(static) num_threads(symgrad_max_threads()) \\
        if(outer*extents[a]*extents[b] > 1 << 16)
    for (int64_t one = 0; one < tiles; one++) {
        int64_t place = one/across;
        const int64_t j = one%across*SYMGRAD_TILE;
        char *at = to + j*to_steps[a];
        const char *of = from + j*from_steps[a];
        for (int64_t axis = rank; axis-- > 0;) {
            if (axis == a || axis == b) continue;
            at += place%extents[axis]*to_steps[axis];
            of += place%extents[axis]*from_steps[axis];
            place /= extents[axis];
        }
        const int64_t columns = extents[a] - j < SYMGRAD_TILE ? extents[a] - j : SYMGRAD_TILE;
        for (int64_t i = 0; i < extents[b]; i += SYMGRAD_TILE) {
            const int64_t rows = extents[b] - i < SYMGRAD_TILE ? extents[b] - i : SYMGRAD_TILE;
            symgrad_copy_tile(at + i*to_steps[b], of + i*from_steps[b], rows, columns,
                to_steps[b], to_steps[a], from_steps[b], from_steps[a], size);
        }
    }
}
"""

COPY_PROTOTYPE = (
    "void symgrad_copy(char *to, const char *from, int64_t rank, const int64_t *extents,"
    " const int64_t *to_steps, const int64_t *from_steps, int64_t size)"
)
