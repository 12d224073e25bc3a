#!/usr/bin/env bash
# Compiles the core for 64-bit Arm, on any machine, and runs there, under qemu, the
# kernels' tests that need no library but GoogleTest:
#   sudo apt-get install g++-aarch64-linux-gnu qemu-user-static
#   tools/check_arm.sh [--compile_only]
# Without qemu the tests are not run, and the script says so.
set -euo pipefail
cd "$(dirname "$0")/.."

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# Headers that suit every processor, without the other headers beside them.
mkdir "$work/include"
for library in absl gmock gtest hwy; do
  ln -s "/usr/include/$library" "$work/include/"
done
# OpenSSL's configuration is beside them, and the same for all 64-bit processors.
mkdir "$work/include/openssl"
ln -s /usr/include/openssl/*.h "/usr/include/$(g++ -dumpmachine)"/openssl/*.h \
  "$work/include/openssl/"
compile=(aarch64-linux-gnu-g++ -std=c++17 -ffp-contract=off -Wall -Wextra -Werror
  -I. -isystem "$work/include")

# parallel COMMAND...: one command for each line of the input, on all cores.
parallel() { xargs -d '\n' -P "$(nproc)" -n 1 "$@"; }

find common/base common/device common/tensor common/ops common/kernels \
  -name '*.cc' -not -path '*/cuda/*' -not -name '*_test.cc' \
  -not -name '*_fuzz.cc' -not -name '*benchmark*' > "$work/sources"
parallel "${compile[@]}" -fsyntax-only < "$work/sources"
echo "aarch64: $(wc -l < "$work/sources") files compiled"

if [[ "${1:-}" == --compile_only ]]; then exit; fi
qemu="$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)"
if [[ -z "$qemu" ]]; then
  echo "aarch64: no tests run, for want of qemu-aarch64-static"
  exit
fi

# What the kernels need of outside libraries: Highway's few functions that are not
# in its headers (all targets but the static one, NEON, are disabled, see
# vector_targets.h), and a thread whose error messages need Abseil.
cat > "$work/highway.cc" << 'END'
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
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
namespace d2l {
std::thread StartThread(const std::string&, std::function<void()> work) {
  return std::thread(std::move(work));
}
}  // namespace d2l
END
cpu=common/kernels/cpu
tests=(common/kernels/ladder/matmul_ladder_test.cc
  "$cpu"/{dots,random,gemm}_test.cc)
googletest=/usr/src/googletest/googletest
printf '%s\n' "$googletest"/src/gtest{-all,_main}.cc "$work/highway.cc" \
  "$cpu"/{gemm,dots,random}.cc common/kernels/ladder/matmul_ladder.cc \
  common/device/cpu/parallel_for.cc "${tests[@]}" \
  > "$work/linked"
# shellcheck disable=SC2016  # the inner shell expands it
COMPILE="${compile[*]} -O1 -I $googletest -c" OUT="$work" \
  parallel sh -c '$COMPILE "$1" -o "$OUT/$(basename "$1" .cc).o"' sh \
  < "$work/linked"
objects=()
while read -r source; do
  case "$source" in
    *_test.cc) ;;
    *) objects+=("$work/$(basename "$source" .cc).o") ;;
  esac
done < "$work/linked"
failed=0
for test in "${tests[@]}"; do
  name="$(basename "$test" .cc)"
  aarch64-linux-gnu-g++ -static -pthread -o "$work/$name" "$work/$name.o" \
    "${objects[@]}"
  # Under qemu, all small products take many minutes.
  if "$qemu" "$work/$name" --gtest_brief=1 \
    --gtest_filter='-*SmallSides*' > "$work/log" 2>&1; then
    echo "aarch64: $name: $(sed -n 's/.*PASSED  \] //p' "$work/log")"
  else
    cat "$work/log"
    echo "aarch64: $name FAILED"
    failed=1
  fi
done
exit "$failed"
