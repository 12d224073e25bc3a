#!/usr/bin/env bash
# Says what this machine has for the course, and on which devices each lesson runs, and
# gives a command for each missing part:
#
#   bazel run //:doctor      or, where Bazel does not work,      tools/doctor.sh
#
# Exits with 1 if the lessons cannot be built here. They run without a GPU, so
# a missing one is no failure. The work is done in tools/doctor/doctor.py.
if ! type -P python3 > /dev/null; then
  echo "There is no python3, which the build needs too. On Debian and Ubuntu:"
  echo "  sudo apt-get update && sudo apt-get install -y python3"
  exit 1
fi
exec python3 "$(dirname "$(readlink -f "$0")")/doctor/doctor.py" "$@"
