"""Says what this machine has for the course: see tools/doctor.sh."""
import argparse
import glob
import os
import re
import sys

import build
import chinese
import cuda
import host
from machine import Machine, plural


def count_pci_gpus(m):
    """NVIDIA's GPUs on the PCI bus, driver or not: display controllers of any kind."""
    folders = [m.shown(f) for f in glob.glob(glob.escape(m.root) + "/sys/bus/pci/devices/*")]
    return sum(m.read(f + "/class").startswith("0x03") and m.read(f + "/vendor").strip() == "0x10de"
               for f in folders)


def virtual(cores, count):
    return plural(max(cores // count, 1), "core")


def runs_on(needs, gpus, cores):
    """What --devices=auto gives to a lesson that uses `needs` devices
    (common/device/resolve_devices.cc)."""
    if not gpus:
        names = ", ".join("cpu:%d" % i for i in range(needs))
        return "virtual: %s (%s%s)" % (names, virtual(cores, needs), " each" if needs > 1 else "")
    real, logical = [], []
    for i in range(max(needs, gpus)):
        # On GPU i % gpus; shared if another device of the list is on it too.
        if i >= gpus or i + gpus < needs:
            logical.append("cuda:%d on GPU %d" % (i, i % gpus))
        else:
            real.append("cuda:%d" % i)
    return "; ".join(kind + ": " + ", ".join(names)
                     for kind, names in (("real", real), ("logical", logical)) if names)


def say_lessons(m, visible, use_gpus, cores):
    m.say()
    m.say("What the lessons run on" + (", built with --config=cuda" if use_gpus else ""))
    path = "chapters/chapters.bzl"
    chapters = re.findall(r'^ *"(\w+)": (\d+),', m.read(m.shown(m.repository) + "/" + path), re.M)
    if not chapters:
        m.say("not known: %s is not there" % path, "  ")
        return
    for name, devices in chapters:
        m.say(runs_on(int(devices), visible if use_gpus else 0, cores),
              "  %-20s%s" % (name, m.padded(plural(int(devices), "device"), 11)))
    if visible and not use_gpus:
        m.say("The %s cannot be used before what is said below is done." % plural(visible, "GPU"),
              "  ")


def examine(m):
    """Fills the machine's report. Returns the exit code."""
    m.pci_gpus = count_pci_gpus(m)
    m.smi = m.which("nvidia-smi", "/usr/lib/wsl/lib")
    cores = host.count_cores(m)
    m.say("This machine")
    optional = build.check(m)
    needed = len(m.todo)  # what is found so far, no build does without
    if optional:
        build.add_optional(m, optional)
    builds, visible = cuda.check(m)
    m.fact("", "", "cpu:0 (virtual, %s), or cpu:0 and cpu:1 (virtual, %s each)" % (
        virtual(cores, 1), virtual(cores, 2)))
    host.check(m, cores)
    use_gpus = builds and visible > 0
    say_lessons(m, visible, use_gpus, cores)

    # Where there is a GPU, what it needs is missing too.
    if m.real_gpus or m.pci_gpus:
        m.todo, m.todo_gpu = m.todo + m.todo_gpu, []
    m.say()
    if m.todo:
        m.say("To do, in %s:" % m.shown(m.repository))
        m.say_numbered(m.todo)
    else:
        m.say("Nothing is missing. To run the course: bazel run%s //:course" % (
            " --config=cuda" if use_gpus else ""))
    if needed:
        m.say()
        m.say("The lessons cannot be built before %s%d is done." % (
            "1 to " if needed > 1 else "", needed))
    if m.todo_gpu:
        m.say()
        m.say("The lessons run without a GPU. To use one:")
        m.say_numbered(m.todo_gpu)
    return 1 if needed else 0


def main():
    parser = argparse.ArgumentParser(
        prog="bazel run //:doctor --",
        description="Says what this machine has for the course, and what is missing.")
    parser.add_argument("--lang", choices=["en", "zh"], help="English or Chinese; else as LANG says")
    lang = parser.parse_args().lang
    repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    m = Machine(repository, dict(os.environ, LC_ALL="C"), os.environ.get("D2L_DOCTOR_ROOT", ""),
                lang == "zh" if lang else chinese.is_wanted(os.environ))
    code = examine(m)
    try:
        with open(1, "wb", closefd=False) as out:
            out.write(os.fsencode("\n".join(m.lines) + "\n"))
    except OSError as error:
        sys.stderr.write("The doctor could not write its report: %s.\n" % error.strerror)
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
