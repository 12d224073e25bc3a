#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy, on all cores. Fails if it
# finds anything.
#
#   tools/check_tidy.sh [FILE...]
#
# Without files: the core, common/autograd, base, device, tensor, ops, graph, nn,
# parallel and safetensors, and the program to train, but no tests, benchmarks, fakes,
# CUDA and MPI. Everything would take longer than a build. Versions differ; 14, Debian
# 12's, decides. Needs the libraries of third_party/debian-packages.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  mapfile -t files < <(git ls-files -- 'common/autograd/*.cc' \
    'common/base/*.cc' 'common/data/*.cc' 'common/device/*.cc' \
    'common/tensor/*.cc' 'common/ops/*.cc' 'common/graph/*.cc' \
    'common/nn/*.cc' 'common/parallel/*.cc' 'common/safetensors/*.cc' \
    'chapters/multi_gpu/train/*.cc' \
    | grep -Ev '_(test|benchmark|fuzz)\.cc$|/(fake|test)[a-z_]*\.cc$|/(cuda|mpi)/')
fi
printf '%s\0' "${files[@]}" \
  | xargs -0 -P "$(nproc)" -I FILE clang-tidy --quiet FILE -- -std=c++17 -I. 2>&1 \
  | { grep -v 'warnings\? generated' || true; }
