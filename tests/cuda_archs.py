#!/usr/bin/env python3
"""Says which GPU architectures are in programs that nvcc compiled.

    python3 tests/cuda_archs.py PROGRAM...

Prints the machine code and the PTX that every kernel has, as "sm_80 sm_90 and
PTX of sm_90"; "no kernels" for a program without any. Exits with 1 if kernels
differ in what they have, or if a file cannot be read.

As `cuobjdump --list-elf --list-ptx` does, which not every toolkit brings along:
the kernels of each source are in the ELF section .nv_fatbin, as a header of 16
bytes and entries, of which each names its kind and architecture.
"""

import struct
import sys

MAGIC = 0xBA55ED50
KINDS = {1: "PTX", 2: "ELF"}


class Malformed(Exception):
    """The file is no program, or has an unknown layout."""


def unpack(layout, data, offset):
    try:
        return struct.unpack_from("<" + layout, data, offset)
    except struct.error as error:
        raise Malformed("it ends within a header") from error


def fatbin_section(data):
    """The bytes of .nv_fatbin in an ELF file of 64 bits; empty if it has none."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise Malformed("it is no ELF file of 64 bits, low byte first")
    (table,) = unpack("Q", data, 0x28)
    size, count, names = unpack("HHH", data, 0x3A)
    sections = [unpack("IIQQQQ", data, table + i * size) for i in range(count)]
    names_at = sections[names][4]
    for name, _, _, _, offset, length in sections:
        start = names_at + name
        if data[start:data.index(b"\0", start)] == b".nv_fatbin":
            return data[offset:offset + length]
    return b""


def sources(section):
    """For each source file, the set of ("ELF" or "PTX", architecture)."""
    found = []
    offset = 0
    while offset + 16 <= len(section):
        magic, _, header, size = unpack("IHHQ", section, offset)
        if magic != MAGIC:
            # Padding up to the next one.
            offset += 8
            continue
        offset += header
        end = offset + size
        archs = set()
        while offset < end:
            kind, _, header, size = unpack("HHIQ", section, offset)
            (arch,) = unpack("I", section, offset + 28)
            if kind not in KINDS or header + size == 0 or not 10 <= arch <= 999:
                raise Malformed("an entry of .nv_fatbin is of a kind not known here")
            archs.add((KINDS[kind], arch))
            offset += header + size
        found.append(archs)
    return found


def describe(archs):
    code = ["sm_%d" % arch for kind, arch in sorted(archs) if kind == "ELF"]
    ptx = ["sm_%d" % arch for kind, arch in sorted(archs) if kind == "PTX"]
    return " and ".join(filter(None, [" ".join(code), ptx and "PTX of " + " ".join(ptx)]))


def main(paths):
    seen = {}
    for path in paths:
        try:
            with open(path, "rb") as file:
                found = sources(fatbin_section(file.read()))
        except (OSError, Malformed) as error:
            print("%s: %s" % (path, error), file=sys.stderr)
            return 1
        for archs in found:
            seen.setdefault(describe(archs), path)
    if len(seen) > 1:
        for text, path in seen.items():
            print("%s: a source has %s" % (path, text), file=sys.stderr)
        return 1
    print(*seen or ["no kernels"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
