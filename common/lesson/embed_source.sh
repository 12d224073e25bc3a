#!/usr/bin/env bash
# embed_source.sh FILE: writes a C++ file to stdout that registers the text of
# FILE under its name; see source.h.
set -euo pipefail
file="$1"
delimiter=embedded_file
if grep -qF ")$delimiter\"" "$file"; then
  echo "$file: must not contain )$delimiter\"" >&2
  exit 1
fi
cat << HEAD
#include "common/lesson/source.h"

namespace {
[[maybe_unused]] const bool registered = d2l::RegisterSource("$file",
HEAD
printf 'R"%s(' "$delimiter"
cat "$file"
printf ')%s");\n}  // namespace\n' "$delimiter"
