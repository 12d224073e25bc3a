"""CUDA's toolkit, driver and devices, found as the build and the programs find them."""
import glob
import os
import re

from machine import _, ngettext

REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos/"
KEYRING = "cuda-keyring_1.1-1_all.deb"
PATIENCE = 20  # seconds for nvidia-smi, which waits if the driver hangs
# The CUDA of a driver's branch, from NVIDIA's release notes of CUDA.
BRANCHES = ((580, "13.0"), (575, "12.9"), (570, "12.8"), (565, "12.7"), (560, "12.6"),
            (555, "12.5"), (550, "12.4"), (545, "12.3"), (535, "12.2"), (530, "12.1"),
            (525, "12.0"))
IN_CONTAINER = "docker run --gpus=all -it IMAGE"


def numbers(version):
    """"12.10" as (12, 10)."""
    return tuple(int(n) for n in version.split("."))


def from_nvidia(m, why, package, after=""):
    """How to install a package from NVIDIA's own repository, or where to read about it."""
    if m.os_id not in ("debian", "ubuntu") or not m.os_version:
        return _("{} See https://developer.nvidia.com/cuda-downloads for {}.").format(
            why, package), ""
    system = m.os_id + m.os_version.replace(".", "")
    if m.wsl and m.os_id == "ubuntu":
        system = "wsl-ubuntu"
    command = m.apt_get(package) + after
    if not m.has_package("cuda-keyring"):
        command = "wget -P /tmp %s%s/%s/%s && %sdpkg -i /tmp/%s && %s" % (
            REPOSITORIES, system, "sbsa" if m.arm else "x86_64", KEYRING, m.sudo, KEYRING, command)
    return why, command


def library_of(folder):
    """The toolkit's libcudart_static.a, or None."""
    for place in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
                  "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        file = "%s/%s/libcudart_static.a" % (folder, place)
        if os.path.exists(file):
            return file
    return None


def find_toolkit(m):
    """Its folder or None, as third_party/cuda_configure.bzl finds it; and where it looked. A
    folder without its library is the last resort."""
    settings = [(name, m.env[name]) for name in ("CUDA_PATH", "CUDA_HOME") if m.env.get(name)]
    nvcc = m.which("nvcc")
    on_path = [os.path.realpath(nvcc).replace("/bin/nvcc", "")] if nvcc else []
    folders = [f for f in [f for _name, f in settings] + on_path + [m.root + "/usr/local/cuda"]
               if os.path.exists(f + "/bin/nvcc")]
    for folder in sorted(folders, key=lambda f: library_of(f) is None):
        return folder.rstrip("/"), ""
    return None, ", ".join(["=".join(s) for s in settings] + ["PATH", "/usr/local/cuda"])


