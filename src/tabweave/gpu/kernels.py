"""CUDA kernels: pair counts, the exact scan for nearest rows, and the steps of k-modes.

Sizes are constants when a kernel is compiled (``-D``), so that loops over columns unroll and the
state of a query stays in registers. :mod:`tabweave.gpu.arrays` lays out what they read, and decides
what is launched; each kernel has a twin in NumPy in the tests.
"""

from __future__ import annotations

JOIN = r"""
// Sets joint codes of COLUMNS columns, 16 rows a thread: ((c0 * n1 + c1) * n2 + c2) ...
extern "C" __global__ void join(
    const unsigned char* const* __restrict__ columns, const int* __restrict__ sizes,
    long long n_rows, unsigned char* __restrict__ joint)
{
    const long long w = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (16 * w + 16 <= n_rows) {
        unsigned int out[4] = {0, 0, 0, 0};
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const uint4 x = ((const uint4*)columns[c])[w];
            // Four bytes at once: no joint code is beyond a byte, so that none carries over.
            out[0] = out[0] * sizes[c] + x.x;
            out[1] = out[1] * sizes[c] + x.y;
            out[2] = out[2] * sizes[c] + x.z;
            out[3] = out[3] * sizes[c] + x.w;
        }
        ((uint4*)joint)[w] = make_uint4(out[0], out[1], out[2], out[3]);
    } else
        for (long long r = 16 * w; r < n_rows; ++r) {
            int code = 0;
            for (int c = 0; c < COLUMNS; ++c) code = code * sizes[c] + columns[c][r];
            joint[r] = (unsigned char)code;
        }
}
"""

PAIRS = r"""
// Histograms of pairs of groups of columns. A block reads 16 joint codes a thread of one group and
// of up to SIDES others, and counts each pair in shared memory; at the end blocks add their sums.
// Increments by one of the same address are merged within a warp, so skewed codes cost no more.
extern "C" __global__ void __launch_bounds__(THREADS) count_pairs(
    const unsigned char* __restrict__ codes, long long stride, long long n_rows,
    const int* __restrict__ jobs,  // for each blockIdx.y: left, then SIDES others or -1
    const int* __restrict__ joint, const long long* __restrict__ starts,
    unsigned long long* __restrict__ totals)
{
    extern __shared__ unsigned int histogram[];
    const int* job = jobs + blockIdx.y * (1 + SIDES);
    const int left = job[0];
    const int n_left = joint[left];
    int size[SIDES], first[SIDES + 1];
    first[0] = 0;
    #pragma unroll
    for (int s = 0; s < SIDES; ++s) {
        size[s] = job[1 + s] < 0 ? 0 : joint[job[1 + s]];
        first[s + 1] = first[s] + n_left * size[s];
    }
    for (int i = threadIdx.x; i < first[SIDES]; i += THREADS) histogram[i] = 0;
    __syncthreads();

    const uint4* a = (const uint4*)(codes + (long long)left * stride);
    const long long n_words = n_rows / 16;
    for (long long w = blockIdx.x * (long long)THREADS + threadIdx.x; w < n_words;
         w += (long long)gridDim.x * THREADS) {
        const uint4 x = a[w];
        const unsigned int xs[4] = {x.x, x.y, x.z, x.w};
        #pragma unroll
        for (int s = 0; s < SIDES; ++s) {
            if (size[s] == 0) continue;
            const uint4 y = ((const uint4*)(codes + (long long)job[1 + s] * stride))[w];
            const unsigned int ys[4] = {y.x, y.y, y.z, y.w};
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                #pragma unroll
                for (int b = 0; b < 32; b += 8)
                    atomicAdd(&histogram[first[s] + ((xs[i] >> b) & 255u) * size[s]
                                         + ((ys[i] >> b) & 255u)], 1u);
        }
    }
    if (blockIdx.x == 0) {
        for (long long r = n_words * 16 + threadIdx.x; r < n_rows; r += THREADS)
            for (int s = 0; s < SIDES; ++s)
                if (size[s])
                    atomicAdd(&histogram[first[s] + codes[(long long)left * stride + r] * size[s]
                                         + codes[(long long)job[1 + s] * stride + r]], 1u);
    }
    __syncthreads();
    for (int s = 0; s < SIDES; ++s)
        for (int i = threadIdx.x; i < n_left * size[s]; i += THREADS) {
            const unsigned int n = histogram[first[s] + i];
            if (n) atomicAdd(&totals[starts[blockIdx.y * SIDES + s] + i], (unsigned long long)n);
        }
}
"""

