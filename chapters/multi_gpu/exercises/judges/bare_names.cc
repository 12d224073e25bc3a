// Judges bare_names: by a list of names.

#include <string>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

using BareName = std::string(const std::string& name);

void JudgeBareName(Judging& judging, BareName* answer) {
  struct Name {
    const char* wrapped;
    const char* bare;
    const char* look;
  };
  const char* const stays =
      "This name does not begin with `module.`, so it stays as it is.";
  for (const auto& [wrapped, bare, look] :
       {Name{"module.weight", "weight", "Return what comes behind `module.`."},
        Name{"module.0.weight", "0.weight",
             "Only `module.` goes. The name of the layer stays."},
        Name{"hidden.0.weight", "hidden.0.weight", stays},
        Name{"encoder.module.bias", "encoder.module.bias",
             "Only at the beginning of a name does `module.` stand for the "
             "wrapper: elsewhere it is a layer with that name."},
        Name{"module.module.weight", "module.weight",
             "Remove it once only: the second `module.` is a layer with that "
             "name."},
        Name{"modules.0.bias", "modules.0.bias", stays},
        Name{"bias", "bias", stays}, Name{"", "", stays},
        Name{"module", "module", stays},
        Name{"module.w.module.b", "w.module.b",
             "Only at the beginning of a name does `module.` stand for the "
             "wrapper: elsewhere it is a layer with that name."}}) {
    const std::string got = answer(wrapped);
    if (got != bare) judging.Wrong({wrapped, got, bare, look});
  }
}

D2L_JUDGE("bare_names", JudgeBareName);

}  // namespace
}  // namespace d2l
