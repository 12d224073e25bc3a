#!/usr/bin/env bash
# Runs the tests, lessons and benchmarks on a machine that has a GPU but neither
# Bazel nor a compiler.
#
# Where the repository is built:
#
#   tests/run_on_gpu_host.sh --pack=d2l.tar.xz [--archs=sm_80,sm_90]
#
# On the machine with the GPU:
#
#   tar -xJf d2l.tar.xz && d2l/run_on_gpu_host.sh
#
# Large matrix products need cuBLAS there. It is found in the toolkit, in the
# PyTorch of python3, or on LD_LIBRARY_PATH.
#
# A call lasts ten minutes at most. What it had no time for, the next one does:
#
#   d2l/run_on_gpu_host.sh --resume
#
# --archs       GPU architectures to compile for; those of a build, if left out.
#               --archs=none packs without CUDA.
# --devices     lists to run on, separated by blanks. Left out: "cuda:0
#               cuda:0,cuda:0", or "cpu:0 cpu:0,cpu:1" where no GPU can be used.
# --size        of the lessons: small (if left out), course or large.
# --steps       which, of: probe tests exit peers lessons sanitizer benchmarks.
#               All, if left out, in this order.
# --filter      of GoogleTest, for the tests, also under the sanitizer:
#               --filter='*MatMul*'. Each suite is a process of its own.
# --seconds     how long the call may last; 570, if left out.
# --resume      leaves out the steps that an earlier call has in the report.
# --report      a folder for report.txt and each step's whole output; report/, if
#               left out. It is packed as FOLDER.tar.gz.
#
# Exits with 1 if a step failed. Ctrl-C stops at once; the report then holds
# what was done.
set -uo pipefail
export LC_ALL=C

archs="" devices="" size=small report=report pack="" filter="*" seconds=570 resume=no
all_steps="probe tests exit peers lessons sanitizer benchmarks"
steps="$all_steps"

# Longest that a step may take, in seconds. A sanitizer makes a kernel up to a
# hundred times slower.
probe_limit=240 test_limit=300 suite_limit=60 sanitizer_limit=300 lesson_limit=300 benchmark_limit=400

complain() {
  echo "run_on_gpu_host.sh: $*" >&2
  exit 2
}

# The cells that are compared first: small operations, large ones, and training.
main_cells='^(003_c5|add_1|000_In6|mm_1000|randn_1e7|mul_add_1e7|sum_1e7|exp_1e6|softmax_128x1000'
main_cells+='|mlp_8_captured|chain_1e7_eager|mlp_step|lenet_step|resnet18_step)$'

read_flags() {
  local flag step
  for flag in "$@"; do
    case "$flag" in
      --pack=?*) pack="${flag#*=}" ;;
      --archs=?*) archs="${flag#*=}" ;;
      --devices=?*) devices="${flag#*=}" ;;
      --size=?*) size="${flag#*=}" ;;
      --steps=?*)
        steps="${flag#*=}" && steps="${steps//,/ }"
        for step in $steps; do
          [[ " $all_steps " == *" $step "* ]] \
            || complain "--steps=$step asked for; there are: $all_steps."
        done
        ;;
      --filter=?*) filter="${flag#*=}" ;;
      --seconds=?*) seconds="${flag#*=}" ;;
      --resume) resume=yes ;;
      --report=?*) report="${flag#*=}" ;;
      -h | --help)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
        exit 0
        ;;
      *) complain "$flag is not a flag that it knows; see --help." ;;
    esac
  done
}

# ---- Where the repository is built.

chapters() {
  sed -n 's/^ *"\([a-z0-9_]*\)": [0-9]*,.*/\1/p' chapters/chapters.bzl
}

# Libraries that every Linux has. Debian 12's libstdc++ needs a newer glibc than the
# programs do, which run with the one of Ubuntu 22.04, of Colab and of Kaggle.
stays_behind() {
  case "$1" in
    linux-vdso* | ld-linux* | libc.so* | libm.so* | libpthread.so* | libdl.so* | librt.so*) true ;;
    libstdc++.so* | libgcc_s.so*) true ;;
    *) false ;;
  esac
}