SCAN = r"""
// Collects, for each query, the nodes whose distance in float32 is at most the query's limit.
// A lane holds PER_LANE queries. Distances to joint values lie in shared memory as [value][query],
// so that all lanes read different banks; what does not fit there is read from global memory, a
// line for all lanes. With PRODUCTS, coordinates add x * y, not (x - y)^2. Nodes come in tiles:
// while one is compared, the next is on its way. A node's codes and coordinates are the same for
// all lanes.
#define WORDS (GROUPS_PADDED / 8 + COORDINATES / 4)  // of 16 bytes, of a node
#define WARPS (THREADS / 32)

__device__ __forceinline__ void copy_word(uint4* to, const uint4* from) {
#if __CUDA_ARCH__ >= 800
    const unsigned int address = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(address), "l"(from));
#else
    *to = *from;
#endif
}

__device__ __forceinline__ void copy_tile(
    uint4* tile, const uint4* codes, const uint4* line, long long begin, long long n_nodes,
    long long step)
{
    for (int i = threadIdx.x; i < TILE * WORDS; i += THREADS) {
        const long long number = begin + i / WORDS;
        const int word = i % WORDS;
        if (number >= n_nodes) break;
        const long long node = number * step;
        copy_word(tile + i, word < GROUPS_PADDED / 8
            ? codes + node * (GROUPS_PADDED / 8) + word
            : line + node * (COORDINATES / 4) + word - GROUPS_PADDED / 8);
    }
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) scan(
    const float* __restrict__ tables, const float* __restrict__ points,
    const float* __restrict__ limits, long long n_queries,
    const uint4* __restrict__ codes, const uint4* __restrict__ line,
    const long long* __restrict__ names, long long n_nodes, long long step,
    const int* __restrict__ first_entry,
    int* __restrict__ found, unsigned int* __restrict__ n_found)
{
    extern __shared__ uint4 shared[];
    float* lookup = (float*)(shared + 2 * TILE * WORDS);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long query = (long long)blockIdx.x * (32 * PER_LANE) + lane;
    for (int i = threadIdx.x; i < SHARED_ENTRIES * 32 * PER_LANE; i += THREADS)
        lookup[i] = tables[(long long)(i / (32 * PER_LANE)) * n_queries
                           + (long long)blockIdx.x * (32 * PER_LANE) + i % (32 * PER_LANE)];
    float x[PER_LANE][COORDINATES + 1], limit[PER_LANE];
    int entry_of[GROUPS + 1];
    #pragma unroll
    for (int g = 0; g < GROUPS; ++g) entry_of[g] = first_entry[g] * (32 * PER_LANE) + lane;
    #pragma unroll
    for (int r = 0; r < PER_LANE; ++r) {
        limit[r] = limits[query + 32 * r];
        #pragma unroll
        for (int c = 0; c < COORDINATES; ++c)
            x[r][c] = points[(long long)c * n_queries + query + 32 * r];
    }

    const long long first = (long long)blockIdx.y * TILE, stride = (long long)gridDim.y * TILE;
    int turn = 0;
    copy_tile(shared, codes, line, first, n_nodes, step);
    for (long long begin = first; begin < n_nodes; begin += stride, turn ^= 1) {
        copy_tile(shared + (1 - turn) * TILE * WORDS, codes, line, begin + stride, n_nodes, step);
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group 1;");
#endif
        __syncthreads();
        const int size = n_nodes - begin < TILE ? (int)(n_nodes - begin) : TILE;
        for (int i = warp; i < size; i += WARPS) {
            const uint4* words = shared + (turn * TILE + i) * WORDS;
            float total[PER_LANE];
            #pragma unroll
            for (int r = 0; r < PER_LANE; ++r) total[r] = 0.0f;
            #pragma unroll
            for (int w = 0; w < GROUPS_PADDED / 8; ++w) {
                const uint4 word = words[w];
                const unsigned int halves[4] = {word.x, word.y, word.z, word.w};
                #pragma unroll
                for (int b = 0; b < 8; ++b) {
                    const int g = 8 * w + b;
                    if (g < GROUPS) {
                        const unsigned int half = halves[b / 2];
                        const unsigned int code = b % 2 ? half >> 16 : half & 65535u;
                        const int entry = entry_of[g] + (int)code * (32 * PER_LANE);
                        #pragma unroll
                        for (int r = 0; r < PER_LANE; ++r)
                            total[r] += g < SHARED_GROUPS
                                ? lookup[entry + 32 * r]
                                : tables[(first_entry[g] + (long long)code) * n_queries
                                         + query + 32 * r];
                    }
                }
            }
            #pragma unroll
            for (int c = 0; c < COORDINATES / 4; ++c) {
                const uint4 word = words[GROUPS_PADDED / 8 + c];
                const float y0 = __uint_as_float(word.x), y1 = __uint_as_float(word.y);
                const float y2 = __uint_as_float(word.z), y3 = __uint_as_float(word.w);
                #pragma unroll
                for (int r = 0; r < PER_LANE; ++r) {
                    if (PRODUCTS) {
                        total[r] = fmaf(x[r][4 * c], y0, total[r]);
                        total[r] = fmaf(x[r][4 * c + 1], y1, total[r]);
                        total[r] = fmaf(x[r][4 * c + 2], y2, total[r]);
                        total[r] = fmaf(x[r][4 * c + 3], y3, total[r]);
                        continue;
                    }
                    const float a = x[r][4 * c] - y0, b = x[r][4 * c + 1] - y1;
                    const float d = x[r][4 * c + 2] - y2, e = x[r][4 * c + 3] - y3;
                    if (POWER == 1) {
                        total[r] += fabsf(a) + fabsf(b) + (fabsf(d) + fabsf(e));
                    } else {
                        total[r] = fmaf(a, a, total[r]);
                        total[r] = fmaf(b, b, total[r]);
                        total[r] = fmaf(d, d, total[r]);
                        total[r] = fmaf(e, e, total[r]);
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < PER_LANE; ++r)
                if (total[r] <= limit[r]) {
                    const long long node = (begin + i) * step;
                    if (names != nullptr && names[node] < 0) continue;
                    const unsigned int slot = atomicAdd(&n_found[query + 32 * r], 1u);
                    if (slot < CAPACITY) found[(query + 32 * r) * CAPACITY + slot] = (int)node;
                }
        }
        __syncthreads();
    }
}
"""

