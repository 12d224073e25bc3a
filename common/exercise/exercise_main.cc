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
  // Not the GPUs: a Gate is a host callback, and CUDA may run those of all
  // streams on one thread, so that it would hold other streams as well.
  if (status.ok()) status = d2l::InitializeDevices("cpu:0,cpu:1");
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  // Gates hold streams; with launch blocking they would hold the program.
  d2l::SetLaunchBlocking(false);
  const d2l::Judged judged =
      d2l::Answers().size() == 1
          ? d2l::JudgeAnswer(d2l::Answers()[0], true)
          : d2l::Judged{
                d2l::ExerciseVerdict::kWrong,
                "WRONG\n  " +
                    d2l::Translated(
                        "D2L_ANSWER is missing at the end of the file.") +
                    "\n"};
  // The mark tells //:exercises what the answer printed from the verdict, and
  // a verdict from an answer that ended the program.
  std::cout << '\x1e' << judged.text;
  return d2l::ExitCode(judged.verdict);
}
