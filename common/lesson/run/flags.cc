#include "common/lesson/run/flags.h"

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/base/files/atomic_file.h"
#include "common/device/device_table.h"
#include "common/device/topology.h"
#include "common/lesson/cell/cell.h"
#include "common/profiler/export.h"

ABSL_FLAG(std::string, devices, "auto",
          "What to run on. auto: every GPU there is, else virtual CPU devices. "
          "Or a list: virtual devices are cpu:0, cpu:1, …; GPU 0 named twice "
          "makes two logical devices on it.\n"
          "Examples: --devices=cpu:0,cpu:1  --devices=cuda:0,cuda:0");
ABSL_FLAG(std::string, pace, "auto",
          "How many times its computing time an operation of a virtual device "
          "lasts, in the cells about several devices: so a few cores stand for "
          "several GPUs, also beside other programs. auto: what fits this "
          "machine. 0: as fast as the cores.\n"
          "Example: --pace=4");
ABSL_FLAG(std::string, link, "",
          "The links between virtual devices in these cells, unless the cell "
          "says which: pcie, nvlink, nvswitch, dgx1, or bytes per second and "
          "seconds. Empty: transfers take no time.\n"
          "Example: --link=12.5e9,5e-6");
ABSL_FLAG(
    double, min_time, d2l::CellTiming().min_seconds,
    "For how many seconds each way to do a thing is repeated; beside other "
    "programs, for up to five times as long. More repeats make intervals "
    "narrower.\n"
    "Example: --min_time=1");
ABSL_FLAG(std::string, size, "course",
          "How much work the cells do: small (seconds), course (the course's "
          "own sizes) or large (for a fast GPU).\n"
          "Example: --size=small");
ABSL_FLAG(std::string, cell, "",
          "Run these cells only: their numbers, or ids of the "
          "notebooks, separated by commas. Empty: all.\n"
          "Example: --cell=2.1,004/In5");
ABSL_FLAG(std::string, lang, "",
          "What to speak: en (English) or zh (Chinese). Empty: Chinese if "
          "LC_ALL, LC_MESSAGES or LANG begins with zh.\n"
          "Example: --lang=zh");
ABSL_FLAG(
    bool, code, false,
    "Also print each cell's code: the notebook's Python, and the C++ that "
    "runs; with --verbose, how it is measured. On a terminal --cell shows "
    "the C++ without this flag.\n"
    "Example: --code");
ABSL_FLAG(
    bool, no_code, false,
    "Do not show the C++ program that a cell teaches, which a lesson on a "
    "terminal does with --cell; //:course does not.\n"
    "Example: --cell=2.1 --no_code");
ABSL_FLAG(bool, verbose, false,
          "Also print all figures, with their intervals, and the cells' tables "
          "and larger drawings.\n"
          "Example: --verbose");
ABSL_FLAG(bool, no_predict, false,
          "Do not wait for your prediction before each cell. A lesson on a "
          "terminal does; //:course does not.\n"
          "Example: --no_predict");
ABSL_FLAG(
    bool, no_text, false,
    "Print the figures and verdicts alone: no heads, ideas, questions and "
    "conclusions, for a page that has them, such as a notebook.\n"
    "Example: --cell=2.1 --no_text");
ABSL_FLAG(int, require_gpus, 0,
          "Stop unless there are this many GPUs, rather than share one or use "
          "virtual devices.\n"
          "Example: --require_gpus=2");
ABSL_FLAG(std::string, json, "",
          "Also write figures and verdicts to this file. Relative to the "
          "directory in which you typed the command.\n"
          "Example: --json=results.json");
ABSL_FLAG(
    std::string, svg, "",
    "Also write the drawings to this directory, as LESSON_CELL_NAME.svg; "
    "it is made if it is missing. Relative to the directory in which you "
    "typed the command. A browser shows them. Graphviz's dot draws graphs; "
    "where it is missing they are written as .dot files.\n"
    "Example: --svg=drawings");
ABSL_FLAG(
    std::string, trace, "",
    "Also write to this file what was asked of the devices and when they "
    "did it, as a Chrome trace, with a range for each cell. "
    "https://ui.perfetto.dev shows it. Relative to the directory in "
    "which you typed the command. The recording makes each request a little "
    "longer.\n"
    "Example: --trace=trace.json");
