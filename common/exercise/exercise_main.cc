// main() of an exercise: judges the one answer that is linked in, and exits
// with the verdict for //:exercises.

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/lesson/language.h"

ABSL_FLAG(std::string, devices, "auto",
          "What to run on, two devices or more, as for a lesson.\n"
          "Example: --devices=cuda:0,cuda:1");
ABSL_FLAG(std::string, lang, "", "en or zh.\nExample: --lang=zh");

namespace d2l {
namespace {

// 1 and 2 are left to programs that end in other ways.
int ExitCode(ExerciseVerdict verdict) {
  switch (verdict) {
    case ExerciseVerdict::kRight:
      return EXIT_SUCCESS;
    case ExerciseVerdict::kSlow:
      return 10;
    case ExerciseVerdict::kWrong:
      return 11;
    case ExerciseVerdict::kNotDone:
      return 12;
  }
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  absl::Status status = d2l::SetLanguage(absl::GetFlag(FLAGS_lang));
  if (status.ok()) {
    status = d2l::InitializeDevices(absl::GetFlag(FLAGS_devices));
  }
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  // Gates hold streams; with launch blocking they would hold the program.
  d2l::SetLaunchBlocking(false);
  if (d2l::Devices().size() < 2) {
    std::cerr << "An exercise needs two devices. A GPU can be shared: "
                 "--devices=cuda:0,cuda:0\n";
    return 2;
  }
  if (d2l::Answers().size() != 1) {
    std::cerr << "D2L_ANSWER is missing at the end of the file.\n";
    return 2;
  }
  const d2l::Judged judged = d2l::JudgeAnswer(d2l::Answers()[0], true);
  // The mark tells //:exercises what the answer printed from the verdict, and
  // a verdict from an answer that ended the program.
  std::cout << '\x1e' << judged.text;
  return d2l::ExitCode(judged.verdict);
}
