#!/usr/bin/env bash
# Clang's thread-safety analysis: members that common/base/mutex.h guards are used only
# with their lock. Checks each file that names a lock or a guarded member, and each
# source that includes such a header. Fails if it finds anything.
set -euo pipefail
cd "$(dirname "$0")/.."

words=(-e 'common/base/mutex\.h' -e 'MutexLock' -e 'ABSL_GUARDED_BY')
mapfile -t headers < <(git grep -l "${words[@]}" -- '*.h')
mapfile -t files < <({
  printf '%s\n' "${headers[@]}"
  git grep -l "${words[@]}" -- '*.cc'
  printf '#include "%s"\n' "${headers[@]}" | git grep -lF -f - -- '*.cc'
} | grep -Ev '/(cuda|mpi)/' | sort -u)
printf '%s\0' "${files[@]}" \
  | xargs -0 -P "$(nproc)" -n 1 clang++ -std=c++17 -I. -fsyntax-only -x c++ \
    -Wthread-safety -Werror=thread-safety
echo "Thread safety: ${#files[@]} files checked."
