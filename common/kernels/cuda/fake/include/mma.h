#error \
    "wmma is not here: a product of tiles is a loop of a * b + c, or of __fmaf_rn."
