// The library in one header, for lessons, exercises and programs of your own:
// tensors, operations, devices, gradients, layers, data, graphs, several
// devices, the profiler, drawings. examples/first_program.cc is such a program.
//
// The library's own code includes what it uses.

#ifndef D2L_COMMON_D2L_H_
#define D2L_COMMON_D2L_H_

#include "common/autograd/tape.h"                         // IWYU pragma: export
#include "common/base/files/atomic_file.h"                // IWYU pragma: export
#include "common/base/timer.h"                            // IWYU pragma: export
#include "common/data/dataset.h"                          // IWYU pragma: export
#include "common/data/loader.h"                           // IWYU pragma: export
#include "common/device/device_table.h"                   // IWYU pragma: export
#include "common/device/event.h"                          // IWYU pragma: export
#include "common/device/failure.h"                        // IWYU pragma: export
#include "common/device/memory/memory.h"                  // IWYU pragma: export
#include "common/device/stream.h"                         // IWYU pragma: export
#include "common/drawing/graph_drawing.h"                 // IWYU pragma: export
#include "common/drawing/html_timeline.h"                 // IWYU pragma: export
#include "common/drawing/plot.h"                          // IWYU pragma: export
#include "common/drawing/roofline.h"                      // IWYU pragma: export
#include "common/drawing/timeline.h"                      // IWYU pragma: export
#include "common/graph/captured.h"                        // IWYU pragma: export
#include "common/graph/ir.h"                              // IWYU pragma: export
#include "common/graph/passes/passes.h"                   // IWYU pragma: export
#include "common/graph/program_graph.h"                   // IWYU pragma: export
#include "common/graph/trace.h"                           // IWYU pragma: export
#include "common/nn/checkpoint.h"                         // IWYU pragma: export
#include "common/nn/hybrid.h"                             // IWYU pragma: export
#include "common/nn/layers.h"                             // IWYU pragma: export
#include "common/nn/models.h"                             // IWYU pragma: export
#include "common/nn/module.h"                             // IWYU pragma: export
#include "common/nn/sgd.h"                                // IWYU pragma: export
#include "common/nn/state_dict.h"                         // IWYU pragma: export
#include "common/ops/no_grad.h"                           // IWYU pragma: export
#include "common/ops/ops.h"                               // IWYU pragma: export
#include "common/parallel/collective/collective.h"        // IWYU pragma: export
#include "common/parallel/collective/schedule.h"          // IWYU pragma: export
#include "common/parallel/data_parallel/data_parallel.h"  // IWYU pragma: export
#include "common/parallel/data_parallel/kv_store.h"       // IWYU pragma: export
#include "common/parallel/data_parallel/split_batch.h"    // IWYU pragma: export
#include "common/profiler/export.h"                       // IWYU pragma: export
#include "common/profiler/peaks.h"                        // IWYU pragma: export
#include "common/profiler/profiler.h"                     // IWYU pragma: export
#include "common/profiler/race_checker.h"                 // IWYU pragma: export
#include "common/safetensors/safetensors.h"               // IWYU pragma: export

#endif  // D2L_COMMON_D2L_H_
