// main() of an exercise's mutants, which tools/mutants.py makes: judges the
// answer of the number that is given, and ends with 0 if it is right.

#include <sys/resource.h>

#include <cstddef>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"

int main(int argc, char** argv) {
  // A loop without an end may also fill the memory.
  constexpr rlimit kMost = {rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_DATA, &kMost);
  const std::size_t index = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const absl::Status status = d2l::InitializeDevices("cpu:0,cpu:1,cpu:2,cpu:3");
  if (argc != 2 || index >= d2l::Answers().size() || !status.ok()) {
    std::cerr << "usage: NAME_mutants NUMBER, below " << d2l::Answers().size()
              << "\n"
              << status.message() << "\n";
    return 2;
  }
  const d2l::Judged judged =
      d2l::JudgeAnswer(d2l::Answers()[index], /*timed=*/false);
  std::cout << judged.text << std::flush;
  // Without destructors: a mutant may have left what they cannot end.
  std::_Exit(judged.verdict == d2l::ExerciseVerdict::kRight ? 0 : 1);
}