RANK = r"""
// Ranks what was collected for a query, a block each: distances in float64, added in the order in
// which the CPU adds them, without fused products, so that they are the CPU's to the last bit.
extern "C" __global__ void __launch_bounds__(THREADS) rank(
    const double* __restrict__ values, const double* __restrict__ points, long long n_queries,
    const CODE* __restrict__ codes, const double* __restrict__ line, long long n_nodes,
    const int* __restrict__ groups,   // GROUPS x DEPTH columns, -1 where there are none
    const int* __restrict__ offsets, const int* __restrict__ widths,
    const long long* __restrict__ names,
    const int* __restrict__ found, const unsigned int* __restrict__ n_found, int k,
    double* __restrict__ distances, long long* __restrict__ rows)
{
    extern __shared__ double keys[];                       // CAPACITY distances, then names
    long long* named = (long long*)(keys + CAPACITY);
    const long long query = blockIdx.x;
    const unsigned int all = n_found[query];
    const int n = all < CAPACITY ? (int)all : CAPACITY;
    int size = 1;
    while (size < n) size *= 2;
    for (int i = threadIdx.x; i < size; i += THREADS) {
        double total = 1.0 / 0.0;
        long long name = NO_ROW;
        if (i < n) {
            const long long node = found[query * CAPACITY + i];
            total = 0.0;
            for (int g = 0; g < GROUPS; ++g) {
                unsigned long long code = codes[g * n_nodes + node], below = 1;
                for (int c = 0; c < DEPTH && groups[g * DEPTH + c] >= 0; ++c)
                    below *= widths[groups[g * DEPTH + c]];
                double sum = 0.0;
                for (int c = 0; c < DEPTH && groups[g * DEPTH + c] >= 0; ++c) {
                    const int a = groups[g * DEPTH + c];
                    below /= widths[a];
                    const unsigned long long value = code / below;
                    code -= value * below;
                    const long long entry = offsets[a] + (long long)value;
                    sum = __dadd_rn(sum, values[entry * n_queries + query]);
                }
                total = __dadd_rn(total, sum);
            }
            for (int c = 0; c < COORDINATES; ++c) {
                const double d = __dsub_rn(points[(long long)c * n_queries + query],
                                           line[node * COORDINATES + c]);
                total = __dadd_rn(total, POWER == 1 ? fabs(d) : __dmul_rn(d, d));
            }
            if (ROOT) total = __dsqrt_rn(total > 0.0 ? total : 0.0);
            name = names == nullptr ? node : names[node];
        }
        keys[i] = total;
        named[i] = name;
    }
    for (int length = 2; length <= size; length *= 2)
        for (int step = length / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size; i += THREADS) {
                const int j = i ^ step;
                if (j <= i) continue;
                const bool after = keys[i] > keys[j] || (keys[i] == keys[j] && named[i] > named[j]);
                if (after == ((i & length) == 0)) {
                    const double key = keys[i]; keys[i] = keys[j]; keys[j] = key;
                    const long long name = named[i]; named[i] = named[j]; named[j] = name;
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += THREADS) {
        distances[query * k + i] = i < size ? keys[i] : 1.0 / 0.0;
        rows[query * k + i] = i < size ? named[i] : NO_ROW;
    }
}
"""

