"""How .cu files are compiled for the CPU, and for the check of kernels."""

EMULATION_COPTS = [
    "-xc++",  # .cu
    "-fno-strict-aliasing",  # vectors of elements, as in CUDA
    "-Wno-unknown-pragmas",  # unroll
    "-isystem",  # CUDA's headers by name: some are empty, some say what to use
    "common/kernels/cuda/fake/include",

    # A thread loads the elements that it has, and stores the results of these alone.
    "-Wno-maybe-uninitialized",
]

def emulated_source(name, src, out):
    """Makes `out` of a .cu file: what the C++ compiler takes for it.

    An array of dynamic shared memory gets the name by which grid.cc defines all of them.
    The file and its lines stay those of `src` in messages and findings.

    Args:
      name: of the target.
      src: a .cu file.
      out: the name of the made file.
    """
    native.genrule(
        name = name,
        srcs = [src],
        outs = [out],
        cmd = "(echo '#line 1 \"$<\"'; sed -E 's/%s/%s/g' $<) > $@" % (
            r"extern\s+(volatile\s+)?__shared__([^;]*)\[\s*\]\s*;",
            r'extern \1__thread\2[] asm(\"d2l_dynamic_shared\");',
        ),
    )

# Calls around every load and store, from which check_hooks.cc makes findings: each
# access as it is in the source, with its line.
CHECK_COPTS = [
    "-fsanitize=thread,bounds,alignment",
    "-O1",
    "-g",
    "-fno-tree-vectorize",
]

# Also counts what warps ask of memory: a float4 is one access, not four.
COUNT_COPTS = CHECK_COPTS + ["-fno-tree-sra"]

# For kernels that every build contains: they are not checked with a sanitizer.
CHECK_COPTS_UNLESS_SANITIZED = select({
    "//:sanitized": [],
    "//conditions:default": COUNT_COPTS,
})

CHECK_HOOKS_UNLESS_SANITIZED = select({
    "//:sanitized": [],
    "//conditions:default": ["//common/kernels/cuda:check_hooks"],
})

# The sanitizers' own libraries have functions with the same names.
CHECKABLE = select({
    "//:sanitized": ["//third_party:never"],
    "//conditions:default": [],
})
