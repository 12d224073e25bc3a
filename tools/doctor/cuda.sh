# shellcheck shell=bash disable=SC2034,SC2154
# CUDA's toolkit and driver. Sourced by tools/doctor.sh.

restart="and start the machine again"

# from_nvidia PACKAGE: prints the command that installs it from NVIDIA's own
# repository; nothing if there is none for this system.
from_nvidia() {
  local distribution="" arch=x86_64 keyring=cuda-keyring_1.1-1_all.deb
  if [[ "$HOSTTYPE" == aarch64 ]]; then arch=sbsa; fi
  case "$os_id" in
    debian | ubuntu) distribution="$os_id${os_version//./}" ;;
  esac
  if [[ "$wsl" == yes && "$os_id" == ubuntu ]]; then distribution="wsl-ubuntu"; fi
  if [[ -z "$distribution" || -z "$os_version" ]]; then return; fi
  if ! has_package cuda-keyring; then
    printf '%s' "wget -P /tmp https://developer.download.nvidia.com/compute/cuda/repos/" \
      "$distribution/$arch/$keyring && ${sudo}dpkg -i /tmp/$keyring && "
  fi
  echo "${sudo}apt-get update && ${sudo}apt-get install -y $1"
}

# add_from_nvidia WHY PACKAGE [AFTER]: installs it, or says where it is; AFTER
# is the rest of the command.
add_from_nvidia() {
  local command
  command="$(from_nvidia "$2")"
  if [[ -n "$command" ]]; then
    add_gpu "$1" "$command${3:-}"
  else
    add_gpu "$1 See https://developer.nvidia.com/cuda-downloads for $2." ""
  fi
}

# As third_party/cuda_configure.bzl looks for it. Sets toolkit, its folder or
# nothing, and looked.
find_toolkit() {
  local nvcc candidate
  toolkit="" looked=""
  nvcc="$(type -P nvcc)"
  if [[ -n "$nvcc" ]]; then nvcc="$(readlink -f "$nvcc")"; fi
  for candidate in "CUDA_PATH=${CUDA_PATH:-}" "CUDA_HOME=${CUDA_HOME:-}" \
    "PATH=${nvcc%/bin/nvcc}" "/usr/local/cuda=$root/usr/local/cuda"; do
    if [[ "$candidate" == *=?* && -e "${candidate#*=}/bin/nvcc" ]]; then
      toolkit="${candidate#*=}"
      toolkit="${toolkit%/}"
      return
    fi
    if [[ "$candidate" == CUDA_*=?* ]]; then looked+="$candidate, "; fi
  done
  looked+="PATH, /usr/local/cuda"
}

# Sets toolkit_version ("13.0", or empty) and toolkit_state: ok, none, partial,
# hidden, or wrong (it does not take the compiler).
check_toolkit() {
  local folder newest="" line text ccbin
  toolkit_version="" toolkit_state=none
  if [[ "${CUDA_PATH:-}" == none ]]; then
    toolkit_state=hidden
    fact "CUDA toolkit" hidden "CUDA_PATH=none hides it"
    add_gpu "CUDA_PATH=none pretends that there is no CUDA toolkit." "unset CUDA_PATH$shutdown"
    return
  fi
  find_toolkit
  if [[ -z "$toolkit" ]]; then
    fact "CUDA toolkit" none "no nvcc (looked at $looked)"
    return
  fi
  line="$("$toolkit/bin/nvcc" --version 2> /dev/null)"
  if [[ "$line" =~ Build\ cuda_([0-9]+\.[0-9]+) ]]; then toolkit_version="${BASH_REMATCH[1]}"; fi
  text="${toolkit_version:-of unknown version} (${toolkit#"$root"})"
  toolkit_state=partial
  for folder in lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib; do
    if [[ -e "$toolkit/$folder/libcudart_static.a" ]]; then toolkit_state=ok; fi
  done
  if [[ "$toolkit_state" == partial ]]; then
    fact "CUDA toolkit" partial "$text, without libcudart_static.a"
    return
  fi

  # The check in nvcc's own header.
  while read -r line; do
    if [[ -z "$newest" && "$line" =~ ^"#if __GNUC__ > "([0-9]+) ]]; then
      newest="${BASH_REMATCH[1]}"
    fi
  done 2> /dev/null < "$toolkit/include/crt/host_config.h"
  text+="${newest:+, takes gcc up to $newest}"
  ccbin="$(grep -so -e '--//:cuda_ccbin=[^[:space:]]*' .bazelrc.user)"
  ccbin="${ccbin##*=}"
  if [[ -z "$ccbin" ]]; then
    check_host_compiler "$newest" "$text"
  elif [[ -x "$root$ccbin" ]]; then
    fact "CUDA toolkit" ok "$text; .bazelrc.user gives it $ccbin"
  else
    toolkit_state=wrong
    fact "CUDA toolkit" wrong "$text; .bazelrc.user gives it $ccbin, which is not there"
    add_gpu "--//:cuda_ccbin=$ccbin in .bazelrc.user names no program." \
      "sed -i /cuda_ccbin/d .bazelrc.user"
  fi
}

