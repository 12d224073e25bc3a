"""How .cu files are compiled for the CPU, and for the check of kernels."""

EMULATION_COPTS = [
    "-xc++",  # .cu
    "-fno-strict-aliasing",  # vectors of elements, as in CUDA
    "-Wno-unknown-pragmas",  # unroll

    # A thread loads the elements that it has, and stores the results of these alone.
    "-Wno-maybe-uninitialized",
]

# Calls around every load and store, from which check_hooks.cc makes findings: each
# access as it is in the source, with its line.
CHECK_COPTS = [
    "-fsanitize=thread,bounds,alignment",
    "-O1",
    "-g",
    "-fno-tree-vectorize",
]

# For kernels that every build contains: they are not checked with a sanitizer.
CHECK_COPTS_UNLESS_SANITIZED = select({
    "//:sanitized": [],
    "//conditions:default": CHECK_COPTS,
})

CHECK_HOOKS_UNLESS_SANITIZED = select({
    "//:sanitized": [],
    "//conditions:default": ["//common/kernels/cuda:check_hooks"],
})

# The sanitizers' own libraries have functions with the same names.
CHECKABLE = select({
    "//:sanitized": ["@platforms//:incompatible"],
    "//conditions:default": [],
})
