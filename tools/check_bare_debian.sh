#!/usr/bin/env bash
# Types the commands of README.md, unchanged, into a bare Debian, as a user who is not
# root: the first (packages and a cell), and the second (the tests); then //:course. On
# Debian 12, the RUN lines of .devcontainer/Dockerfile follow.
#
#   tools/check_bare_debian.sh [BAZELRC [CACHE [RELEASE [TESTS]]]]
#
# The user's ~/.bazelrc is the file BAZELRC. The folder CACHE, a disk cache of Bazel's,
# appears as /cache; each release needs one of its own, since the system's headers are no
# inputs of Bazel's. RELEASE is bookworm, or trixie for Debian 13. TESTS, such as
# "bazel test //common/tensor/...", stands for the second command. mmdebstrap makes the
# system from Debian's mirror in $TMPDIR or /tmp (5 GB); it is removed at the end, with its
# processes. Needs root. Exits with 77 where such a system cannot be made.
set -euo pipefail
cd "$(dirname "$0")/.."

release="${3:-bookworm}"
system="$(mktemp -d)"
trap 'rm -rf "$system"' EXIT
root="$system/debian" learner="$system/debian/home/learner"
if ! mmdebstrap --quiet --variant=minbase "$release" "$root" \
  || ! unshare --mount --pid --fork chroot "$root" true; then
  echo "No bare Debian can be made here: that needs root, mmdebstrap and a mirror."
  exit 77
fi
echo 'Acquire::Retries "3";' > "$root/etc/apt/apt.conf.d/80-retries"
mkdir "$root/cache"

# inside USER COMMAND: runs a command line, in its own processes and mounts.
inside() {
  unshare --mount --pid --fork bash -euc '
    root="$1" cache="$2" user="$3"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    if [[ -n "$cache" ]]; then mount --bind "$cache" "$root/cache"; fi
    exec chroot "$root" su --login "$user" --command "$4"
  ' bash "$root" "${cache:-}" "$@"
}

# try USER COMMAND: prints it, runs it, and prints its time.
try() {
  local begin="$SECONDS"
  echo "$ $2"
  inside "$1" "set -e; test ! -d d2l || cd d2l; $2"
  echo "[bare Debian, $release] $((SECONDS - begin)) s"
}

mapfile -t runs < <(sed -n 's/^RUN //p' .devcontainer/Dockerfile)
try root "${runs[0]}" # makes the user
git clone --quiet . "$learner/d2l"
if [[ -n "${1:-}" ]]; then cp "$1" "$learner/.bazelrc"; fi
if [[ -n "${2:-}" ]]; then
  cache="$(readlink -f "$2")"
  chmod -R a+rwX "$cache"
fi
chroot "$root" chown -R learner: /home/learner
try learner "$(.ci/readme_block 1)"
try learner "${4:-$(.ci/readme_block 2)}"
try learner "bazel run //:course"
if [[ "$release" != bookworm ]]; then exit; fi
for run in "${runs[@]:1}"; do try learner "$run"; done