# check_host_compiler NEWEST TEXT: the gcc that nvcc calls in a build.
check_host_compiler() {
  local newest="$1" gcc have="" n use install
  gcc="$(PATH="$root/usr/local/bin:$root/usr/bin:$root/bin" type -P gcc)"
  if [[ -n "$gcc" ]]; then have="$("$gcc" -dumpversion 2> /dev/null)"; fi
  have="${have%%.*}"
  if [[ -z "$newest" || ! "$have" =~ ^[0-9]+$ || "$have" -le "$newest" ]]; then
    fact "CUDA toolkit" ok "$2"
    return
  fi
  toolkit_state=wrong
  fact "CUDA toolkit" wrong "$2; found $have"
  use="$newest" install="${sudo}apt-get update && ${sudo}apt-get install -y g++-$newest && "
  for ((n = newest; n > 8; n--)); do
    if [[ -e "$root/usr/bin/g++-$n" ]]; then
      use="$n" install=""
      break
    fi
  done
  add_gpu "CUDA $toolkit_version takes gcc up to $newest; found $have. Give nvcc an older one:" \
    "${install}echo 'build --//:cuda_ccbin=/usr/bin/g++-$use' >> .bazelrc.user"
}

# Sets driver (its version, or empty), driver_cuda (the CUDA that it supports,
# "12.2", or empty), driver_ok, and smi, the path of nvidia-smi.
check_driver() {
  local line said="" answers=no
  driver="" driver_cuda="" driver_ok=no
  line="$(first_line "$root/proc/driver/nvidia/version")"
  if [[ "$line" =~ [[:space:]]([0-9]+\.[0-9.]+)[[:space:]] ]]; then driver="${BASH_REMATCH[1]}"; fi
  smi="$(PATH="$PATH:$root/usr/lib/wsl/lib" type -P nvidia-smi)"
  if [[ -n "$smi" ]]; then
    said="$(timeout 60 "$smi" 2>&1)" && answers=yes
    # From driver 610 on it is "KMD Version" and "CUDA UMD Version".
    if [[ "$said" =~ (Driver|KMD)\ Version:\ *([0-9.]+) ]]; then
      driver="${BASH_REMATCH[2]}"
    fi
    if [[ "$said" =~ CUDA\ (UMD\ )?Version:\ *([0-9]+\.[0-9]+) ]]; then
      driver_cuda="${BASH_REMATCH[2]}"
    fi
    said="${said%%$'\n'*}"
  fi

  if [[ -n "$driver_cuda" ]]; then
    compare_driver_and_toolkit
  elif [[ "$said" == *"No devices"* ]]; then
    driver_ok=yes
    fact driver ok "${driver:-there; nvidia-smi does not say which}"
  elif [[ -n "$smi" && "$answers" == no && -n "$driver" ]]; then
    fact driver broken "$driver; nvidia-smi says: $said"
    add_gpu "The NVIDIA driver does not answer. After an update of it the machine
      must be started again." "${sudo}reboot"
  elif [[ -n "$driver" ]]; then
    check_driver_library
  else
    fact driver none "no NVIDIA driver${said:+; nvidia-smi says: $said}"
    install_driver
  fi
}

