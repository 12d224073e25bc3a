#!/usr/bin/env bash
# embed_source.sh FILE...: writes a C++ file to stdout that registers the text
# of each FILE under its name; see source.h.
set -euo pipefail
delimiter=embedded_file
cat << HEAD
#include "common/lesson/source.h"

namespace {
[[maybe_unused]] const bool registered[] = {
HEAD
for file in "$@"; do
  if grep -qF ")$delimiter\"" "$file"; then
    echo "$file: must not contain )$delimiter\"" >&2
    exit 1
  fi
  printf 'd2l::RegisterSource("%s", R"%s(' "$file" "$delimiter"
  cat "$file"
  printf ')%s"),\n' "$delimiter"
done
printf '};\n}  // namespace\n'