ASSIGN = r"""
// Sets each row's nearest centre (the first of equals) and the distance to it, a row a thread.
// Distances add up in float64 column by column, as the CPU adds them. What values pay under each
// centre lies in shared memory if it fits. A block sums up its weighted distances in row order.
#define WIDTH (CENTERS < 16 ? CENTERS : 16)  // centres that a thread looks at in one go

extern "C" __global__ void __launch_bounds__(THREADS) assign(
    const int* __restrict__ indices, long long n_rows,  // COLUMNS x rows
    const double* __restrict__ reach, int n_values,     // values x CENTERS
    const double* __restrict__ weight,
    int* __restrict__ labels, double* __restrict__ distances, double* __restrict__ costs)
{
    extern __shared__ double shared[];
    double* parts = shared;
    const double* pays = reach;
    if (IN_SHARED) {
        for (int i = threadIdx.x; i < n_values * CENTERS; i += THREADS)
            shared[THREADS + i] = reach[i];
        pays = shared + THREADS;
        __syncthreads();
    }
    const long long row = blockIdx.x * (long long)THREADS + threadIdx.x;
    parts[threadIdx.x] = 0.0;
    if (row < n_rows) {
        double best = 1.0 / 0.0;
        int label = 0;
        for (int first = 0; first < CENTERS; first += WIDTH) {
            double total[WIDTH];
            for (int a = 0; a < COLUMNS; ++a) {
                const double* line =
                    pays + (long long)indices[a * n_rows + row] * CENTERS + first;
                #pragma unroll
                for (int c = 0; c < WIDTH; ++c)
                    if (first + c < CENTERS)
                        total[c] = a == 0 ? line[c] : __dadd_rn(total[c], line[c]);
            }
            #pragma unroll
            for (int c = 0; c < WIDTH; ++c)
                if (first + c < CENTERS && total[c] < best) {
                    best = total[c];
                    label = first + c;
                }
        }
        labels[row] = label;
        distances[row] = best;
        parts[threadIdx.x] = __dmul_rn(weight[row], best);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double cost = 0.0;
        for (int i = 0; i < THREADS; ++i) cost = __dadd_rn(cost, parts[i]);
        costs[blockIdx.x] = cost;
    }
}
"""

MEMBERS = r"""
// Adds the weight of each row to the histogram of its cluster, for each of its values. Weights are
// whole numbers, so that any order of adding gives the same sums.
extern "C" __global__ void __launch_bounds__(THREADS) count_members(
    const int* __restrict__ indices, long long n_rows, const double* __restrict__ weight,
    const int* __restrict__ labels, int n_values, int n_clusters, double* __restrict__ totals)
{
    extern __shared__ double histogram[];
    double* sums = IN_SHARED ? histogram : totals;
    const int n_cells = n_values * n_clusters;
    if (IN_SHARED) {
        for (int i = threadIdx.x; i < n_cells; i += THREADS) histogram[i] = 0.0;
        __syncthreads();
    }
    for (long long row = blockIdx.x * (long long)THREADS + threadIdx.x; row < n_rows;
         row += (long long)gridDim.x * THREADS) {
        double* cluster = sums + (long long)labels[row] * n_values;
        for (int a = 0; a < COLUMNS; ++a)
            atomicAdd(&cluster[indices[a * n_rows + row]], weight[row]);
    }
    if (!IN_SHARED) return;
    __syncthreads();
    for (int i = threadIdx.x; i < n_cells; i += THREADS)
        if (histogram[i] != 0.0) atomicAdd(&totals[i], histogram[i]);
}
"""
