#include <cstddef>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace rebinds {
void AllReduceBook(std::vector<Tensor>& data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] = data[0] + To(data[i], data[0].device());
  }
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[i] = To(data[0], data[i].device());
  }
}
}  // namespace rebinds

namespace only_adds {
void AllReduceBook(std::vector<Tensor>& data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
}
}  // namespace only_adds

namespace adds_twice {
void AllReduceBook(std::vector<Tensor>& data) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    for (std::size_t j = 0; j < data.size(); ++j) {
      if (j != i) data[i] += To(data[j], data[i].device());
    }
  }
}
}  // namespace adds_twice

// Right with two devices.
namespace first_and_last {
void AllReduceBook(std::vector<Tensor>& data) {
  if (data.size() < 2) return;
  data[0] += To(data.back(), data[0].device());
  for (std::size_t i = 1; i < data.size(); ++i) CopyTo(data[0], data[i]);
}
}  // namespace first_and_last

namespace mean {
void AllReduceBook(std::vector<Tensor>& data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  data[0] /= static_cast<double>(data.size());
  for (std::size_t i = 1; i < data.size(); ++i) CopyTo(data[0], data[i]);
}
}  // namespace mean

namespace one_for_all {
void AllReduceBook(std::vector<Tensor>& data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  data.resize(1);
}
}  // namespace one_for_all

namespace by_the_host {
void AllReduceBook(std::vector<Tensor>& data) {
  std::vector<float> sum = ToVector<float>(data[0]);
  for (std::size_t i = 1; i < data.size(); ++i) {
    const std::vector<float> other = ToVector<float>(data[i]);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += other[k];
  }
  for (const Tensor& x : data) {
    CopyTo(FromVector(sum, x.shape(), x.device()), x);
  }
}
}  // namespace by_the_host

D2L_MISTAKE("rebound_gradient", rebinds, AllReduceBook, "binds the name");
D2L_MISTAKE("rebound_gradient", only_adds, AllReduceBook,
            "still has its own gradient");
D2L_MISTAKE("rebound_gradient", adds_twice, AllReduceBook, "more than once");
D2L_MISTAKE("rebound_gradient", first_and_last, AllReduceBook,
            "is missing in the sum");
D2L_MISTAKE("rebound_gradient", mean, AllReduceBook, "That is the mean");
D2L_MISTAKE("rebound_gradient", one_for_all, AllReduceBook, "not their list");
D2L_MISTAKE("rebound_gradient", by_the_host, AllReduceBook, "a value was read");

}  // namespace
}  // namespace d2l