ABSL_FLAG(
    std::string, html, "",
    "Also write a page with the timeline, to zoom into, and a table of the "
    "times. A browser shows it without a network.\n"
    "Example: --html=timeline.html");
ABSL_FLAG(
    std::int64_t, trace_calls, d2l::ExportOptions().max_spans,
    "How many calls --trace writes at most, about 1 kB each; of more, the "
    "first of each cell.\n"
    "Example: --trace_calls=100000");
ABSL_FLAG(std::int64_t, max_queued_operations,
          d2l::StreamOptions().max_queued_operations,
          "How far the program may run ahead of a device: it waits when a "
          "stream's queue holds this many operations, on a GPU 512 at most. At "
          "least 1.\n"
          "Example: --max_queued_operations=16");
ABSL_FLAG(std::int64_t, max_bytes_in_flight,
          d2l::DeviceOptions().max_bytes_in_flight,
          "The same bound in bytes of memory that only queued operations "
          "still need, per device. At least 1.\n"
          "Example: --max_bytes_in_flight=67108864");
ABSL_FLAG(bool, launch_blocking, false,
          "Every call waits until its operation is done, so that errors show "
          "where they were made. Slow. CUDA_LAUNCH_BLOCKING=1 does the same.\n"
          "Example: --launch_blocking");
ABSL_FLAG(bool, check_races, false,
          "Say which operations use the same memory on two streams without an "
          "event that orders them. Slow: figures are not comparable.\n"
          "Example: --check_races");
ABSL_FLAG(bool, allow_tf32, false,
          "A GPU may compute products of float32 in TF32, on its tensor cores: "
          "faster, with 10 bits of each factor instead of 23, so a cell that "
          "checks a product may find it wrong. Figures say so.\n"
          "Example: --allow_tf32");

namespace d2l {
namespace {

constexpr const char* kFlags[] = {
    "devices",
    "pace",
    "link",
    "min_time",
    "size",
    "cell",
    "lang",
    "code",
    "no_code",
    "verbose",
    "no_predict",
    "no_text",
    "require_gpus",
    "json",
    "svg",
    "trace",
    "html",
    "trace_calls",
    "max_queued_operations",
    "max_bytes_in_flight",
    "launch_blocking",
    "check_races",
    "allow_tf32",
};

absl::StatusOr<Size> ParseSize(const std::string& text) {
  for (const Size size : {Size::kSmall, Size::kCourse, Size::kLarge}) {
    if (text == SizeName(size)) return size;
  }
  return absl::InvalidArgumentError(
      Say("--size=%s asked for; there are small, course and large. Say "
          "--size=small.",
          text));
}

absl::Status Check(const char* flag, std::int64_t value, std::int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Say("--%s=%d asked for; the least is %d. Say --%s=%d or more.",
          std::string(flag), value, least, std::string(flag), least));
}

absl::Status ParsePace(const std::string& text, std::optional<double>* pace) {
  if (text == "auto") return absl::OkStatus();
  double number = -1;
  if (absl::SimpleAtod(text, &number) && number >= 0 && number <= 100) {
    *pace = number;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      Say("--pace=%s asked for; it is auto or a number from 0 to 100. Say "
          "--pace=4.",
          text));
}

absl::Status CheckMinTime(double seconds) {
  if (seconds >= 0 && seconds <= 60) return absl::OkStatus();
  return absl::InvalidArgumentError(Say(
      "--min_time=%g asked for; it is a number of seconds from 0 to 60. Say "
      "--min_time=1.",
      seconds));
}

absl::Status PrepareDirectory(const std::string& directory) {
  if (directory.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(Say(
        "--svg: cannot make the directory %s: %s. Name one in a directory that "
        "you may write to.",
        directory, error.message()));
  }
  const absl::Status writable =
      AtomicFile::Open(std::filesystem::path(directory) / "drawing.svg")
          .status();
  if (writable.ok()) return absl::OkStatus();
  return absl::Status(writable.code(),
                      absl::StrCat("--svg: ", std::string(writable.message())));
}

// Sets the flags to what the command line says.
absl::Status SetFlags(int argc, char** argv) {
  const absl::Status named =
      CheckFlagNames(argc, argv, {std::begin(kFlags), std::end(kFlags)});
  if (!named.ok()) return named;
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Say("\"%s\" is not a flag; they all look like --size=small. See --help.",
          std::string(rest[1])));
}

