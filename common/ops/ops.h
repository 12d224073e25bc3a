// All operations on tensors, in one header.
//
//   #include "common/ops/ops.h"
//
//   Device device = TryGpu();
//   Tensor x = Ones({1, 2}, device);
//   Tensor y = Ones({1, 2}, device);
//   Tensor z = x * y + 2;
//   std::cout << z << "\n";  // tensor([[3., 3.]], device='cpu:0')

#ifndef D2L_COMMON_OPS_OPS_H_
#define D2L_COMMON_OPS_OPS_H_

#include "common/device/device_table.h"  // IWYU pragma: export
#include "common/ops/compare.h"          // IWYU pragma: export
#include "common/ops/copy.h"             // IWYU pragma: export
#include "common/ops/creation.h"         // IWYU pragma: export
#include "common/ops/elementwise.h"      // IWYU pragma: export
#include "common/ops/indexing.h"         // IWYU pragma: export
#include "common/ops/joining.h"          // IWYU pragma: export
#include "common/ops/matmul.h"           // IWYU pragma: export
#include "common/ops/read.h"             // IWYU pragma: export
#include "common/ops/reduction.h"        // IWYU pragma: export
#include "common/ops/views.h"            // IWYU pragma: export
#include "common/tensor/tensor.h"        // IWYU pragma: export

#endif  // D2L_COMMON_OPS_OPS_H_
