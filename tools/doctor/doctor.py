"""Says what this machine has for the course: see tools/doctor.sh."""
import argparse
import glob
import math
import os
import re
import sys

import build
import cuda
import host
import machine
from machine import _, ngettext, padded


def count_pci_gpus(m):
    """NVIDIA's GPUs on the PCI bus, even without a driver: display controllers of any kind."""
    folders = [m.shown(f) for f in glob.glob(glob.escape(m.root) + "/sys/bus/pci/devices/*")]
    return sum(m.read(f + "/class").startswith("0x03") and m.read(f + "/vendor").strip() == "0x10de"
               for f in folders)


def share(cores, count):
    """The cores of each of `devices` virtual devices."""
    cores = max(cores // count, 1)
    return ngettext("{} core", "{} cores", cores).format(cores)


def pace(cores):
    """The pace of two virtual devices (PaceForThisMachine in common/lesson/cell)."""
    return 2 + math.ceil(2 * 2 * max(cores // 2, 1) / cores)


def runs_on(needs, gpus, cores):
    """The devices of --devices=auto for a lesson that uses `needs` devices
    (common/device/resolve_devices.cc)."""
    if not gpus:
        return (_("virtual: {} ({} each)") if needs > 1 else _("virtual: {} ({})")).format(
            ", ".join("cpu:%d" % i for i in range(needs)), share(cores, needs))
    real, logical = [], []
    for i in range(max(needs, gpus)):
        # Device i is on GPU i % gpus, and shares it with the other devices there.
        if i >= gpus or i + gpus < needs:
            logical.append(_("cuda:{} on GPU {}").format(i, i % gpus))
        else:
            real.append("cuda:%d" % i)
    return "; ".join(kind.format(", ".join(names)) for kind, names in (
        (_("real: {}"), real), (_("logical: {}"), logical)) if names)


def say_lessons(m, visible, use_gpus, cores):
    m.say()
    m.say(_("What the lessons run on, built with --config=cuda") if use_gpus else
          _("What the lessons run on"))
    path = "chapters/chapters.bzl"
    chapters = re.findall(r'^ *"(\w+)": (\d+),', m.read(m.shown(m.repository) + "/" + path), re.M)
    if not chapters:
        m.say(_("not known: {} is not there").format(path), "  ")
        return
    for name, devices in chapters:
        count = ngettext("{} device", "{} devices", int(devices)).format(devices)
        m.say(runs_on(int(devices), visible if use_gpus else 0, cores),
              "  %-20s%s" % (name, padded(count, 11)))
    if visible and not use_gpus:
        m.say(ngettext("The {} GPU cannot be used before the steps below are done.",
                       "The {} GPUs cannot be used before the steps below are done.",
                       visible).format(visible), "  ")


def examine(m):
    """Fills the machine's report. Returns the exit code."""
    m.pci_gpus = count_pci_gpus(m)
    m.smi = m.which("nvidia-smi", "/usr/lib/wsl/lib")
    cores = host.count_cores(m)
    m.say(_("This machine"))
    optional = build.check(m)
    needed = len(m.todo)  # every build needs what was found missing so far
    if optional:
        build.add_optional(m, optional)
    builds, visible = cuda.check(m)
    m.fact("", "", _("cpu:0 (virtual, {}), or cpu:0 and cpu:1 (virtual, {} each)").format(
        share(cores, 1), share(cores, 2)))
    m.fact("", "", _("the two at a pace of {} in cells about several devices (--pace)").format(
        pace(cores)))
    host.check(m, cores)
    use_gpus = builds and visible > 0
    say_lessons(m, visible, use_gpus, cores)

    # If there is a GPU, the parts that it needs are also missing.
    if m.real_gpus or m.pci_gpus:
        m.todo, m.todo_gpu = m.todo + m.todo_gpu, []
    m.say()
    if m.todo:
        m.say(_("To do, in {}:").format(m.shown(m.repository)))
        m.say_numbered(m.todo)
    else:
        m.say(_("Nothing is missing. To run the course: {}").format(
            "bazel run --config=cuda %s//:course" % (
                "--//:cuda_archs=%s " % ",".join(m.archs) if m.archs else "")
            if use_gpus else "bazel run //:course"))
    if needed:
        m.say()
        m.say(ngettext("The lessons cannot be built before {} is done.",
                       "The lessons cannot be built before 1 to {} is done.",
                       needed).format(needed))
    if m.todo_gpu:
        m.say()
        m.say(_("The lessons run without a GPU. To use one:"))
        m.say_numbered(m.todo_gpu)
    return 1 if needed else 0


def main():
    parser = argparse.ArgumentParser(
        prog="bazel run //:doctor --",
        description="Says what this machine has for the course, and what is missing.")
    parser.add_argument("--lang", choices=["en", "zh"], help="English or Chinese; else as LANG says")
    machine.language = parser.parse_args().lang or machine.course_texts.system_language()
    repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    m = machine.Machine(repository, dict(os.environ, LC_ALL="C"), os.environ.get("D2L_DOCTOR_ROOT", ""))
    code = examine(m)
    try:
        with open(1, "wb", closefd=False) as out:
            out.write(os.fsencode("\n".join(m.lines) + "\n"))
    except OSError as error:
        sys.stderr.write(_("The doctor could not write its report: {}.").format(
            error.strerror) + "\n")
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
