#!/usr/bin/env python3
"""Says which C++ files use a name of Abseil without including its header.

Usage: tools/check_includes.py FILE...

What another header brings today, it need not bring with the next Abseil. A file may
rely on its own header, foo.cc and foo_test.cc on foo.h; programs of learners, on
common/d2l.h. Exits with 1 if it finds anything.
"""
import os
import re
import sys

# Patterns of names, by header.
HEADERS = {
    "base/thread_annotations.h":
        r"ABSL_(\w*GUARDED_BY|\w*LOCKS?_\w+|\w*LOCKABLE|\w+_LOCK_FUNCTION|UNLOCK_FUNCTION"
        r"|\w+_TRYLOCK_FUNCTION|NO_THREAD_SAFETY_ANALYSIS)",
    "cleanup/cleanup.h": r"absl::Cleanup",
    "container/flat_hash_map.h": r"absl::flat_hash_map",
    "container/flat_hash_set.h": r"absl::flat_hash_set",
    "container/inlined_vector.h": r"absl::InlinedVector",
    "flags/commandlineflag.h": r"absl::CommandLineFlag",
    "flags/declare.h": r"ABSL_DECLARE_FLAG",
    "flags/flag.h": r"absl::[GS]etFlag|ABSL_FLAG",
    "flags/parse.h": r"absl::ParseCommandLine",
    "flags/reflection.h": r"absl::FindCommandLineFlag",
    "flags/usage.h": r"absl::SetProgramUsageMessage",
    "functional/function_ref.h": r"absl::FunctionRef",
    "numeric/int128.h": r"absl::(u?int128|U?[Ii]nt128\w+)",
    "status/status.h": r"absl::(Status|OkStatus|StatusCode|\w+Error|Is[A-Z]\w+)",
    "status/statusor.h": r"absl::StatusOr",
    "strings/ascii.h": r"absl::(ascii_\w+|\w+AsciiWhitespace|RemoveExtraAsciiWhitespace)",
    "strings/escaping.h": r"absl::(C\w*[Ee]scape|BytesToHexString)",
    "strings/match.h": r"absl::(StrContains|StartsWith|EndsWith)\w*",
    "strings/numbers.h": r"absl::Simple\w+",
    "strings/str_cat.h": r"absl::(StrCat|StrAppend|AlphaNum|Hex|Dec|kZeroPad\d+)",
    "strings/str_format.h":
        r"absl::(Str(Append)?Format|FormatArg|FormatSpec|FormatUntyped|UntypedFormatSpec)",
    "strings/str_join.h": r"absl::StrJoin",
    "strings/str_replace.h": r"absl::StrReplaceAll",
    "strings/str_split.h":
        r"absl::(StrSplit|MaxSplits|ByAnyChar|ByString|SkipEmpty|SkipWhitespace|AllowEmpty)",
    "strings/string_view.h": r"absl::string_view",
    "strings/strip.h": r"absl::(Consume|Strip)(Prefix|Suffix)",
    "strings/substitute.h": r"absl::Substitute",
    "types/span.h": r"absl::(Span|Make(Const)?Span)",
}
USE = re.compile(r"\babsl::\w+|\bABSL_\w+")
NO_CODE = re.compile(r"""//[^\n]*|'(\\.|[^'\\])'|R"(\w*)\(.*?\)\2"|"(\\.|[^"\\\n])*\"""", re.DOTALL)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def included(text):
    return set(re.findall(r'#include "absl/(.*?)"', text))


def problems(path, text, own_header):
    """Lines about a file's text. own_header is the text of foo.h, for foo.cc."""
    if '#include "common/d2l.h"' in text:
        return
    included_headers = included(text) | included(own_header)
    for name in sorted(set(USE.findall(NO_CODE.sub("", text)))):
        headers = [header for header, names in HEADERS.items() if re.fullmatch(names, name)]
        if not headers:
            yield "%s uses %s, whose header tools/check_includes.py does not know" % (path, name)
        elif headers[0] not in included_headers:
            yield '%s uses %s without #include "absl/%s"' % (path, name, headers[0])


def main():
    found = 0
    for path in sys.argv[1:]:
        header = re.sub(r"(_test)?\.\w+$", ".h", path)
        own_header = read(header) if os.path.exists(header) else ""
        for problem in problems(path, read(path), own_header):
            print(problem)
            found += 1
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
