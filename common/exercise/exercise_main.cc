// main() of an exercise: judges the linked answer, and prints the verdict for
// //:exercises.

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/profiler/race_checker.h"

ABSL_FLAG(std::string, lang, "", "en or zh.\nExample: --lang=zh");
ABSL_FLAG(bool, check_races, false,
          "Say which operations use the same memory on two streams without an "
          "event that orders them. Slow: figures are not comparable.\n"
          "Example: --check_races");

int main(int argc, char** argv) {
  // //:exercises recognises the verdict by the key, which the answer's own
  // output cannot contain: the answer does not see the key.
  const char* const given = std::getenv("D2L_VERDICT_KEY");
  const std::string key = given == nullptr ? "" : given;
  unsetenv("D2L_VERDICT_KEY");
  absl::ParseCommandLine(argc, argv);
  absl::Status status = d2l::SetLanguage(absl::GetFlag(FLAGS_lang));
  // No GPUs: a Gate is a host callback, and CUDA may run the callbacks of all
  // streams on one thread, so that a gate would hold other streams as well.
  if (status.ok()) status = d2l::InitializeDevices("cpu:0,cpu:1,cpu:2");
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return 2;
  }
  // Gates hold streams; with launch blocking they would hold the program.
  d2l::SetLaunchBlocking(false);
  std::optional<d2l::RaceChecker> checker;
  if (absl::GetFlag(FLAGS_check_races)) checker.emplace();
  const d2l::Judged judged =
      d2l::Answers().size() == 1
          ? d2l::JudgeAnswer(d2l::Answers()[0], true)
          : d2l::Judged{
                d2l::ExerciseVerdict::kWrong,
                "WRONG\n  " +
                    d2l::Translated(
                        "D2L_ANSWER is missing at the end of the file.") +
                    "\n"};
  std::cout << '\x1e' << key << '\n' << judged.text;
  if (checker.has_value()) std::cout << "\n" << checker->Report();
  return EXIT_SUCCESS;
}
