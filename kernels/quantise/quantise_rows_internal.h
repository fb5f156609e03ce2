/* kernels/quantise/quantise_rows_internal.h -- blocks of values to 8 bits, so that
   compilers vectorise them. A template: quantise.c includes it once for each level of the machine. Gives the bits of
   gpsti_quantise_value; obeys exact_internal.h. */
/* amalgamate: template */
GPSTI_SIMD_PRIVATE void GPSTI_QUANTISE(block)(const float* GPSTI_RESTRICT in, const float* GPSTI_RESTRICT scales,
                                              int8_t* GPSTI_RESTRICT out) {
    int32_t whole[GPSTI_QUANTISE_BLOCK];
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++) { /* the magnitude cut to 128 by its bits, NaN to 0 */
        const uint32_t bits = gpsti_f32_bits(in[k] / scales[k]), magnitude = bits & 0x7fffffffu;
        const uint32_t number = magnitude > 0x7f800000u ? 0 : magnitude;
        const uint32_t cut = number < 0x43000000u ? number : 0x43000000u;
        const float rounded = gpsti_f32_from_bits(cut | (bits & 0x80000000u)) + 12582912.0f;
        whole[k] = (int32_t)(gpsti_f32_bits(rounded) - 0x4b400000u);
    }
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++)
        out[k] = (int8_t)(whole[k] < 127 ? whole[k] : 127);
}

GPSTI_SIMD_PRIVATE void GPSTI_QUANTISE(halves)(const uint16_t* GPSTI_RESTRICT in, const float* scales, int8_t* out) {
    float floats[GPSTI_QUANTISE_BLOCK];
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++)
        floats[k] = gpsti_f32_from_f16(in[k]);
    GPSTI_QUANTISE(block)(floats, scales, out);
}

#undef GPSTI_SIMD_LEVEL
