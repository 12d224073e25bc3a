#!/usr/bin/env bash
# Lists the C++ and CUDA files that clang-format would change. Exits 1 if there are any.
# --fix changes them. Versions of clang-format differ in details; version 14, Debian
# 12's, decides. Also lists the files that use a name of Abseil without its header.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- \
  '*.h' '*.cc' '*.cu' '*.cuh')
if [[ ${#files[@]} -eq 0 ]]; then exit 0; fi

if [[ "${1:-}" == --fix ]]; then
  clang-format -i "${files[@]}"
  exit 0
fi

status=0
tools/check_includes.py "${files[@]}" || status=1
for file in "${files[@]}"; do
  if ! clang-format "$file" | cmp --silent - "$file"; then
    echo "$file"
    status=1
  fi
done
exit "$status"
