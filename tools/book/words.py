"""What the pages themselves say, in Chinese."""

CHINESE = {
    " ({})": "（{}）",
    " (the cell ran for {})": "（本单元运行了 {}）",
    ", exercise": "，练习",
    "notebook ": "笔记本",
    " threads": " 线程",
    "**Predict:** ": "**预测：**",
    "**You learn:** ": "**你会学到：**",
    ": ": "：",
    "A command of the shell; it is not run.": "这是一条 shell 命令，不运行。",
    "A drawing of what this cell measured. The verdicts, and all figures, say it in words "
    "and numbers.": "本单元测量结果的图。判定和全部数据用文字和数字说明了它。",
    "All figures": "全部数据",
    "All verdicts": "所有判定",
    "All verdicts are what they were.": "所有判定都与上次相同。",
    "Computational performance": "计算性能",
    "Contents": "目录",
    "Exercise": "练习",
    "Exercises": "练习",
    "FAILS": "不成立",
    "Figures whose intervals are apart": "区间互不相交的数据",
    "Glossary": "术语表",
    "HOLDS": "成立",
    "Here it printed": "这里的输出",
    "Here, C++": "这里的 C++",
    "Hide all answers": "隐藏所有答案",
    "INCONCLUSIVE": "无法判断",
    "It prints nothing.": "它不输出任何内容。",
    "It was": "上次是",
    "Languages": "语言",
    "Machines compared": "机器对比",
    "More exercises of this chapter": "本章的其他练习",
    "Next and previous": "前后单元",
    "Not compared, as it was another size or other devices:":
        "规模或设备与上次不同，未作比较：",
    "Not run. An interpreter with PyTorch runs the course's own cell:":
        "未运行。用装有 PyTorch 的解释器可以运行教程原来的单元：",
    "PyTorch here": "本机的 PyTorch",
    "Show all answers": "显示所有答案",
    "Show what happened": "显示结果",
    "Skip to the text": "跳到正文",
    "Stopped after {} s. This gives it longer:": "{} 秒后被中止。给它更长的时间：",
    "Written for MXNet: run with what PyTorch has in its place.":
        "为 MXNet 编写：用 PyTorch 中的对应功能运行。",
    "The cell stopped:": "单元中止：",
    "The chapter of Dive into Deep Learning as lessons that measure what they say. Each "
    "page shows what this machine said when the book was made.":
        "《动手学深度学习》“计算性能”一章，写成一组课程，每个论断都在机器上实测。"
        "每一页显示成书时这台机器给出的结果。",
    "Start with chapter 1, or where you like: each cell stands on its own. Read it, "
    "choose an answer, then see what this machine measured. That takes about five minutes a cell. "
    "The exercises are functions to write; this lists and judges them:":
        "从第 1 章开始，也可以从任何一章开始：每个单元自成一体。先阅读，选一个答案，"
        "再看这台机器测得的结果，一个单元大约五分钟。每个练习写一个函数，下面的命令列出并评判它们：",
    "The course printed": "教程的输出",
    "The course, Python": "教程的 Python",
    "The machine was busy: in {} of {} cells other programs used up to {} of its {} cores. "
    "That makes times uncertain, and verdicts INCONCLUSIVE.":
        "机器正忙：在 {}/{} 个单元中，其他程序占用了最多 {}/{} 个核。"
        "这使时间不确定，判定为无法判断。",
    "The recording of this cell, to zoom in": "本单元的时间线，可以放大查看",
    "The recording on a page of its own": "在单独的页面中打开时间线",
    "The sizes differ: compare verdicts and factors, not times.":
        "规模不同：请比较判定和倍数，不要比较时间。",
    "The verdicts below answer it.": "下面的判定就是回答。",
    "There is no GPU: on the CPU.": "没有 GPU：在 CPU 上运行。",
    "There is no glossary in this checkout: chapters/glossary.md":
        "这份源码里没有术语表：chapters/glossary.md",
    "They answer the questions: look at them when you have made your predictions.":
        "它们就是问题的答案：先作出预测再看。",
    "This cell stopped with an error.": "本单元因错误而中止。",
    "This lesson did not run to its end.": "这一课没有运行到底。",
    "The last column did less work than the others: small sizes. To compare times:":
        "最后一列的工作量小于其他列（小规模）。要比较时间：",
    "Three columns of figures": "三列数据",
    "Timeline": "时间线",
    "To run this cell again:": "重新运行本单元：",
    "What changed since the last run": "与上次运行相比的变化",
    "What it printed answers it.": "它的输出就是回答。",
    "Where the verdicts differ, the sentence is bold.": "判定不同的句子用粗体显示。",
    "What happened": "结果",
    "You predicted:": "你的预测：",
    "Your prediction": "你的预测",
    "{} cells, about {} minutes": "{} 个单元，约 {} 分钟",
    "calls": "次",
    "claims": "论断",
    "figures": "数据",
    "interval, 95 %": "95 % 区间",
    "is": "现在",
    "median": "中位数",
    "size": "规模",
    "the course": "教程",
    "course": "教程规模",
    "large": "大",
    "small": "小",
    "this machine": "本机",
    "virtual": "虚拟",
    "was": "上次",
}
