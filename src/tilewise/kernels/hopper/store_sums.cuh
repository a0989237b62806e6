// store_sums: how sums that stay unrounded leave `tensor_cores`, where rows of P start and end on 16 bytes.
//
// Layout: boxes of 64 rows x 32 columns, 128 bytes a row, swizzled as the copy engine wants them.
// Buffers: a consumer has BOXES of them: while the copy engine reads one, the next one is written. It adds what it takes
//   to what P holds (ACCUMULATE), so nobody waits for P, and the next tile is multiplied meanwhile.

// The copy engine takes sums as they are, 32 columns at a time: while a box is read, the next one is written.
static __device__ __forceinline__ void store_sums(
    const float (&sums)[SUMS], char* boxes, const TensorMap* map_p, int group, int top, int left)
{
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    bool leader = threadIdx.x % 128 == 0;
    #pragma unroll
    for (int part = 0; part < BLOCK_N / 32; ++part) {
        char* box = boxes + part % BOXES * BOX_BYTES;
        if (leader) store_read_before<BOXES - 1>();
        meet(1 + group, 128);
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float* four = sums + 16 * part + 4 * j;
            char* at = box + row * ROW_BYTES + ((2 * j + lane % 4 / 2) ^ row % 8) * 16 + lane % 2 * 8;
            *reinterpret_cast<float2*>(at) = make_float2(four[0], four[1]);
            *reinterpret_cast<float2*>(at + 8 * ROW_BYTES) = make_float2(four[2], four[3]);
        }
        publish_shared();
        meet(1 + group, 128);
        if (leader) {
            if (ACCUMULATE)
                add_box(map_p, box, left + part * 32, top);
            else
                store_box(map_p, box, left + part * 32, top);
            store_commit();
        }
    }
}
