#include "chapters/async_computation/programs.h"

#include <cstdint>

#include "common/device/stream_stall.h"
#include "common/lesson/cell/host_library.h"

namespace d2l::async_computation {

// %% 004/In2
// Ten random matrices, each multiplied by itself. HostRandn and HostMatMul
// return when they are done: common/lesson/cell/host_library.h
void TenProductsOnTheHost(int n) {
  for (int i = 0; i < 10; ++i) {
    const std::vector<float> a = HostRandn(n * n);
    const std::vector<float> b = HostMatMul(a, a, n);
  }
}
// %% 004/In2, 004/In4
// Ten random matrices, each multiplied by itself. Each call enqueues its
// operation, and returns.
std::pair<Tensor, Tensor> TenProducts(int n, Device device) {
  Tensor a, b;
  for (int i = 0; i < 10; ++i) {
    a = Randn({n, n}, device);
    b = MatMul(a, a);
  }
  return {a, b};
}
// %% 004/In4
// The same, and waited for.
std::pair<Tensor, Tensor> TenProductsDone(int n, Device device) {
  auto last = TenProducts(n, device);
  Synchronize(device);
  return last;
}
// %% 004/In5
// The third statement needs the other two, which need nothing.
Tensor ThreeStatements(Device device) {
  const Tensor x = Ones({1, 2}, device);
  const Tensor y = Ones({1, 2}, device);
  return x * y + 2;
}

// A network with two branches.
void TwoBranches(const Tensor& a, const Tensor& w) {
  const Tensor left = Relu(MatMul(a, w) + 1);
  const Tensor right = Tanh(MatMul(w, a) - 1);
  Item(Mean(MatMul(left * right, w)));
}

// Two chains of products. c may run beside b if its stream is another, and if
// it need not wait for b.
void BThenC(const Tensor& a, Stream& stream_of_c, bool depends) {
  for (int i = 0; i < 300; ++i) MatMul(a, a);  // b
  if (depends) stream_of_c.Wait(CurrentStream(a.device()).Record());
  const StreamGuard guard(stream_of_c);
  for (int i = 0; i < 300; ++i) MatMul(a, a);  // c
}
// %% 000/launch-blocking
// Row 17 of 10: the device finds out, when the call has long returned.
void IndexOutOfRange(Device device) {
  const Tensor x = Arange(10, device);
  const Tensor index = FromVector<std::int64_t>({3, 17}, {2}, device);
  const Tensor y = x * 2;
  const Tensor rows = IndexSelect(y, 0, index);
  const Tensor z = y + 1;
  Synchronize(device);
}

// With launch blocking every call waits until its operation is done.
Tensor Additions(const Tensor& a, int n, bool launch_blocking) {
  const LaunchBlockingGuard guard(launch_blocking);
  Tensor b;
  for (int i = 1; i <= n; ++i) b = a + i;
  return b;
}
// %% 004/queue-memory
// An epoch of minibatches. The front end runs ahead of the device, unless
// `way` makes it wait. What is enqueued keeps the memory that it needs.
double Epoch(const std::string& kind, const std::string& way,
             const std::vector<float>& host, const Tensor& ones, int batches,
             const std::function<void()>& look) {
  const Device device = ones.device();
  std::vector<Tensor> outputs;
  double mean = 0;
  for (int i = 1; i <= batches; ++i) {
    Tensor in = ones;
    if (kind == "staging buffers") in = FromVector(host, in.shape(), device);
    if (kind != "kept outputs" || way == "reading") outputs.clear();
    outputs.push_back(Relu(MatMul(in, ones)) + i);
    if (way == "synchronizing") Synchronize(device);
    if (way == "reading") mean = Item(Mean(outputs[0]));
    look();
  }
  for (const Tensor& output : outputs) mean = Item(Mean(output));
  return mean;
}
// %% d2l/barriers
// b, and products that the device computes after it.
std::pair<Tensor, Tensor> Products(const Tensor& a, int behind) {
  Tensor b = MatMul(a, a), c;
  for (int i = 0; i < behind; ++i) c = MatMul(a, a);
  return {b, c};
}

// waitall: until the device has done everything.
void WaitForAll(const Tensor& b) { Synchronize(b.device()); }

// wait_to_read: until b is there.
void WaitForOne(const Tensor& b) { WaitToRead(b); }
// %% d2l/blockers
// What reads s waits until the device has computed it.
std::vector<Reader> Readers() {
  return {{"Printing", [](const Tensor& s) { ToString(s); }},
          {"Item", [](const Tensor& s) { Item(s); }},
          {"ToVector", [](const Tensor& s) { ToVector<float>(s); }},
          {"A branch", [](const Tensor& s) { return Item(s) > 0 ? 1 : -1; }}};
}

// The front end waits for every value …
double ReadEach(const Tensor& x, int reads) {
  double sum = 0;
  for (int i = 0; i < reads; ++i) sum += Item(x * (i % 10));
  return sum;
}

// … and for their sum alone.
double SumOnTheDevice(const Tensor& x, int reads) {
  Tensor sum = Zeros({}, x.device());
  for (int i = 0; i < reads; ++i) sum += x * (i % 10);
  return Item(sum);
}
// %% d2l/t1-t2-t3
// n additions, waited for each time or once.
Tensor AddOnes(const Tensor& x, int n, bool wait_each_time) {
  Tensor y;
  for (int i = 0; i < n; ++i) {
    y = x + 1;
    if (wait_each_time) Synchronize(x.device());
  }
  Synchronize(x.device());
  return y;
}

// t1: enqueued while the device is held up (common/device/stream_stall.h).
// t2: computed while nothing is enqueued.
std::pair<double, double> T1AndT2(const Tensor& x, int held) {
  StreamStall stall(CurrentStream(x.device()));
  Timer timer;
  Tensor y;
  for (int i = 0; i < held; ++i) y = x + 1;
  const double enqueued = timer.Seconds();
  timer.Restart();
  stall.Release();
  Synchronize(x.device());
  return {enqueued / held, timer.Seconds() / held};
}
// %%

}  // namespace d2l::async_computation
