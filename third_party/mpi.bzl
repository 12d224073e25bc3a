"""MPI in BUILD files: it is built in if pkg-config finds Open MPI."""

load("@openmpi//:found.bzl", "FOUND")

def if_mpi(then, otherwise = []):
    return then if FOUND else otherwise

# target_compatible_with = MPI_ONLY: `bazel build //...` leaves the target out
# if there is no MPI.
MPI_ONLY = if_mpi([], ["//third_party:never"])
