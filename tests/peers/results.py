"""The output of compare.py: rows, a table, and remarks, made of the samples."""
import os
import statistics

# The peer that uses all cores. It is compared with "ours_all", which uses all, too.
PYTORCH_ALL = "pytorch-all"

# The rate of slower cells says little: they are not about arithmetic.
LEAST_GFLOPS = 10


def kind(device):
    """The kind of --device: "cpu" or "cuda"."""
    return device.split(":")[0]


def median(samples):
    return statistics.median(samples) if samples else None


def smallest(samples):
    return min(samples) if samples else None


def spread(samples):
    """Half of the interquartile range, as a part of the median."""
    if not samples or len(samples) < 2:
        return None
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(samples)


def quotient(a, b):
    return None if a is None or b is None else a / b


def make_rows(samples, cells, device, peers):
    """A row per cell and peer (a name), with None for figures that do not exist.
    device: the value of --device."""
    rows = []
    for cell in cells:
        on = cell.on(kind(device))
        ours = samples[cell.name, "ours"]
        ours_ns = median(ours)
        ours_all = samples.get((cell.name, "ours_all"))
        ours_all_ns = median(ours_all)
        bound_ns = median(samples.get((cell.name, "bound")))
        flop = median(samples.get((cell.name, "flop")))
        in_turn_ns = median(samples.get((cell.name, "in_turn")))
        for peer in peers:
            theirs = samples.get((cell.name, peer))
            peer_ns = median(theirs)
            aim_ns = on.aim(bound_ns, peer_ns)
            rows.append({
                "cell": cell.name,
                "per": cell.per,
                "device": device,
                "ours_ns": ours_ns,
                "ours_min_ns": smallest(ours),
                "ours_spread": spread(ours),
                "ours_gflops": quotient(flop, ours_ns),
                "ours_all_ns": ours_all_ns,
                "ours_all_min_ns": smallest(ours_all),
                "ours_all_spread": spread(ours_all),
                "ours_all_gflops": quotient(flop, ours_all_ns),
                "peer": peer,
                "peer_ns": peer_ns,
                "peer_min_ns": smallest(theirs),
                "peer_spread": spread(theirs),
                "peer_gflops": quotient(flop, peer_ns),
                "ratio": quotient(peer_ns, ours_ns),
                "ratio_all": quotient(peer_ns, ours_all_ns) if peer == PYTORCH_ALL else None,
                "aim_ns": aim_ns,
                "aim_bounds": on.aim_bounds,
                "aim_ratio": on.aim_ratio,
                "aim_met": None if aim_ns is None else ours_ns <= aim_ns,
                "bound": on.bound,
                "bound_ns": bound_ns,
                "speed_up_over_in_turn": quotient(in_turn_ns, ours_ns),
                "rounds": len(ours),
            })
    return rows


def three_digits(x):
    decimals = 2 if x < 9.995 else 1 if x < 99.95 else 0
    return "%.*f" % (decimals, x)


def duration(ns):
    if ns is None:
        return ""
    if ns < 0.0995:  # such as an element on a GPU
        return three_digits(1000 * ns) + "ps"
    for unit, size in (("ns", 1), ("µs", 1e3), ("ms", 1e6)):
        if ns < 999.5 * size:
            return three_digits(ns / size) + unit
    return three_digits(ns / 1e9) + "s"


def percent(part):
    return "" if part is None else "%.0f%%" % (100 * part)


def times(ratio):
    return "%.2f" % ratio if ratio < 9.995 else "%.0f" % ratio


def markdown(header, lines):
    """A Markdown table; its first column is aligned left, the others right."""
    # At least 2, because a field of the rule needs a dash beside the colon.
    widths = [max([2] + [len(row[i]) for row in [header] + lines]) for i in range(len(header))]

    def line(fields):
        padded = [fields[0].ljust(widths[0])]
        padded += [field.rjust(width) for field, width in zip(fields[1:], widths[1:])]
        return "| %s |" % " | ".join(padded)

    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    return "\n".join([line(header), line(rule)] + [line(fields) for fields in lines])


def by_cell(rows):
    cells = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    return cells.values()