// Copies all flags but --lang, --size and those that name files.
void CopyFlags(LessonOptions* options) {
  options->devices = absl::GetFlag(FLAGS_devices);
  for (const absl::string_view id :
       absl::StrSplit(absl::GetFlag(FLAGS_cell), ',', absl::SkipWhitespace())) {
    options->cells.push_back(std::string(absl::StripAsciiWhitespace(id)));
  }
  options->min_seconds = absl::GetFlag(FLAGS_min_time);
  options->code = absl::GetFlag(FLAGS_code);
  options->no_code = absl::GetFlag(FLAGS_no_code);
  options->verbose = absl::GetFlag(FLAGS_verbose);
  options->no_predict = absl::GetFlag(FLAGS_no_predict);
  options->no_text = absl::GetFlag(FLAGS_no_text);
  options->require_gpus = absl::GetFlag(FLAGS_require_gpus);
  options->trace_calls = absl::GetFlag(FLAGS_trace_calls);
  DeviceOptions& device = options->device_options;
  device.stream.max_queued_operations =
      absl::GetFlag(FLAGS_max_queued_operations);
  device.max_bytes_in_flight = absl::GetFlag(FLAGS_max_bytes_in_flight);
  options->launch_blocking = absl::GetFlag(FLAGS_launch_blocking);
  options->check_races = absl::GetFlag(FLAGS_check_races);
  options->allow_tf32 = absl::GetFlag(FLAGS_allow_tf32);
}

absl::Status CheckNumbers(const LessonOptions& options) {
  const DeviceOptions& device = options.device_options;
  absl::Status status = Check("require_gpus", options.require_gpus, 0);
  status.Update(Check("trace_calls", options.trace_calls, 1));
  status.Update(
      Check("max_queued_operations", device.stream.max_queued_operations, 1));
  status.Update(Check("max_bytes_in_flight", device.max_bytes_in_flight, 1));
  status.Update(CheckMinTime(options.min_seconds));
  return status;
}

// Makes the directory and opens the files. Messages show the whole paths.
absl::Status OpenOutputs(LessonOptions* options) {
  options->svg = UserPath(absl::GetFlag(FLAGS_svg));
  // The directory comes first: a file of its name would prevent it.
  const absl::Status directory = PrepareDirectory(options->svg);
  if (!directory.ok()) return directory;
  return OpenFlagFiles(
      {{"json", UserPath(absl::GetFlag(FLAGS_json)), &options->json},
       {"trace", UserPath(absl::GetFlag(FLAGS_trace)), &options->trace},
       {"html", UserPath(absl::GetFlag(FLAGS_html)), &options->html}});
}

}  // namespace

absl::StatusOr<LessonOptions> ParseLessonFlags(int argc, char** argv,
                                               Size default_size) {
  absl::SetFlag(&FLAGS_size, SizeName(default_size));
  SetLanguageOf(argc, argv);
  LessonOptions options;
  if (AsksForHelp(argc, argv)) {
    options.help = true;
    return options;
  }
  const absl::Status set = SetFlags(argc, argv);
  if (!set.ok()) return set;
  const absl::Status language = SetLanguage(absl::GetFlag(FLAGS_lang));
  if (!language.ok()) return language;
  const absl::StatusOr<Size> size = ParseSize(absl::GetFlag(FLAGS_size));
  if (!size.ok()) return size.status();
  options.size = *size;
  CopyFlags(&options);
  absl::Status numbers = CheckNumbers(options);
  numbers.Update(ParsePace(absl::GetFlag(FLAGS_pace), &options.pace));
  options.link = absl::GetFlag(FLAGS_link);
  if (!options.link.empty()) {
    numbers.Update(ParseTopology(options.link, /*ranks=*/2).status());
  }
  if (!numbers.ok()) return numbers;
  const absl::Status opened = OpenOutputs(&options);
  if (!opened.ok()) return opened;
  return options;
}

std::string LessonHelp(const std::string& command) {
  return FlagHelp(command, {{"", {std::begin(kFlags), std::end(kFlags)}}});
}

}  // namespace d2l
