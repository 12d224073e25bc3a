# shellcheck shell=bash disable=SC2154
# What each lesson runs on. Sourced by tools/doctor.sh.

# virtual_cores DEVICES: how many cores each of so many virtual devices has.
virtual_cores() {
  local each=$((cores / $1))
  plural $((each > 0 ? each : 1)) core
}

# runs_on DEVICES: what --devices=auto gives to a lesson that uses so many
# (common/device/resolve_devices.cc).
runs_on() {
  local needs="$1" gpus="${#visible[@]}" count i names="" logical="" real=""
  if [[ "$use_gpus" == no ]]; then
    for ((i = 0; i < needs; i++)); do names+="cpu:$i, "; done
    echo "virtual: ${names%, } ($(virtual_cores "$needs")$( ((needs > 1)) && echo " each"))"
    return
  fi
  count=$((needs > gpus ? needs : gpus))
  for ((i = 0; i < count; i++)); do
    # On GPU i % gpus; shared if another device of the list is on it too.
    if ((i >= gpus || i + gpus < count)); then
      logical+="cuda:$i on GPU $((i % gpus)), "
    else
      real+="cuda:$i, "
    fi
  done
  echo "${real:+real: ${real%, }}${real:+${logical:+; }}${logical:+logical: ${logical%, }}"
}

print_lessons() {
  local line where list=chapters/cells.json gpus="${#visible[@]}"
  local pattern='"name": *"([a-z0-9_]+)".*"devices": *([0-9]+)'
  use_gpus=no
  if [[ "$toolkit_state" == ok && "$driver_ok" == yes && "$gpus" -gt 0 ]]; then
    use_gpus=yes
  fi
  echo
  echo "What the lessons run on$([[ "$use_gpus" == yes ]] && echo ", built with --config=cuda")"
  if [[ ! -r "$list" ]]; then
    echo "  not known: $list is not there"
    return
  fi
  while read -r line; do
    if [[ ! "$line" =~ $pattern ]]; then continue; fi
    where="$(runs_on "${BASH_REMATCH[2]}")"
    if [[ ! -e "chapters/${BASH_REMATCH[1]}/BUILD" ]]; then where="not there yet"; fi
    printf -v line '  %-20s%-11s' "${BASH_REMATCH[1]}" "$(plural "${BASH_REMATCH[2]}" device)"
    hanging "$line" "${line//?/ }" "$where"
  done < "$list"
  if [[ "$gpus" -gt 0 && "$use_gpus" == no ]]; then
    echo "  The $(plural "$gpus" GPU) cannot be used before what is said below is done."
  fi
}