def cpu_table(rows):
    lines = []
    for group in by_cell(rows):
        row = group[0]
        fields = [row["cell"], duration(row["ours_ns"]), percent(row["ours_spread"]),
                  duration(row["aim_ns"]), duration(row["bound_ns"])]
        fields += [peer_field(row, "ratio") for row in group if row["peer"] != PYTORCH_ALL]
        fields.append(duration(row["ours_all_ns"]))
        fields += [peer_field(row, "ratio_all") for row in group if row["peer"] == PYTORCH_ALL]
        lines.append(fields)
    header = ["cell", "ours", "±", "aim", "bound"]
    header += [row["peer"] for row in group if row["peer"] != PYTORCH_ALL]
    return markdown(header + ["ours-all", PYTORCH_ALL], lines)


def peer_field(row, ratio):
    if row[ratio] is None:
        return duration(row["peer_ns"])
    return duration(row["peer_ns"]) + " " + times(row[ratio])


def cuda_table(rows):
    lines = []
    for row in rows:
        bound = ""
        if row["bound_ns"] is not None:
            bound = duration(row["bound_ns"]) + " " + percent(row["bound_ns"] / row["ours_ns"])
        lines.append([row["cell"], duration(row["ours_ns"]), percent(row["ours_spread"]),
                      peer_field(row, "ratio"), bound, judged_aim(row)])
    return markdown(["cell", "ours", "±", rows[0]["peer"], "bound", "aim"], lines)


def judged_aim(row):
    """An aim that is a ratio, and whether it is met: "1.50 met"."""
    if row["aim_ratio"] is not None:
        aim = times(row["aim_ratio"])
    elif row["aim_bounds"] is not None:
        aim = percent(1 / row["aim_bounds"])
    else:
        return ""
    return aim + " " + {True: "met", False: "missed", None: "n/a"}[row["aim_met"]]


def table(rows):
    return {"cpu": cpu_table, "cuda": cuda_table}[kind(rows[0]["device"])](rows)


def remarks(rows):
    """The lines below the table."""
    lines = []
    for group in by_cell(rows):
        row = group[0]
        if row["ours_gflops"] is not None and row["ours_gflops"] >= LEAST_GFLOPS:
            rates = [("ours", row["ours_gflops"]), ("ours-all", row["ours_all_gflops"])]
            rates += [(row["peer"], row["peer_gflops"]) for row in group]
            lines.append("%s in GFLOP/s: %s" % (row["cell"], ", ".join(
                "%s %.0f" % rate for rate in rates if rate[1] is not None)))
        if row["speed_up_over_in_turn"] is not None:
            lines.append("%s: %.2f times as fast as one device at a time" % (
                row["cell"], row["speed_up_over_in_turn"]))
    slower = ["%s %.3f" % (row["cell"], row["ratio_all"]) for row in rows
              if row["ratio_all"] is not None and row["ratio_all"] < 1]
    if slower:
        lines.append("slower than %s with all cores: %s" % (PYTORCH_ALL, ", ".join(slower)))
    missed = [row for row, *_ in by_cell(rows) if row["aim_met"] is False]
    lines += ["aim missed: %s takes %s, aim %s" % (
        row["cell"], duration(row["ours_ns"]), duration(row["aim_ns"])) for row in missed]
    return lines


def processor():
    try:
        with open("/proc/cpuinfo") as info:
            names = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return "processor"


LEGENDS = {
    "cpu": """\
Medians of %s; ± is half the interquartile range of ours. ours has half
of the cores, ours-all and pytorch-all have all. A peer's second figure is its
time divided by that of ours, or of ours-all for pytorch-all: above 1, ours is
faster.""",
    "cuda": """\
Medians of %s; ± is half the interquartile range of ours. The peer's
second figure is its time divided by that of ours: above 1, ours is faster. The
bound's is its time divided by that of ours, in percent. An aim is the least
that one of the two should be; n/a: that one was not measured.""",
}


# A machine is quiet while other programs take less of its cores.
QUIET = 0.03


def quietness(load_before, load_after, realtime, others):
    """others: the part of the cores that other programs took."""
    priority = "with" if realtime else "without"
    mark = "NOT QUIET: " if others >= QUIET else ""
    return ("load %.1f before and %.1f after, %s real-time priority\n"
            "%sother programs took %s of the cores" % (
                load_before, load_after, priority, mark, percent(others)))


def heading(device, libraries, devices, rounds, quiet):
    """devices: the benchmark's descriptions of them. quiet: of quietness."""
    lines = ["%d x %s" % (os.cpu_count(), processor()), quiet]
    lines += devices
    lines.append("Peers: " + (", ".join(dict.fromkeys(libraries)) or "none"))
    lines.append(LEGENDS[kind(device)] % (
        "%d round%s" % (rounds, "" if rounds == 1 else "s")))
    return lines
