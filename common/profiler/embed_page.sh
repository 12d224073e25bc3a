#!/usr/bin/env bash
# embed_page.sh PAGE STYLE SCRIPT...: writes a C++ header to stdout that holds
# the page with its style and scripts in place, as kHtmlTimelinePage.
set -euo pipefail
page="$1"
style="$2"
shift 2
delimiter=page
if grep -qF ")$delimiter\"" "$page" "$style" "$@"; then
  echo "$page and its parts must not contain )$delimiter\"" >&2
  exit 1
fi
printf '#include "absl/strings/string_view.h"\n\nnamespace d2l {\n'
printf 'inline constexpr absl::string_view kHtmlTimelinePage ='
printf ' R"%s(' "$delimiter"
while IFS= read -r line; do
  case "$line" in
    '/* @style@ */') cat "$style" ;;
    '/* @script@ */') cat "$@" ;;
    *) printf '%s\n' "$line" ;;
  esac
done < "$page"
printf ')%s";\n}  // namespace d2l\n' "$delimiter"