def check_toolkit(m):
    """Returns its version ("13.0", or empty), whether a build can use it, and the package that
    completes it, with the reason; "X" in its name stands for the driver's version of CUDA."""
    if m.env.get("CUDA_PATH") == "none":
        m.fact("CUDA toolkit", "hidden", _("CUDA_PATH=none hides it"),
               _("CUDA_PATH=none pretends that there is no CUDA toolkit."),
               "unset CUDA_PATH" + m.shutdown)
        return "", False, None
    folder, looked = find_toolkit(m)
    if not folder:
        m.fact("CUDA toolkit", "none", _("no nvcc (looked at {})").format(looked))
        return "", False, (_("There is no CUDA toolkit, which --config=cuda needs."),
                           "cuda-toolkitX")
    found = re.search(r"Build cuda_(\d+\.\d+)", m.ask(folder + "/bin/nvcc", "--version")[1])
    version = found[1] if found else ""
    text = _("{} ({})").format(version or _("of unknown version"), m.shown(folder))
    if not library_of(folder):
        m.fact("CUDA toolkit", "partial", _("{}, without libcudart_static.a").format(text))
        return version, False, (
            _("The CUDA toolkit in {} is not complete.").format(m.shown(folder)),
            "cuda-toolkit" + (version and "-" + version.replace(".", "-")))

    if version and numbers(version)[0] < 12:
        m.fact("CUDA toolkit", "too old", _("{}; it needs 12.0 or newer").format(text))
        return version, False, (
            _("CUDA {} is too old: the course needs CUDA 12.0 or newer.").format(version),
            "cuda-toolkitX")

    # The check in nvcc's own header.
    found = re.search(r"^#if __GNUC__ > (\d+)",
                      m.read(m.shown(folder) + "/include/crt/host_config.h"), re.M)
    newest = int(found[1]) if found else 0
    if newest:
        text = _("{}, takes gcc up to {}").format(text, newest)
    ccbin = re.findall(r"--//:cuda_ccbin=(\S*)", m.read(m.shown(m.repository) + "/.bazelrc.user"))
    # The gcc that nvcc calls in a build, unless it is given another.
    have = m.ask(m.root + "/usr/bin/gcc", "-dumpversion")[1].split(".")[0]
    todo = ()
    if ccbin:
        given = _("{}; .bazelrc.user gives it {}")
        if not os.access(m.root + ccbin[-1], os.X_OK):
            given = _("{}; .bazelrc.user gives it {}, which is not there")
            todo = (_("--//:cuda_ccbin={} in .bazelrc.user names no program.").format(ccbin[-1]),
                    "sed -i /cuda_ccbin/d .bazelrc.user")
        text = given.format(text, ccbin[-1])
    elif newest and have.isdigit() and int(have) > newest:
        text = _("{}; found {}").format(text, have)
        older = [n for n in range(newest, 8, -1) if m.exists("usr/bin/g++-%d" % n)]
        todo = (_("CUDA {} takes gcc up to {}; found {}. Give nvcc an older one:").format(
            version, newest, have), "%secho 'build --//:cuda_ccbin=/usr/bin/g++-%d' >> "
                ".bazelrc.user" % ("" if older else m.apt_get("g++-%d" % newest) + " && ",
                                   (older or [newest])[0]))
    m.fact("CUDA toolkit", "wrong" if todo else "ok", text, *todo)
    return version, not todo, None


def check_driver(m, toolkit):
    """Returns whether programs of the toolkit's version can use it, and the version of
    CUDA that it supports ("12.2", or empty)."""
    found = re.search(r"\s(\d+\.[\d.]+)\s", m.read("proc/driver/nvidia/version").split("\n")[0])
    driver, cuda = found[1] if found else "", ""
    code, said = m.ask(m.smi, seconds=PATIENCE) if m.smi else (127, "")
    if code == 124:
        m.smi, said = None, _("nothing, for {} s").format(PATIENCE)
    # From driver 610 on it is "KMD Version" and "CUDA UMD Version".
    for what, version in re.findall(r"(Driver|KMD|CUDA|CUDA UMD) Version: *(\d+\.[\d.]+)", said):
        if what.startswith("CUDA"):
            cuda = version
        else:
            driver = version
    said = said.split("\n")[0]
    ldconfig = m.which("ldconfig", "/usr/sbin", "/sbin")
    if cuda:
        return compare(m, driver, cuda, toolkit), cuda
    if "No devices" in said:
        m.fact("driver", "ok", driver or _("there; nvidia-smi does not say which"))
        return True, ""
    if driver and code not in (0, 127):
        m.fact("driver", "broken", _("{}; nvidia-smi says: {}").format(driver, said),
               _("The NVIDIA driver does not answer. After an update of it the machine must be "
                 "started again."), m.sudo + "reboot")
    elif not driver:
        m.fact("driver", "none", _("no NVIDIA driver; nvidia-smi says: {}").format(said) if said
               else _("no NVIDIA driver"), *how_to_install_driver(m))
    elif ldconfig and "libcuda.so.1" in m.ask(ldconfig, "-p")[1]:
        cuda = next((c for branch, c in BRANCHES if numbers(driver)[0] >= branch), "")
        if cuda:
            return compare(m, driver, cuda, toolkit), cuda
        m.fact("driver", "ok", _(
            "{}; for CUDA of unknown version, without nvidia-smi").format(driver))
        return True, ""
    else:
        m.fact("driver", "partial", _("{}, without its library libcuda.so.1").format(driver), *(
            (_("The kernel has an NVIDIA driver, but this container has no libcuda.so.1. Start it "
               "with --gpus=all:"), IN_CONTAINER) if m.container else
            (_("The kernel has an NVIDIA driver, but its library libcuda.so.1 is missing."),
             m.apt_get("libcuda1"))))
    return False, ""


