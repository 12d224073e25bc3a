"""What the doctor says, in Chinese: for LC_ALL, LC_MESSAGES or LANG of zh."""
import re
import unicodedata

# "*" is what differs from machine to machine, "{}" in Chinese, in its order or
# numbered; it may be a row itself. What is not here is said in English.
ROWS = {
    "This machine": "这台机器",
    "checkout": "代码位置",
    "compiler": "编译器",
    "libraries": "库",
    "CUDA toolkit": "CUDA工具包",
    "driver": "驱动程序",
    "devices": "设备",
    "memory": "内存",
    "cores": "核心",
    "load": "负载",
    "missing": "缺少",
    "wrong": "不合适",
    "none": "没有",
    "limited": "受限",
    "high": "偏高",
    "hidden": "被隐藏",
    "partial": "不完整",
    "broken": "坏了",
    "too old": "太旧",
    "unusable": "不能用",
    "none on PATH": "PATH上没有",
    "not known": "未知",
    "no GPU": "没有GPU",
    "no *": "没有{}",
    "all of *": "{}中的全部",
    "no nvcc (looked at *)": "没有nvcc（找过{}）",
    "no NVIDIA driver": "没有NVIDIA驱动程序",
    "nothing, for * s": "{}秒没有回答",
    "Waiting for *, * s at most.": "正在等待{}，最多{}秒。",
    "CUDA_PATH=none hides it": "被CUDA_PATH=none隐藏",
    "none for C++ (*)": "没有C++编译器（{}）",
    "the NVIDIA driver finds no GPU": "NVIDIA驱动程序没有找到GPU",
    "* of * GiB free": "{}/{} GiB空闲",
    "* of the machine's * GiB free; this container may have * GiB and uses *":
        "机器的{1} GiB中有{0}空闲；这个容器最多{2} GiB，已用{3}",
    "*; this container has the time of * of them, so figures will vary":
        "{}；这个容器只有其中{}个的时间，所以数字会有波动",
    "* GPU": "{}块GPU",
    "* GPUs": "{}块GPU",
    "* device": "{}个设备",
    "* devices": "{}个设备",
    "* on * core": "{1}个核心上{0}",
    "* on * cores": "{1}个核心上{0}",
    "cpu:0 (virtual, * core), or cpu:0 and cpu:1 (virtual, * core each)":
        "cpu:0（虚拟，{}个核心），或cpu:0和cpu:1（虚拟，各{}个核心）",
    "cpu:0 (virtual, * cores), or cpu:0 and cpu:1 (virtual, * core each)":
        "cpu:0（虚拟，{}个核心），或cpu:0和cpu:1（虚拟，各{}个核心）",
    "cpu:0 (virtual, * cores), or cpu:0 and cpu:1 (virtual, * cores each)":
        "cpu:0（虚拟，{}个核心），或cpu:0和cpu:1（虚拟，各{}个核心）",
    "What the lessons run on": "各课在什么上运行",
    "What the lessons run on, built with --config=cuda": "各课在什么上运行（用--config=cuda编译）",
    "virtual: * (* core)": "虚拟：{}（{}个核心）",
    "virtual: * (* cores)": "虚拟：{}（{}个核心）",
    "virtual: * (* core each)": "虚拟：{}（各{}个核心）",
    "virtual: * (* cores each)": "虚拟：{}（各{}个核心）",
    "The * cannot be used before what is said below is done.": "做完下面所说的之后，才能使用{}。",
    "To do, in *:": "要做的事，在{}中：",
    "Nothing is missing. To run the course: *": "什么都不缺。运行课程：{}",
    "The lessons cannot be built before * is done.": "做完{}之前，无法编译各课。",
    "The lessons run without a GPU. To use one:": "没有GPU也能运行各课。要使用GPU：",
    "Packages are missing: *.": "缺少软件包：{}。",
    "Install what Debian calls *; this system has its own names.":
        "请安装Debian称为{}的软件包；这个系统有自己的名称。",
    "The lessons run without *; the processes of cell 4.17 and //:book do not.":
        "没有{}也能运行各课，但4.17的多个进程和//:book需要它们。",
    "There is no Bazel.": "没有Bazel。",
    "There is no compiler *, which CC asks for.": "没有CC所要求的编译器{}。",
    "Bazel refuses a path with a space in it. Move the checkout, for example:":
        "Bazel不接受带空格的路径。请移动代码，例如：",
    "Something else keeps the processor busy, load *: figures will be noisy. See what it is, "
    "and end it:": "有别的程序占用处理器，负载{}：数字会不准。看看是什么，并结束它：",
    "There is no CUDA toolkit, which --config=cuda needs.*":
        "没有--config=cuda所需的CUDA工具包。{}",
    "CUDA_PATH=none pretends that there is no CUDA toolkit.":
        "CUDA_PATH=none假装没有CUDA工具包。",
    "This machine has no NVIDIA driver, or no NVIDIA GPU. If it has a GPU, install the driver "
    "and start the machine again.*": "这台机器没有NVIDIA驱动程序，或者没有NVIDIA GPU。如果有GPU，"
                                     "请安装驱动程序，然后重新启动机器。{}",
    "There is an NVIDIA GPU, but no driver. Install it and start the machine again.*":
        "有NVIDIA GPU，但没有驱动程序。请安装它，然后重新启动机器。{}",
    "This container sees no NVIDIA driver. If the machine has a GPU, start the container with "
    "--gpus=all:": "这个容器看不到NVIDIA驱动程序。如果机器有GPU，请用--gpus=all启动容器：",
    "The NVIDIA driver does not answer. After an update of it the machine must be started "
    "again.": "NVIDIA驱动程序没有应答。更新它之后必须重新启动机器。",
    " See https://developer.nvidia.com/cuda-downloads for *.": "见https://developer.nvidia.com/cuda-downloads中的{}。",
    "--//:cuda_ccbin=* in .bazelrc.user names no program.":
        ".bazelrc.user中的--//:cuda_ccbin={}不是程序。",
    "* (*), takes gcc up to *": "{}（{}），最高支持gcc {}",
    "*; .bazelrc.user gives it *, which is not there": "{}；.bazelrc.user指定了{}，但它不存在",
    "*; .bazelrc.user gives it *": "{}；.bazelrc.user指定了{}",
    "*, takes gcc up to *; found *": "{}，最高支持gcc {}；现有{}",
    "* (*), without libcudart_static.a": "{}（{}），没有libcudart_static.a",
    "of unknown version": "未知版本",
    "of unknown version (*): *": "未知版本（{}）：{}",
    "*, without its library libcuda.so.1": "{}，没有它的库libcuda.so.1",
    "*; for CUDA of unknown version, without nvidia-smi": "{}；支持的CUDA版本未知，没有nvidia-smi",
    "*; nvidia-smi says: *": "{}；nvidia-smi说：{}",
    "there; nvidia-smi does not say which": "有；nvidia-smi没有说明版本",
    "Bazel * will not do. *": "Bazel {}不合适。{}",
    "Bazel does not say its version. *": "Bazel没有说明版本。{}",
    "The course is built with Bazel *, which Debian 12 has, or 7.*":
        "课程用Debian 12自带的Bazel {}或Bazel 7编译。{}",
    " Debian's is there, but comes later on PATH.": "Debian的Bazel已安装，但在PATH中排在后面。",
    " USE_BAZEL_VERSION asks for *.": "USE_BAZEL_VERSION要求{}。",
    "CC=* is no program here": "CC={}在这里不是程序",
    "CUDA *; the toolkit needs *": "CUDA {}；工具包需要{}",
    "CUDA *, older than the toolkit: it runs what --//:cuda_archs names, no PTX. *":
        "CUDA {}，比工具包旧：能运行--//:cuda_archs所列的，不能运行PTX。{}",
    "nvidia-smi's \"CUDA Version\" is the driver's maximum, not your toolkit's version.":
        "nvidia-smi的“CUDA Version”是驱动程序支持的最高版本，不是工具包的版本。",
    "CUDA * takes gcc up to *; found *. Give nvcc an older one:":
        "CUDA {}最高支持gcc {}；现有{}。请给nvcc一个较旧的：",
    "CUDA may number the fastest first; CUDA_DEVICE_ORDER=PCI_BUS_ID keeps this order":
        "CUDA可能把最快的排在最前；CUDA_DEVICE_ORDER=PCI_BUS_ID保持这个次序",
    "CUDA_VISIBLE_DEVICES=* hides the * of this machine": "CUDA_VISIBLE_DEVICES={}隐藏了这台机器的{}",
    "CUDA_VISIBLE_DEVICES=* hides the * of this machine.":
        "CUDA_VISIBLE_DEVICES={}隐藏了这台机器的{}。",
    "CUDA_VISIBLE_DEVICES=*: there is no GPU *, and CUDA ignores what follows it.":
        "CUDA_VISIBLE_DEVICES={}：没有GPU {}，CUDA会忽略它后面的内容。",
    "CUDA_VISIBLE_DEVICES=* renumbers them: *": "CUDA_VISIBLE_DEVICES={}改变了编号：{}",
    "* is GPU *, *": "{}是GPU {}，{}",
    "* is GPU *": "{}是GPU {}",
    "The CUDA toolkit in * is not complete.*": "{}中的CUDA工具包不完整。{}",
    "The NVIDIA driver finds no GPU. In a container, start it with --gpus=all; elsewhere look at "
    "what the kernel says.": "NVIDIA驱动程序没有找到GPU。如果在容器里，请用--gpus=all启动它；否则请看内核的消息。",
    "The driver supports CUDA *, programs of this toolkit need *. * Update the driver *":
        "驱动程序支持CUDA {}，这个工具包的程序需要{}。{}请更新驱动程序{}",
    "and start the machine again, or build with a toolkit of CUDA * or older.*":
        "并重新启动机器，或用CUDA {}或更旧的工具包编译。{}",
    "in Windows, or build with an older toolkit:*": "（在Windows中），或用较旧的工具包编译：{}",
    "outside of this container, or build with an older toolkit:*":
        "（在这个容器之外），或用较旧的工具包编译：{}",
    "The kernel has an NVIDIA driver, but its library libcuda.so.1 is missing.":
        "内核有NVIDIA驱动程序，但缺少它的库libcuda.so.1。",
    "The kernel has an NVIDIA driver, but this container has no libcuda.so.1. Start it with "
    "--gpus=all:": "内核有NVIDIA驱动程序，但这个容器没有libcuda.so.1。请用--gpus=all启动它：",
    "There is no NVIDIA driver: /usr/lib/wsl/lib has no libcuda.so.1. Under WSL the driver is "
    "Windows's: install it there (https://www.nvidia.com/drivers), never within WSL, and run "
    "there:": "没有NVIDIA驱动程序：/usr/lib/wsl/lib中没有libcuda.so.1。在WSL下用的是Windows的驱动程序：请在"
              "Windows中安装（https://www.nvidia.com/drivers），不要装在WSL里，然后在那里运行：",
    "Windows's NVIDIA driver is in /usr/lib/wsl/lib, but programs cannot load it.":
        "Windows的NVIDIA驱动程序在/usr/lib/wsl/lib中，但程序无法加载它。",
    "* (real, *), its memory is not known without nvidia-smi":
        "{}（真实，{}），没有nvidia-smi就不知道它的内存",
    "*; Bazel 7 downloads the others": "{}；其余的由Bazel 7下载",
    "not known: chapters/chapters.bzl is not there": "未知：没有chapters/chapters.bzl",
}
PATTERNS = [(re.compile("(.*?)".join(map(re.escape, english.split("*")))), chinese)
            for english, chinese in sorted(ROWS.items(), key=lambda row: row[0].count("*"))]
CLOSING = "，。：；、）"


def is_wanted(env):
    """As a lesson without --lang decides (common/lesson/language.h)."""
    said = [env[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(name)]
    return bool(said) and said[0].startswith("zh")


def translated(text):
    for pattern, chinese in PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            return chinese.format(*map(translated, match.groups()))
    return text


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pieces(word):
    """Parts between which a line may end: beside wide characters."""
    return re.findall(r"[\u2e80-\uffef][%s]*|[^\u2e80-\uffef]+[%s]*" % (CLOSING, CLOSING), word)


def wrap(text, width, first, rest):
    lines, line, empty = [], first, True
    for word in text.split():
        space = " "
        for piece in pieces(word):
            if not empty and columns(line + space + piece) > width:
                lines.append(line)
                line, empty = rest, True
            line += piece if empty else space + piece
            space, empty = "", False
    return lines + [line]
