# shellcheck shell=bash disable=SC2154
# Memory, cores and load, of the machine and of the container. Sourced by
# tools/doctor.sh.

# cgroup_folders CONTROLLER: prints those of this process, version 1 or 2, the
# innermost first. Seen from within a container, only the last may be there.
cgroup_folders() {
  local id controllers path base
  while IFS=: read -r id controllers path; do
    if [[ "$id" == 0 && -z "$controllers" ]]; then
      base="$root/sys/fs/cgroup"
    elif [[ ",$controllers," == *",$1,"* ]]; then
      base="$root/sys/fs/cgroup/$1"
    else
      continue
    fi
    while [[ -n "${path%/}" ]]; do
      echo "$base$path"
      path="${path%/*}"
    done
    echo "$base"
  done 2> /dev/null < "$root/proc/self/cgroup"
}

check_memory() {
  local key value folder limit used text least total=0 available=0
  while read -r key value _; do
    case "$key" in
      MemTotal:) total="$value" ;;
      MemAvailable:) available="$value" ;;
    esac
  done 2> /dev/null < "$root/proc/meminfo"
  text="$(gib "$available") of $(gib "$total") GiB free"
  least="$total"
  while read -r folder; do
    # Of one version or the other.
    limit="$(first_line "$folder/memory.max")$(first_line "$folder/memory.limit_in_bytes")"
    used="$(first_line "$folder/memory.current")$(first_line "$folder/memory.usage_in_bytes")"
    if [[ ! "$limit" =~ ^[0-9]+$ || $((limit / 1024)) -ge "$least" ]]; then continue; fi
    least=$((limit / 1024))
    text="$(gib "$available") of the machine's $(gib "$total") GiB free; this
      container may have $(gib "$least") GiB and uses $(gib $((${used:-0} / 1024)))"
  done < <(cgroup_folders memory)
  fact memory "$([[ "$least" -lt "$total" ]] && echo limited)" "$text"
}

# Sets cores, counted as the programs do.
count_cores() {
  local key list range
  cores=0
  while read -r key list; do
    if [[ "$key" != Cpus_allowed_list: ]]; then continue; fi
    for range in ${list//,/ }; do cores=$((cores + ${range#*-} - ${range%-*} + 1)); done
  done 2> /dev/null < "$root/proc/self/status"
  if [[ "$cores" -eq 0 ]]; then cores=1; fi
}

check_cores() {
  local line name="" folder quota period percent=$((cores * 100))
  while read -r line; do
    if [[ "$line" == "model name"* ]]; then name="${line#*: }"; fi
  done 2> /dev/null < "$root/proc/cpuinfo"
  while read -r folder; do
    # "200000 100000", or "max 100000"; in version 1 two files.
    read -r quota period <<< "$(first_line "$folder/cpu.max")"
    if [[ -z "$quota" ]]; then
      quota="$(first_line "$folder/cpu.cfs_quota_us")"
      period="$(first_line "$folder/cpu.cfs_period_us")"
    fi
    if [[ "$quota" =~ ^[0-9]+$ && "${period:-0}" -gt 0 \
      && $((quota * 100 / period)) -lt "$percent" ]]; then
      percent=$((quota * 100 / period))
    fi
  done < <(cgroup_folders cpu)
  if [[ "$percent" -lt $((cores * 100)) ]]; then
    printf -v line '%d.%02d' $((percent / 100)) $((percent % 100))
    fact cores limited "$cores${name:+, $name}; this container has the time of
      $line of them, so figures will vary"
  else
    fact cores "" "$cores${name:+, $name}"
  fi
}

check_load() {
  local load percent
  read -r load _ <<< "$(first_line "$root/proc/loadavg")"
  if [[ ! "$load" =~ ^([0-9]+)\.([0-9][0-9])$ ]]; then
    fact load "" "not known"
    return
  fi
  percent=$((BASH_REMATCH[1] * 100 + 10#${BASH_REMATCH[2]}))
  if [[ "$percent" -gt $((cores * 50)) ]]; then
    fact load high "$load on $(plural "$cores" core)"
    add "Something else keeps the processor busy, load $load on
      $(plural "$cores" core): figures will be noisy. See what it is, and end it:" \
      "top -o %CPU"
  else
    fact load ok "$load on $(plural "$cores" core)"
  fi
}