def compare(m, driver, cuda, toolkit):
    """NVIDIA's guarantee: programs of an older toolkit run, and those of the same major
    version."""
    text, major = "CUDA " + cuda + (driver and " (%s)" % driver), numbers(cuda)[0]
    maximum = _("nvidia-smi's \"CUDA Version\" is the driver's maximum, not your toolkit's "
                "version.")
    older = bool(toolkit) and numbers(cuda) < numbers(toolkit)
    if not older or numbers(toolkit)[0] == major:
        if older:  # such a driver does not compile the toolkit's PTX
            text = _("{}, older than the toolkit: it runs what --//:cuda_archs names, no PTX. "
                     "{}").format(text, maximum)
        m.fact("driver", "ok", text)
        return True
    if m.wsl or m.container:  # the driver is not this system's
        update = _("Update the driver in Windows, or build with an older toolkit:") if m.wsl else (
            _("Update the driver outside of this container, or build with an older toolkit:"))
        package = ("cuda-toolkit-%d" % major,
                   " && export CUDA_PATH=/usr/local/cuda-%d%s" % (major, m.shutdown))
    else:
        update = _("Update the driver and start the machine again, or build with a toolkit of "
                   "CUDA {} or older.").format(cuda)
        package = ("cuda-drivers",)
    why = _("The driver supports CUDA {}, programs of this toolkit need {}. {} {}").format(
        cuda, toolkit, maximum, update)
    m.fact("driver", "too old", _("{}; the toolkit needs {}").format(text, toolkit),
           *from_nvidia(m, why, *package))
    return False


def how_to_install_driver(m):
    """For a machine without any driver."""
    if m.wsl and m.exists("usr/lib/wsl/lib/libcuda.so.1"):
        return (_("Windows's NVIDIA driver is in /usr/lib/wsl/lib, but programs cannot load it."),
                m.sudo + "ldconfig /usr/lib/wsl/lib")
    if m.wsl:
        return (_("There is no NVIDIA driver: /usr/lib/wsl/lib has no libcuda.so.1. Under WSL the "
                  "driver is Windows's: install it there (https://www.nvidia.com/drivers), never "
                  "within WSL, and run there:"), "wsl --shutdown")
    if m.container:
        return (_("This container sees no NVIDIA driver. If the machine has a GPU, start the "
                  "container with --gpus=all:"), IN_CONTAINER)
    return from_nvidia(
        m, _("There is an NVIDIA GPU, but no driver. Install it and start the machine again.")
        if m.pci_gpus else
        _("This machine has no NVIDIA driver, or no NVIDIA GPU. If it has a GPU, install the "
          "driver and start the machine again."), "cuda-drivers")