# What NVIDIA guarantees: programs of an older toolkit run, and those of the
# same major version.
compare_driver_and_toolkit() {
  local what="CUDA $driver_cuda${driver:+ ($driver)}" why whose="outside of this container"
  local driver_major="${driver_cuda%.*}" toolkit_major="${toolkit_version%.*}"
  local maximum="nvidia-smi's \"CUDA Version\" is the driver's maximum, not your
    toolkit's version."
  driver_ok=yes
  if [[ -z "$toolkit_version" || "$toolkit_major" -lt "$driver_major" ]]; then
    fact driver ok "$what"
    return
  elif [[ "$toolkit_major" -eq "$driver_major" ]]; then
    if [[ "${toolkit_version#*.}" -gt "${driver_cuda#*.}" ]]; then
      # Such a driver does not compile the toolkit's PTX.
      what+=", older than the toolkit: it runs what --//:cuda_archs names, no PTX.
        $maximum"
    fi
    fact driver ok "$what"
    return
  fi
  driver_ok=no
  fact driver "too old" "$what; the toolkit needs $toolkit_version"
  why="The driver supports CUDA $driver_cuda, programs of this toolkit need
    $toolkit_version. $maximum"
  if [[ "$wsl" == no && "$container" == no ]]; then
    add_from_nvidia "$why Update the driver $restart, or build with a toolkit of
      CUDA $driver_cuda or older." cuda-drivers
  else
    # The driver is not this system's.
    if [[ "$wsl" == yes ]]; then whose="in Windows"; fi
    add_from_nvidia "$why Update the driver $whose, or build with an older toolkit:" \
      "cuda-toolkit-$driver_major" " && export CUDA_PATH=/usr/local/cuda-$driver_major$shutdown"
  fi
}

# A driver in the kernel that does not say which CUDA it supports.
check_driver_library() {
  local known
  known="$(PATH="$PATH:$root/usr/sbin:$root/sbin" ldconfig -p 2> /dev/null)"
  if [[ "$known" == *libcuda.so.1* ]]; then
    driver_ok=yes
    fact driver ok "$driver; for CUDA of unknown version, without nvidia-smi"
    return
  fi
  fact driver partial "$driver, without its library libcuda.so.1"
  if [[ "$container" == yes ]]; then
    add_gpu "The kernel has an NVIDIA driver, but this container has no
      libcuda.so.1. Start it with --gpus=all:" \
      "docker run --gpus=all -it IMAGE"
  else
    add_gpu "The kernel has an NVIDIA driver, but its library libcuda.so.1 is missing." \
      "${sudo}apt-get update && ${sudo}apt-get install -y libcuda1"
  fi
}

# Where there is no driver at all.
install_driver() {
  if [[ "$wsl" == yes && -e "$root/usr/lib/wsl/lib/libcuda.so.1" ]]; then
    add_gpu "Windows's NVIDIA driver is in /usr/lib/wsl/lib, but programs cannot
      load it." \
      "${sudo}ldconfig /usr/lib/wsl/lib"
  elif [[ "$wsl" == yes ]]; then
    add_gpu "There is no NVIDIA driver: /usr/lib/wsl/lib has no libcuda.so.1. Under
      WSL the driver is Windows's: install it there
      (https://www.nvidia.com/drivers), never within WSL, and run there:" \
      "wsl --shutdown"
  elif [[ "$container" == yes ]]; then
    add_gpu "This container sees no NVIDIA driver. If the machine has a GPU, start
      the container with --gpus=all:" \
      "docker run --gpus=all -it IMAGE"
  elif [[ "$pci_gpus" -gt 0 ]]; then
    add_from_nvidia "There is an NVIDIA GPU, but no driver. Install it $restart." cuda-drivers
  else
    add_from_nvidia "This machine has no NVIDIA driver, or no NVIDIA GPU. If it has
      a GPU, install the driver $restart." cuda-drivers
  fi
}

# After check_driver, which knows the version that fits.
install_toolkit() {
  case "$toolkit_state" in
    none) add_from_nvidia "There is no CUDA toolkit, which --config=cuda needs." \
      "cuda-toolkit${driver_cuda:+-${driver_cuda%.*}}" "$shutdown" ;;
    partial) add_from_nvidia "The CUDA toolkit in ${toolkit#"$root"} is not complete." \
      "cuda-toolkit${toolkit_version:+-${toolkit_version/./-}}" "$shutdown" ;;
  esac
}
