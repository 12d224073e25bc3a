# shellcheck shell=bash
# How the doctor writes: plain text of 80 columns. Sourced by tools/doctor.sh.

columns=80
label_columns=16

# wrap WIDTH TEXT: fills the array `lines`. A line break in TEXT is a space. A
# word longer than a line, such as a path, stays in one piece.
wrap() {
  local width="$1" line="" word
  local -a words
  read -ra words <<< "${2//[[:cntrl:]]/ }"
  lines=()
  for word in "${words[@]}"; do
    if [[ -n "$line" && $((${#line} + 1 + ${#word})) -gt "$width" ]]; then
      lines+=("$line")
      line="$word"
    else
      line="${line:+$line }$word"
    fi
  done
  lines+=("$line")
}

# hanging FIRST REST TEXT: a paragraph whose first line begins with FIRST, the
# others with REST, which is as long.
hanging() {
  local prefix="$1" line
  wrap $((columns - ${#1})) "$3"
  for line in "${lines[@]}"; do
    printf '%s%s\n' "$prefix" "$line"
    prefix="$2"
  done
}

# fact LABEL STATUS TEXT: a line, or a few; the status is at the right.
fact() {
  local i width=$((columns - label_columns - 9)) label="  $1"
  wrap "$width" "$3"
  for i in "${!lines[@]}"; do
    if [[ "$i" -eq 0 && -n "$2" ]]; then
      printf '%-*s%-*s %8s\n' "$label_columns" "$label" "$width" "${lines[0]}" "$2"
    else
      printf '%-*s%s\n' "$label_columns" "$label" "${lines[i]}"
    fi
    label=""
  done
}

# command_text INDENT COMMAND: in as many lines as it needs, which can be copied
# together: all but the last end in a backslash. Quoted text is not broken.
command_text() {
  local indent="$1" line="" word part="" quotes
  local -a words
  read -ra words <<< "$2"
  for word in "${words[@]}"; do
    part="${part:+$part }$word"
    quotes="${part//[^\']/}"
    if ((${#quotes} % 2 == 1)); then continue; fi
    if [[ -n "$line" && $((${#indent} + ${#line} + ${#part} + 3)) -gt "$columns" ]]; then
      printf '%s%s \\\n' "$indent" "$line"
      indent="$1  "
      line="$part"
    else
      line="${line:+$line }$part"
    fi
    part=""
  done
  printf '%s%s\n' "$indent" "$line"
}

# items TEXTS COMMANDS: numbered; the names of two arrays of the same length.
items() {
  local -n texts="$1" commands="$2"
  local i
  for i in "${!texts[@]}"; do
    hanging "  $((i + 1)). " "     " "${texts[i]}"
    if [[ -n "${commands[i]}" ]]; then command_text "       " "${commands[i]}"; fi
  done
}

# plural COUNT NOUN: "1 GPU", "2 GPUs".
plural() {
  if [[ "$1" -eq 1 ]]; then echo "1 $2"; else echo "$1 $2s"; fi
}

# gib KIBIBYTES: "23.5".
gib() {
  local tenths=$(($1 * 10 / 1048576))
  echo "$((tenths / 10)).$((tenths % 10))"
}

# first_line FILE: empty if it cannot be read.
first_line() {
  local line=""
  { read -r line < "$1"; } 2> /dev/null
  printf '%s\n' "$line"
}