# Complains if a program or library of the pack needs a newer glibc than Ubuntu 22.04's.
check_glibc() {
  local needed
  needed="$(objdump -T "$stage"/d2l/bin/* "$stage"/d2l/lib/* | grep -o 'GLIBC_[0-9.]*' \
    | sort -Vu | tail -1)"
  echo "needs $needed" | tee -a "$stage/d2l/built.txt"
  if [[ "$(printf '%s\nGLIBC_2.35\n' "$needed" | sort -V | tail -1)" != GLIBC_2.35 ]]; then
    complain "the pack needs $needed; Ubuntu 22.04, Colab and Kaggle have 2.35."
  fi
}

# copy_licenses PATTERN...: the licences of what the pack holds: the libraries whose paths
# match, and those that are linked into the programs.
copy_licenses() {
  local package
  mkdir "$stage/d2l/licenses"
  cp LICENSE NOTICE "$stage/d2l/licenses"
  {
    if [[ $# -gt 0 ]]; then dpkg -S "$@" 2> /dev/null | cut -d: -f1; fi
    grep '^lib\|-dev$' third_party/debian-packages.txt
  } | sort -u | while read -r package; do
    if [[ -e "/usr/share/doc/$package/copyright" ]]; then
      cp -L "/usr/share/doc/$package/copyright" "$stage/d2l/licenses/$package.txt"
    fi
  done
}

# Writes to built.txt which architectures the programs have kernels for. Complains if
# one of --archs is missing.
check_archs() {
  local kernels arch
  kernels="$(python3 tests/cuda_archs.py "$stage"/d2l/bin/*)" || exit 1
  for arch in ${archs//,/ }; do
    # sm_90a is sm_90 with architecture-specific features.
    if [[ " $kernels " != *" ${arch%[af]} "* ]]; then
      complain "$arch was asked for; the programs have kernels for $kernels."
    fi
  done
  echo "kernels for $kernels" | tee -a "$stage/d2l/built.txt"
}

make_pack() {
  # Fewer libraries to carry, and no Open MPI: a part of it, libevent, needs glibc 2.36.
  local out stage chapter library path flags=(--repo_env=D2L_STATIC_LIBS=1) bin
  local programs=(tests/all_tests tests/all_benchmarks common/device/cuda/exit_test_on_devices)
  out="$(realpath -m "$pack")"
  cd "$(dirname "$0")/.." || exit 2
  [[ -e chapters/chapters.bzl ]] || complain "--pack needs the repository."
  if [[ "$archs" == none ]]; then
    echo "Packing without CUDA."
  else
    flags+=(--config=cuda)
    if [[ -n "$archs" ]]; then flags+=("--//:cuda_archs=$archs"); fi
    programs+=(tests/gpu_probe common/device/cuda/cuda_backend_test)
  fi
  local targets=() program
  for program in "${programs[@]}"; do targets+=("//${program%/*}:${program##*/}"); done
  for chapter in $(chapters); do targets+=("//chapters/$chapter:lesson"); done

  # Nobody would miss a test whose cases are not linked in.
  bazel query 2> /dev/null \
    'filter("_cases$", kind(cc_library, //common/...)) except deps(//tests:all_tests)' \
    | sed 's/^/Left out of all_tests: /'
  bazel build "${flags[@]}" "${targets[@]}" || exit 1
  bin="$(bazel info "${flags[@]}" bazel-bin 2> /dev/null)"

  stage="$(mktemp -d)"
  # shellcheck disable=SC2064 # as it is now
  trap "rm -rf '$stage'" EXIT
  mkdir -p "$stage/d2l"/{bin,lib,peers}
  cp tests/run_on_gpu_host.sh "$stage/d2l"
  cp tests/peers/*.py "$stage/d2l/peers"
  cp --parents common/*/*_golden.json "$stage/d2l" # data of tests
  for program in "${programs[@]}"; do cp "$bin/$program" "$stage/d2l/bin"; done
  for chapter in $(chapters); do
    cp "$bin/chapters/$chapter/lesson" "$stage/d2l/bin/lesson_$chapter"
  done
  {
    echo "commit $(git rev-parse --short HEAD 2> /dev/null || echo unknown)" \
      "$(git diff --quiet HEAD 2> /dev/null || echo "and changes")"
    echo "built $(date -u +%Y-%m-%dT%H:%MZ), flags ${flags[*]}"
    echo "glibc $(getconf GNU_LIBC_VERSION | cut -d' ' -f2)"
  } > "$stage/d2l/built.txt"
  chmod -R u+w "$stage/d2l"
  strip "$stage"/d2l/bin/*
  if [[ "$archs" != none ]]; then check_archs; fi
  # Two fields of "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)".
  local copied=()
  while read -r library path; do
    if stays_behind "$library"; then continue; fi
    cp -L "$path" "$stage/d2l/lib/$library"
    copied+=("*/$(basename "$(realpath "$path")")") # dpkg may know it without /usr
  done < <(ldd "$stage"/d2l/bin/* | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u)
  check_glibc
  copy_licenses "${copied[@]}"
  # The programs have the same kernels, more than 100 MB apart.
  tar -C "$stage" -cf - d2l | xz --lzma2=preset=6,dict=256MiB > "$out.part" \
    && mv "$out.part" "$out" || exit 1
  echo "Packed $(du -h "$out" | cut -f1): $pack"
}

# ---- On the machine with the GPU.

here="" out_of_time=no cublas=""

# Both to the terminal and to the report.
say() { printf '%s\n' "$*" | tee -a "$report/report.txt"; }

# record NAME RESULT SECONDS DETAILS
record() { say "$(printf '%-8s %5ss  %-40s %s' "$2" "$3" "$1" "$4")"; }

# details LOG: what the last lines of a log say in one line.
details() {
  local ran passed failed skipped
  # GoogleTest's: "[  PASSED  ] 12 tests."
  ran="$(sed -n 's/^\[==========\] \([0-9]*\) tests* from .* ran.*/\1/p' "$1" | tail -1)"
  if [[ -n "$ran" ]]; then
    passed="$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$1" | tail -1)"
    failed="$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$1" | tail -1)"
    skipped="$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$1" | tail -1)"
    printf '%s passed, %s failed, %s skipped' "${passed:-0}" "${failed:-0}" "${skipped:-0}"
    sed -n 's/^========= ERROR SUMMARY: /; /p' "$1" | tail -1
    return
  fi
  grep -E 'HOLDS, [0-9]+ FAILS' "$1" | tail -1
}

# step NAME LIMIT COMMAND...: runs it, and keeps all that it prints. Returns 1 if
# it failed. A step without time, or that is in the report, is not run.
step() {
  local name="$1" limit="$2" log code=0 begin result=passed note left
  shift 2
  log="$(printf '%s' "$name" | tr -c 'A-Za-z0-9._' '-').log"
  if [[ "$resume" == yes && -e "$report/$log" ]]; then return 0; fi
  left=$((seconds - SECONDS))
  if ((left < 15)); then
    out_of_time=yes
    return 0
  fi
  if ((limit > left)); then limit=$left; fi
  begin=$SECONDS
  if [[ -t 1 ]]; then echo "... $name"; fi
  timeout --kill-after=10 "$limit" "$@" > "$report/$log.part" 2>&1 || code=$?
  if [[ ("$code" -eq 124 || "$code" -eq 137) && "$limit" -eq "$left" ]]; then
    out_of_time=yes
    return 0
  fi
  mv "$report/$log.part" "$report/$log"
  note="$(details "$report/$log" | tr '\n' ' ')"
  if [[ "$code" -ne 0 ]]; then
    result=failed
    note="exit code $code${note:+; $note}"
    if [[ "$code" -eq 124 || "$code" -eq 137 ]]; then note="stopped after $limit s; $note"; fi
  fi
  record "$name" "$result" $((SECONDS - begin)) "$note"
  if [[ "$result" == failed ]]; then
    tail -n 15 "$report/$log" | sed 's/^/    /' | tee -a "$report/report.txt"
    return 1
  fi
}

# tests_of PATTERN: "SUITE FILTER" for each suite that has tests of --filter
# whose name matches the regular expression.
tests_of() {
  bin/all_tests --gtest_list_tests "--gtest_filter=$filter" 2> /dev/null \
    | awk -v pattern="$1" '
        /^[^ ]/ { suite = $1 ~ /\.$/ ? $1 : ""; next }
        suite != "" && /^  / && (suite $1) ~ pattern {
          if (!(suite in filter)) order[++count] = suite
          filter[suite] = filter[suite] ":" suite $1
        }
        END {
          for (i = 1; i <= count; ++i) print order[i], substr(filter[order[i]], 2)
        }'
}

# suites NAME LIST PATTERN COMMAND...: each suite as a step of its own on the
# devices of D2L_TEST_DEVICES, so that one that hangs, or loses the GPU, ends no
# other. LIST names them in the report.
suites() {
  local name="$1" list="$2" pattern="$3" suite tests
  shift 3
  while read -r suite tests; do
    step "$name ${suite%.} on $list" "$suite_limit" \
      "$@" bin/all_tests "--gtest_filter=$tests" && continue
    if [[ "$name" != tests ]]; then continue; fi
    # Kernel by kernel: the test that fails is then the cause.
    step "again, blocking, ${suite%.} on $list" "$suite_limit" \
      env CUDA_LAUNCH_BLOCKING=1 bin/all_tests "--gtest_filter=$tests"
  done < <(tests_of "$pattern")
}

skip() { record "$1" skipped 0 "$2"; }

wanted() { [[ " $steps " == *" $1 "* ]]; }

# Folders with a cuBLAS, besides the system's: PyTorch's, the toolkit's. Large
# products need it, and it is too large to carry. PyTorch's comes first: beside
# PyTorch, both then use the same, and PyTorch no other than its own.
cublas_folders() {
  local folder
  python3 - 2> /dev/null << 'PYTHON'
import glob, os, sys
for path in sys.path:
    for found in sorted(glob.glob(os.path.join(path, "nvidia", "**", "libcublas.so*"), recursive=True)):
        print(os.path.dirname(found), end=":")
PYTHON
  for folder in "${CUDA_PATH:-}/lib64" "${CUDA_HOME:-}/lib64" /usr/local/cuda/lib64; do
    if compgen -G "$folder/libcublas.so*" > /dev/null; then printf '%s:' "$folder"; fi
  done
}

describe_machine() {
  {
    uname -srm
    getconf GNU_LIBC_VERSION
    grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
    echo "$(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
    if command -v nvidia-smi > /dev/null; then
      nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader
    else
      echo "no nvidia-smi"
    fi
    if [[ -n "$cublas" ]]; then echo "cuBLAS in ${cublas%%:*}"; else echo "no cuBLAS in a toolkit or in PyTorch"; fi
    python3 -c 'import torch; print("PyTorch", torch.__version__, "CUDA", torch.version.cuda)' 2> /dev/null \
      || echo "no PyTorch"
  } > "$report/machine.txt" 2>&1
}

# test_devices LIST: the devices of the tests. Some are about CPU devices, or
# copy between the kinds, so there are always three of these.
test_devices() {
  local gpus
  gpus="$(tr ',' '\n' <<< "$1" | grep cuda | paste -sd, -)"
  echo "cpu:0,cpu:1,cpu:2${gpus:+,$gpus}"
}

# two_of DEVICE: a list of two such devices, for benchmarks of a pair.
two_of() {
  case "$1" in
    cpu:*) echo "cpu:0,cpu:1" ;;
    *) echo "$1,$1" ;;
  esac
}

