#!/usr/bin/env bash
# Says what this machine has for the course, what each lesson runs on, and one
# command for each thing that is missing:
#
#   bazel run //:doctor      or, where Bazel does not work,      tools/doctor.sh
#
# Exits with 1 if the lessons cannot be built here. They run without a GPU, so
# a missing one is no failure.
#
# Bash and a few basic programs are all it uses: it must run where there is no
# compiler. It looks where the build looks, third_party/cuda_configure.bzl and
# system_library.bzl, and says what the programs say, common/device/cuda/
# why_no_cuda.cc. For its test, D2L_DOCTOR_ROOT is a folder that stands for /.
#
# Variables are set in one file and read in another:
# shellcheck disable=SC2034,SC2154
set -u
export LC_ALL=C
unset CDPATH # cd would print
shopt -s extglob

root="${D2L_DOCTOR_ROOT:-}"
# What to do, each with its command, which may be empty; and what only those
# need who want to use a GPU.
todo=() todo_command=()
gpu=() gpu_command=()

# add TEXT COMMAND
add() {
  todo+=("$1")
  todo_command+=("$2")
}
add_gpu() {
  gpu+=("$1")
  gpu_command+=("$2")
}

# Sets repository: beside this file, or beside what `bazel run` links to.
find_repository() {
  local folder
  for folder in "$(dirname "$0")" "$(dirname "$(readlink -f "$0")")"; do
    repository="$(cd "$folder/.." && pwd)"
    if [[ -e "$repository/tools/doctor/text.sh" ]]; then return; fi
  done
  echo "doctor.sh: its other files, tools/doctor/*.sh, are not beside it." >&2
  exit 2
}

look_at_system() {
  local key value
  os_id="" os_version=""
  while IFS='=' read -r key value; do
    value="${value//\"/}"
    case "$key" in
      ID) os_id="$value" ;;
      VERSION_ID) os_version="$value" ;;
    esac
  done 2> /dev/null < "$root/etc/os-release"
  sudo="sudo "
  if [[ "$EUID" -eq 0 ]]; then sudo=""; fi
  wsl=no
  if [[ "$(first_line "$root/proc/sys/kernel/osrelease")" == *icrosoft* ]]; then wsl=yes; fi
  container=no
  if [[ -e "$root/.dockerenv" || -e "$root/run/.containerenv" ]]; then container=yes; fi
  # Bazel looks at the system once per server.
  shutdown=""
  if type -P bazel > /dev/null; then shutdown=" && bazel shutdown"; fi
}

has_package() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2> /dev/null)" == installed ]]
}

print_todo() {
  # Where there is a GPU, what it needs is missing too.
  if [[ "$real_gpus" -gt 0 || "$pci_gpus" -gt 0 ]]; then
    todo+=("${gpu[@]}")
    todo_command+=("${gpu_command[@]}")
    gpu=()
  fi
  echo
  if [[ "${#todo[@]}" -eq 0 ]]; then
    echo "Nothing is missing. To run the course:" \
      "bazel run$([[ "$use_gpus" == yes ]] && echo " --config=cuda") //:course"
  else
    hanging "" "" "To do, in ${repository#"$root"}:"
    items todo todo_command
  fi
  if [[ "$needed" -gt 0 ]]; then
    echo
    echo "The lessons cannot be built before $( ((needed > 1)) && echo "1 to ")$needed is done."
  fi
  if [[ "${#gpu[@]}" -gt 0 ]]; then
    echo
    echo "The lessons run without a GPU. To use one:"
    items gpu gpu_command
  fi
}

main() {
  if [[ $# -gt 0 ]]; then
    echo "The doctor takes no arguments: bazel run //:doctor" >&2
    exit 2
  fi
  find_repository
  local file
  for file in "$repository"/tools/doctor/*.sh; do
    # shellcheck source=/dev/null
    source "$file"
  done
  # Bazel's launcher looks for .bazelversion from here on upwards.
  cd "$repository" || exit 2
  look_at_system
  count_pci_gpus
  count_cores

  echo "This machine"
  check_compiler
  check_bazel
  check_glibc
  check_libraries
  needed="${#todo[@]}" # what is found so far, no build does without
  check_toolkit
  check_driver
  install_toolkit
  check_devices
  check_memory
  check_cores
  check_load
  print_lessons
  print_todo
  [[ "$needed" -eq 0 ]]
}

main "$@"
