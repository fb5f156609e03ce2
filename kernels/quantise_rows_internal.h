/* kernels/quantise_rows_internal.h -- blocks of values to 8 bits, so that
   compilers vectorise them. A template: quantise.c includes it once for each level of the machine. Gives the bits of
   gpsti_quantise_value; obeys exact_internal.h. */
/* amalgamate: template */
/* Set by the includer, unset at the end:
   GPSTI_QUANTISE(name)    the function's name at this level
   GPSTI_QUANTISE_TARGET   attribute of every function of this level */
GPSTI_PRIVATE GPSTI_QUANTISE_TARGET void GPSTI_QUANTISE(widen)(const uint16_t* GPSTI_RESTRICT in,
                                                               float* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++)
        out[k] = gpsti_f32_from_f16(in[k]);
}

GPSTI_PRIVATE GPSTI_QUANTISE_TARGET void GPSTI_QUANTISE(block)(const float* GPSTI_RESTRICT in,
                                                               const float* GPSTI_RESTRICT scales,
                                                               int8_t* GPSTI_RESTRICT out) {
    int32_t whole[GPSTI_QUANTISE_BLOCK];
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++) {
        const float ratio = in[k] / scales[k], number = ratio == ratio ? ratio : 0.0f;
        const float high = number < 127.0f ? number : 127.0f, clamped = high > -128.0f ? high : -128.0f;
        whole[k] = (int32_t)gpsti_f32_bits(clamped + 12582912.0f);
    }
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++)
        out[k] = (int8_t)whole[k];
}

#undef GPSTI_QUANTISE
#undef GPSTI_QUANTISE_TARGET
