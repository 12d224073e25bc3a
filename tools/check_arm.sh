#!/usr/bin/env bash
# Compiles the core for 64-bit Arm, on any machine, and runs there, under qemu, the
# kernels' tests that use no device:
#   sudo apt-get install g++-aarch64-linux-gnu qemu-user
#   tools/check_arm.sh [--compile_only]
# Without qemu the tests are not run, and the script says so.
set -euo pipefail
cd "$(dirname "$0")/.."

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# Headers that suit every processor, but not their neighbours.
mkdir "$work/include"
for library in absl gmock gtest hwy; do
  ln -s "/usr/include/$library" "$work/include/"
done
googletest=/usr/src/googletest/googletest
compile=(aarch64-linux-gnu-g++ -std=c++17 -ffp-contract=off -Wall -Wextra -Werror
  -I. -isystem "$work/include" -isystem "$googletest")

# parallel COMMAND...: runs one command for each line of the input, on all cores.
parallel() { xargs -d '\n' -P "$(nproc)" -n 1 "$@"; }

find common/base common/device common/tensor common/ops common/kernels \
  -name '*.cc' -not -path '*/cuda/*' -not -name '*_test.cc' \
  -not -name '*_fuzz.cc' -not -name '*benchmark*' > "$work/sources"
parallel "${compile[@]}" -fsyntax-only < "$work/sources"
echo "aarch64: $(wc -l < "$work/sources") files compiled"

if [[ "${1:-}" == --compile_only ]]; then exit; fi
qemu="$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)"
if [[ -z "$qemu" ]]; then
  echo "aarch64: no tests run, for want of qemu-aarch64 (Debian's package qemu-user)"
  exit
fi

# The part of Highway outside of its headers (all targets but the static one, NEON, are
# disabled, see vector_targets.h).
cat > "$work/highway.cc" << 'END'
#include <cstdlib>
#include "common/kernels/cpu/vector_targets.h"
#include "hwy/highway.h"
namespace hwy {
int64_t SupportedTargets() { return HWY_STATIC_TARGET; }
void SetSupportedTargetsForTest(int64_t) {}
ChosenTarget& GetChosenTarget() {
  static ChosenTarget target;
  return target;
}
void Abort(const char*, int, const char*, ...) { std::abort(); }
}  // namespace hwy
END
tests=(common/kernels/{layout,math,philox}_test.cc
  common/kernels/cpu/{matmul/gemm,matmul/gemv,random}_test.cc)
# The sources of the kernels: labels such as //common/device:stream.cc (null).
bazel cquery --noshow_progress 'filter("^//common.*[.]cc$", kind("source file", deps(
  //common/kernels/cpu:kernels)))' 2> "$work/log" > "$work/labels" \
  || { cat "$work/log"; exit 1; }
{
  sed 's# (.*##; s#^//##; s#:#/#' "$work/labels"
  printf '%s\n' "${tests[@]}" common/kernels/testing/unary_cases.cc "$work/highway.cc" \
    "$googletest"/src/gtest{-all,_main}.cc
} > "$work/linked"
mkdir "$work/objects"
# shellcheck disable=SC2016  # the inner shell expands it
COMPILE="${compile[*]} -O1 -c" OUT="$work/objects" \
  parallel sh -c '$COMPILE "$1" -o "$OUT/$(echo "$1" | tr / _).o"' sh \
  < "$work/linked"
find "$work/objects" -name '*.o' -not -name '*_test.cc.o' -print0 \
  | xargs -0 aarch64-linux-gnu-ar rc "$work/core.a"
# There is no Abseil for Arm: its functions make error messages, which no test here
# needs.
aarch64-linux-gnu-g++ -static -pthread -o "$work/kernels" "$work"/objects/*_test.cc.o \
  "$work/core.a" -Wl,--unresolved-symbols=ignore-all 2> "$work/log" \
  || { cat "$work/log"; exit 1; }
# Under qemu, all small products take many minutes.
if "$qemu" "$work/kernels" --gtest_brief=1 --gtest_filter='-*SmallSides*' \
  > "$work/log" 2>&1; then
  echo "aarch64: $(sed -n 's/.*PASSED  \] //p' "$work/log")"
else
  cat "$work/log"
  echo "aarch64: FAILED"
  exit 1
fi
