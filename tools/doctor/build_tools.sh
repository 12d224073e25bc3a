# shellcheck shell=bash disable=SC2154
# What every build needs: compiler, Bazel, libraries. Sourced by
# tools/doctor.sh.

bazel7=https://github.com/bazelbuild/bazel/releases/download/7.7.1/bazel-7.7.1-linux
# What Bazel 7 takes from the system; the other libraries it downloads.
bazel7_packages="libopenblas-dev pkg-config python3"

missing_packages=()

check_compiler() {
  local name="${CC:-gcc}" path where version
  path="$(type -P "$name")"
  if [[ -z "$path" && -n "${CC:-}" ]]; then
    fact compiler missing "CC=$CC is no program here"
    add "There is no compiler $CC, which CC asks for." "unset CC"
    return
  fi
  where="${path:-no gcc on PATH}"
  where="${where#"$root"}"
  # What Bazel calls for C++ too; without the package g++ it takes only C.
  if [[ -z "$path" ]] || ! echo '#include <vector>' \
    | "$path" -x c++ -fsyntax-only - > /dev/null 2>&1; then
    fact compiler missing "none for C++ ($where)"
    missing_packages+=(g++)
    return
  fi
  version="$("$path" -dumpfullversion 2> /dev/null || "$path" -dumpversion)"
  fact compiler ok "$name $version (${path#"$root"})"
}

# Sets libraries: whose the build uses, the system's, or for the most part
# those that Bazel 7 downloads.
check_bazel() {
  local path said version escape=$'\033'
  path="$(type -P bazel)"
  libraries=system
  if [[ -z "$path" ]]; then
    fact Bazel missing "none on PATH"
    if [[ "$os_id" == debian ]]; then
      missing_packages+=(bazel-bootstrap)
    else
      libraries=downloaded
      add "There is no Bazel." "$(bazel7_command)"
    fi
    return
  fi
  # It is Bazelisk, maybe, which downloads what it starts.
  said="$(timeout 60 "$path" --version 2>&1)"
  said="${said%%$'\n'*}"
  said="${said//"${escape}["*([0-9;])m/}" # Debian's launcher colours its errors
  version="${said#bazel }"
  if [[ "$version" == no_version ]]; then # as Debian builds it
    version="$(dpkg-query --show --showformat='${Version}' bazel-bootstrap 2> /dev/null)"
    version="${version%%[+-]*}"
  fi
  case "$version" in
    4.2.*) fact Bazel ok "$version (${path#"$root"})" ;;
    7.*)
      fact Bazel ok "$version (${path#"$root"})"
      libraries=downloaded
      ;;
    [0-9]*)
      fact Bazel wrong "$version (${path#"$root"})"
      replace_bazel "$path" "Bazel $version will not do."
      ;;
    *)
      fact Bazel wrong "of unknown version (${path#"$root"}): ${said:-it says nothing}"
      replace_bazel "$path" "Bazel does not say its version."
      ;;
  esac
}

# replace_bazel PATH WHY
replace_bazel() {
  local path="$1" why="$2 The course is built with Bazel 4.2.3, which Debian 12 has, or 7."
  if grep -qa bazelbuild/bazelisk "$path"; then
    libraries=downloaded
    add "$why" "export USE_BAZEL_VERSION=7.7.1"
  elif [[ -n "${USE_BAZEL_VERSION:-}" ]]; then
    add "$why USE_BAZEL_VERSION asks for $USE_BAZEL_VERSION." "unset USE_BAZEL_VERSION"
  elif has_package bazel-bootstrap && [[ "$path" != "$root/usr/bin/bazel" ]]; then
    add "$why Debian's is there, but comes later on PATH." "alias bazel=/usr/bin/bazel"
  else
    libraries=downloaded
    add "$why" "$(bazel7_command)"
  fi
}

bazel7_command() {
  local arch=x86_64
  if [[ "$HOSTTYPE" == aarch64 ]]; then arch=arm64; fi
  echo "${sudo}wget -O /usr/local/bin/bazel $bazel7-$arch && ${sudo}chmod +x /usr/local/bin/bazel"
}

check_glibc() {
  local version
  version="$(getconf GNU_LIBC_VERSION 2> /dev/null)"
  fact glibc "" "${version#glibc }"
}

# has_library PACKAGE: by the module that the build asks pkg-config for
# (third_party/libraries.bzl), since a library need not be Debian's.
has_library() {
  local module=""
  case "$1" in
    git | pkg-config | python3)
      type -P "$1" > /dev/null
      return
      ;;
    libabsl-dev) module=absl_strings ;;
    libbenchmark-dev) module=benchmark ;;
    libgmock-dev | libgtest-dev) module=gmock ;;
    libhwy-dev) module=libhwy ;;
    libopenblas-dev) module=openblas ;;
    nlohmann-json3-dev) module=nlohmann_json ;;
  esac
  if [[ -n "$module" ]] && type -P pkg-config > /dev/null; then
    pkg-config --exists "$module"
  else
    has_package "$1"
  fi
}

check_libraries() {
  local package packages all list=third_party/debian-packages.txt
  local -a missing=()
  packages="$(grep -v '^#' "$list")"
  all="all of $list"
  if [[ "$libraries" == downloaded ]]; then
    packages="$bazel7_packages"
    all="$packages; Bazel 7 downloads the others"
  fi
  for package in $packages; do
    case "$package" in
      g++ | bazel-bootstrap) continue ;; # looked at already
    esac
    if ! has_library "$package"; then missing+=("$package"); fi
  done
  if [[ "${#missing[@]}" -gt 0 ]]; then
    fact libraries missing "no ${missing[*]}"
    missing_packages+=("${missing[@]}")
  else
    fact libraries ok "$all"
  fi

  if [[ "${#missing_packages[@]}" -eq 0 ]]; then return; fi
  if type -P apt-get > /dev/null; then
    add "Packages are missing: ${missing_packages[*]}." \
      "${sudo}apt-get update && ${sudo}apt-get install -y ${missing_packages[*]}$shutdown"
  else
    add "Install what Debian calls ${missing_packages[*]}; this system has its own names." ""
  fi
}
