#include "common/device/cpu/start_thread.h"

#include <sys/resource.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/machine.h"

namespace d2l {

std::thread StartThread(const std::string& name, std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    std::vector<std::string> limits;
    rlimit of_user = {};
    if (getrlimit(RLIMIT_NPROC, &of_user) == 0 &&
        of_user.rlim_cur != RLIM_INFINITY) {
      limits.push_back(
          absl::StrCat(of_user.rlim_cur, " for this user (ulimit -u)"));
    }
    for (const std::string& max :
         CgroupValues("pids", "pids.max", "pids.max")) {
      if (max == "max") continue;
      limits.push_back(absl::StrCat(max, " in this control group (pids.max)"));
    }
    throw std::runtime_error(absl::StrCat(
        "[thread] ", name, " needs a thread, and the system starts none: ",
        error.code().message(), ".",
        limits.empty() ? ""
                       : absl::StrCat(" The limits on threads are ",
                                      absl::StrJoin(limits, ", "), "."),
        " Raise them (ulimit -u, docker run --pids-limit), or use fewer "
        "devices, such as --devices=cpu:0."));
  }
}

}  // namespace d2l
