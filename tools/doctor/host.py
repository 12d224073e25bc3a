"""Memory, cores and load of the machine and of the container."""
import re

from machine import _, ngettext


def gib(kib):
    return "%d.%d" % (kib // 1048576, kib * 10 // 1048576 % 10)


def cgroups(m, controller):
    """The folders of this process, of version 1 or 2, the innermost first. Seen from
    within a container, only the last may be there."""
    for line in m.read("proc/self/cgroup").splitlines():
        number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        base = "sys/fs/cgroup"
        if controller in controllers.split(","):
            base += "/" + controller
        elif (number, controllers) != ("0", ""):
            continue
        while path.rstrip("/"):
            yield base + path + "/"
            path = path.rpartition("/")[0]
        yield base + "/"


def check_memory(m):
    def field(key):
        return int(re.match(r"\d*", m.field("proc/meminfo", key))[0] or 0)
    total, available = field("MemTotal"), field("MemAvailable")
    text, least = _("{} of {} GiB free").format(gib(available), gib(total)), total
    for group in cgroups(m, "memory"):
        # A file of either version.
        limit = m.number(group + "memory.max") or m.number(group + "memory.limit_in_bytes")
        used = m.number(group + "memory.current") or m.number(group + "memory.usage_in_bytes")
        if limit and limit // 1024 < least:
            least = limit // 1024
            text = _("{} of the machine's {} GiB free; this container may have {} GiB and "
                     "uses {}").format(*map(gib, (available, total, least, (used or 0) // 1024)))
    m.fact("memory", "limited" if least < total else "", text)


def count_cores(m):
    """Counts as the programs do."""
    count = 0
    for first, last in re.findall(r"(\d+)(?:-(\d+))?",
                                  m.field("proc/self/status", "Cpus_allowed_list")):
        count += int(last or first) - int(first) + 1
    return count or 1


def check_cores(m, cores):
    share = cores * 100
    for group in cgroups(m, "cpu"):
        # "200000 100000", or "max 100000"; in version 1 two files.
        quota = m.read(group + "cpu.max").split() or [
            m.read(group + "cpu.cfs_" + name + "_us").strip() for name in ("quota", "period")]
        if len(quota) == 2 and all(q.isdigit() and int(q) > 0 for q in quota):
            share = min(share, int(quota[0]) * 100 // int(quota[1]))
    name = m.field("proc/cpuinfo", "model name")
    text, limited = "%d%s" % (cores, name and ", " + name), share < cores * 100
    if limited:
        text = _("{}; this container has the time of {} of them, so figures will vary").format(
            text, "%d.%02d" % (share // 100, share % 100))
    m.fact("cores", "limited" if limited else "", text)


def check_load(m, cores):
    load = m.read("proc/loadavg").split(" ")[0]
    text = ngettext("{} on {} core", "{} on {} cores", cores).format(load, cores)
    if not re.fullmatch(r"\d+\.\d\d", load):
        m.fact("load", "", _("not known"))
    elif float(load) > cores / 2:
        m.fact("load", "high", text, _(
            "Something else keeps the processor busy, load {}: figures will be noisy. See what "
            "it is, and close it if you can; verdicts say INCONCLUSIVE otherwise:").format(text), "top -o %CPU", gpu=False)
    else:
        m.fact("load", "ok", text)


def check(m, cores):
    check_memory(m)
    check_cores(m, cores)
    check_load(m, cores)