def list_gpus(m):
    """(name, UUID, details) of each, in nvidia-smi's order."""
    fields = "name,memory.total,memory.free,compute_cap,uuid"
    gpus = []
    said = m.ask(m.smi, "--query-gpu=" + fields, "--format=csv,noheader,nounits",
                 seconds=PATIENCE)[1] if m.smi else ""
    for name, total, free, capability, uuid in re.findall("^(.*), (.*), (.*), (.*), (.*)$", said, re.M):
        about = "sm_" + capability.replace(".", "")
        if total.isdigit() and free.isdigit():
            about = _("{}, {} of {} GiB free").format(
                about, *("%.1f" % (int(n) * 10 // 1024 / 10) for n in (free, total)))
        gpus.append((name, uuid, about))
    files = [] if gpus else sorted(
        glob.glob(glob.escape(m.root) + "/proc/driver/nvidia/gpus/*/information"))
    return gpus + [(m.field(m.shown(file), "Model") or _("a GPU"),
                    m.field(m.shown(file), "GPU UUID"),
                    _("its memory is not known without nvidia-smi")) for file in files]


def apply_visible_devices(m, gpus):
    """The numbers of the GPUs that CUDA_VISIBLE_DEVICES selects, in CUDA's order; and the first
    entry that names no GPU. CUDA reads the list up to that entry."""
    visible, real = [], len(gpus)
    if "CUDA_VISIBLE_DEVICES" not in m.env:
        return list(range(real)), ""
    for entry in re.findall(r"[^, ]+", m.env["CUDA_VISIBLE_DEVICES"]):
        if entry.startswith("MIG-") and real:
            gpus.append((entry, entry, _("part of a GPU")))
        found = [i for i, (_name, uuid, _about) in enumerate(gpus)
                 if entry == str(i) or entry.startswith(("GPU-", "MIG-")) and uuid.startswith(entry)]
        if not found:
            return visible, entry
        visible.append(found[-1])
    return visible, ""


def check_devices(m, driver_ok):
    """Returns the numbers of the GPUs that a program sees."""
    gpus = list_gpus(m)
    m.real_gpus = real = len(gpus)
    m.archs = sorted(set(re.findall(r"\bsm_\d+", " ".join(about for _n, _u, about in gpus))))
    visible, not_there = apply_visible_devices(m, gpus)
    setting = "CUDA_VISIBLE_DEVICES=" + (m.env.get("CUDA_VISIBLE_DEVICES") or '""')
    unset = "unset CUDA_VISIBLE_DEVICES"
    if real and visible:
        say_visible(m, gpus, visible, setting)
        if not_there:
            m.add(_("{}: there is no GPU {}, and CUDA ignores what follows it.").format(
                setting, not_there), unset, gpu=True)
    elif real:
        count = ngettext("{} GPU", "{} GPUs", real).format(real)
        m.fact("devices", "hidden", _("{} hides the {} of this machine").format(setting, count),
               _("{} hides the {} of this machine.").format(setting, count), unset)
    elif driver_ok:
        m.fact("devices", "none", _("the NVIDIA driver finds no GPU"),
               _("The NVIDIA driver finds no GPU. In a container, start it with --gpus=all; "
                 "elsewhere look at what the kernel says."), m.sudo + "dmesg | grep -i nvrm")
    elif m.pci_gpus:
        m.fact("devices", "unusable", ngettext(
            "{} NVIDIA GPU without a driver", "{} NVIDIA GPUs without a driver",
            m.pci_gpus).format(m.pci_gpus))
    else:
        m.fact("devices", "", _("no GPU"))
    return visible if real else []


def say_visible(m, gpus, visible, setting):
    real = m.real_gpus
    for i, gpu in enumerate(visible):
        name, _uuid, about = gpus[gpu]
        m.fact("" if i else "devices", "", _("cuda:{} (real, {}), {}").format(i, name, about))
    order = [_("cuda:{} is GPU {}").format(i, gpu)
             for i, gpu in enumerate(visible) if i != gpu < real]
    if order:
        m.fact("", "", _("{} renumbers them: {}").format(setting, ", ".join(order)))
    elif len(visible) < real:
        m.fact("", "", ngettext("{} leaves {} of {} GPU", "{} leaves {} of {} GPUs", real).format(
            setting, len(visible), real))
    # The order does not matter among GPUs of one kind.
    if len({gpu[0] for gpu in gpus[:real]}) > 1 and (
            m.env.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID"):
        m.fact("", "", _("CUDA may number the fastest first; "
                          "CUDA_DEVICE_ORDER=PCI_BUS_ID keeps this order"))


def check(m):
    """Returns whether a build for GPUs works here, and how many GPUs a program sees."""
    toolkit, toolkit_ok, package = check_toolkit(m)
    driver_ok, driver_cuda = check_driver(m, toolkit)
    if package:  # after the driver, which determines the fitting version
        fitting = "-%d" % numbers(driver_cuda)[0] if driver_cuda else ""
        m.add(*from_nvidia(m, package[0], package[1].replace("X", fitting), m.shutdown), gpu=True)
    visible = len(check_devices(m, driver_ok))
    return toolkit_ok and driver_ok, visible
