#include <cstddef>
#include <string>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace always_cuts {
std::string BareName(const std::string& name) { return name.substr(7); }
}  // namespace always_cuts

namespace behind_the_last_dot {
std::string BareName(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}
}  // namespace behind_the_last_dot

namespace everywhere {
std::string BareName(const std::string& name) {
  std::string bare = name;
  for (std::size_t at; (at = bare.find("module.")) != std::string::npos;) {
    bare.erase(at, 7);
  }
  return bare;
}
}  // namespace everywhere

namespace again_and_again {
std::string BareName(const std::string& name) {
  std::string bare = name;
  while (bare.rfind("module.", 0) == 0) bare.erase(0, 7);
  return bare;
}
}  // namespace again_and_again

D2L_MISTAKE("bare_names", always_cuts, BareName, "so it stays as it is");
D2L_MISTAKE("bare_names", behind_the_last_dot, BareName,
            "The name of the layer stays");
D2L_MISTAKE("bare_names", everywhere, BareName,
            "Only at the beginning of a name");
D2L_MISTAKE("bare_names", again_and_again, BareName, "Remove it once only");

}  // namespace
}  // namespace d2l