run_all() {
  local list name lesson first
  export D2L_TEST_DEVICES
  here="$(cd "$(dirname "$0")" && pwd)"
  [[ -e "$here/bin/all_tests" ]] \
    || complain "unpack what --pack has packed, and run it there; see --help."
  mkdir -p "$report" || complain "--report=$report: it cannot be made."
  report="$(cd "$report" && pwd)"
  if [[ "$resume" == no ]]; then rm -f "$report"/*.log "$report"/report.*; fi
  touch "$report/report.txt"
  cd "$here" || exit 2
  cublas="$(cublas_folders)"
  LD_LIBRARY_PATH="$here/lib:$cublas${LD_LIBRARY_PATH:-}"
  export LD_LIBRARY_PATH
  describe_machine
  sed 's/^/  /' built.txt "$report/machine.txt" | tee -a "$report/report.txt"
  if ! bin/all_tests --gtest_list_tests > "$report/list.log" 2>&1; then
    say "The programs do not start here:"
    sed 's/^/  /' "$report/list.log" | tail -n 5 | tee -a "$report/report.txt"
    exit 1
  fi
  if [[ -z "$devices" ]]; then
    if bin/all_benchmarks --devices=cuda:0 --benchmark_list_tests > "$report/cuda.log" 2>&1; then
      devices="cuda:0 cuda:0,cuda:0"
    else
      devices="cpu:0 cpu:0,cpu:1"
      say "No GPU can be used: $(tail -n 1 "$report/cuda.log")"
    fi
  fi
  first="${devices%%[ ,]*}"

  if wanted probe; then
    if [[ -x bin/gpu_probe && "$first" == *cuda* ]]; then
      step "probe" "$probe_limit" bin/gpu_probe
      if [[ "$resume" == no ]]; then say "$(cat "$report/probe.log")"; fi
    else
      skip "probe" "no GPU"
    fi
  fi
  if wanted tests; then
    for list in $devices; do
      # On a CPU device there is nothing to tell apart.
      if [[ "$list" == *cuda* ]]; then
        D2L_TEST_DEVICES="$(test_devices "$list")" && suites tests "$list" cuda env
      else
        step "tests on $list" "$test_limit" env "D2L_TEST_DEVICES=$(test_devices "$list")" \
          bin/all_tests "--gtest_filter=$filter"
      fi
    done
    # Many tests take the first device, or all: here these are GPUs.
    if [[ "$first" == *cuda* ]]; then
      D2L_TEST_DEVICES="$first,$first,$first,$first" && suites tests "$D2L_TEST_DEVICES" . env
    fi
  fi
  if wanted exit; then
    step "exit on $first" "$suite_limit" env "D2L_TEST_DEVICES=$(two_of "$first")" \
      bin/exit_test_on_devices
    if [[ -x bin/cuda_backend_test ]]; then step "inventory" "$suite_limit" bin/cuda_backend_test; fi
  fi
  if wanted peers; then
    if ! python3 -c 'import torch' 2> /dev/null; then
      skip "beside PyTorch on $first" "python3 has no torch"
    else
      local compare=(python3 peers/compare.py --binary=bin/all_benchmarks
        "--device=${first/#cpu:*/cpu}")
      step "main cells beside PyTorch on $first" "$benchmark_limit" \
        "${compare[@]}" --rounds=1 "--filter=$main_cells" "--json=$report/main_cells.json"
      step "beside PyTorch on $first" "$benchmark_limit" "${compare[@]}" "--json=$report/peers.json"
      # Also what was stopped.
      say "$(cat "$report"/*beside-PyTorch*.log* 2> /dev/null)"
    fi
  fi
  if wanted lessons; then
    for list in $devices; do
      for lesson in bin/lesson_*; do
        name="${lesson#bin/lesson_}"
        step "lesson $name on $list" "$lesson_limit" \
          "$lesson" "--devices=$list" "--size=$size" "--json=$report/$name-${list//[:,]/_}.json"
      done
    done
  fi
  if wanted sanitizer; then
    if [[ "$first" != *cuda* ]]; then
      skip "compute-sanitizer" "no GPU"
    elif ! command -v compute-sanitizer > /dev/null; then
      skip "compute-sanitizer" "not installed"
    else
      # Without --filter: kernels with shared memory and many threads.
      local pattern=cuda
      if [[ "$filter" == "*" ]]; then pattern='(Reduc|Softmax|MatMul|Copy).*cuda'; fi
      suite_limit="$sanitizer_limit" D2L_TEST_DEVICES="$(test_devices "$first")"
      for name in memcheck racecheck; do
        suites "$name" "$first" "$pattern" compute-sanitizer "--tool=$name" --error-exitcode=3
      done
    fi
  fi
  if wanted benchmarks; then
    step "benchmarks on $first" "$benchmark_limit" bin/all_benchmarks "--devices=$(two_of "$first")" \
      "--benchmark_filter=device:${first%%:*}" --benchmark_min_time=0.1 \
      "--benchmark_out=$report/benchmarks.json" --benchmark_out_format=json
  fi
  if [[ "$out_of_time" == yes ]]; then
    say "There was no time for all; go on with: $0 --resume"
  fi
  say "Written: $report.tar.gz, of $report/report.txt and the logs"
  tar -czf "$report.tar.gz" -C "$(dirname "$report")" "$(basename "$report")"
  ! grep -q '^failed' "$report/report.txt"
}

trap 'echo; echo "Interrupted."; exit 130' INT
read_flags "$@"
if [[ -n "$pack" ]]; then make_pack; else run_all; fi
