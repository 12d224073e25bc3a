// The core in one header, for programs of your own: tensors, operations,
// devices, gradients, layers, the profiler. examples/first_program.cc is such a
// program.
//
// Code of this repository includes what it uses, which compiles faster.

#ifndef D2L_COMMON_D2L_H_
#define D2L_COMMON_D2L_H_

#include "common/autograd/tape.h"           // IWYU pragma: export
#include "common/base/files/atomic_file.h"  // IWYU pragma: export
#include "common/device/device_table.h"     // IWYU pragma: export
#include "common/device/event.h"            // IWYU pragma: export
#include "common/device/failure.h"          // IWYU pragma: export
#include "common/nn/hybrid.h"               // IWYU pragma: export
#include "common/nn/layers.h"               // IWYU pragma: export
#include "common/nn/models.h"               // IWYU pragma: export
#include "common/nn/module.h"
#include "common/nn/sgd.h"                  // IWYU pragma: export
#include "common/nn/state_dict.h"           // IWYU pragma: export
#include "common/ops/no_grad.h"             // IWYU pragma: export
#include "common/ops/ops.h"                 // IWYU pragma: export
#include "common/profiler/chrome_trace.h"   // IWYU pragma: export
#include "common/profiler/html_timeline.h"  // IWYU pragma: export
#include "common/profiler/profiler.h"       // IWYU pragma: export

#endif  // D2L_COMMON_D2L_H_
