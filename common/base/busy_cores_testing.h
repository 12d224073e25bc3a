// BusyCores: other programs that keep all cores busy while it lives, so many
// for each core. Make it before the test has threads.

#ifndef D2L_COMMON_BASE_BUSY_CORES_TESTING_H_
#define D2L_COMMON_BASE_BUSY_CORES_TESTING_H_

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "common/base/machine.h"

namespace d2l {

class BusyCores {
 public:
  explicit BusyCores(int programs_per_core) {
    for (int i = programs_per_core * UsableCores(); i > 0; --i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        volatile bool forever = true;
        while (forever) {
        }
      }
      if (child > 0) children_.push_back(child);
    }
  }
  ~BusyCores() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

 private:
  std::vector<pid_t> children_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_BUSY_CORES_TESTING_H_
