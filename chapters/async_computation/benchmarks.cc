// The programs of the cells as benchmarks, at the course's size.

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "chapters/async_computation/programs.h"
#include "common/d2l.h"
#include "common/device/stream_stall.h"
#include "common/lesson/cell/benchmark.h"

namespace d2l::async_computation {
namespace {

constexpr int kProducts = 10;
constexpr int kN = 1000;
constexpr double kFlop = kProducts * 2.0 * kN * kN * kN;
constexpr int kAdditions = 1000;
constexpr int kBatches = 32;
constexpr int kTimes = 10000;

bool BenchmarkAdditions(const std::string& name, bool launch_blocking) {
  return BenchmarkWork(name, kAdditions, [launch_blocking](Device device) {
    return [launch_blocking, a = Zeros({100, 100}, device)] {
      Additions(a, kAdditions, launch_blocking);
    };
  });
}

// An epoch of minibatches whose inputs come from the host. Counts the peak
// memory of the device and of staging buffers.
bool BenchmarkEpoch(const std::string& name, const std::string& way) {
  return BenchmarkWork(
      name, kBatches,
      [way](Device device) {
        constexpr int kSize = 512;
        const std::vector<float> host(kSize * kSize, 1);
        const Tensor ones = FromVector(host, {kSize, kSize}, device);
        Synchronize(device);
        for (DeviceMemory* memory : {&Memory(device), &PinnedMemory(device)}) {
          memory->EmptyCache();
          memory->ResetPeak();
        }
        return
            [=] { Epoch("staging buffers", way, host, ones, kBatches, [] {}); };
      },
      /*flop=*/0,
      [](Device device) {
        const auto peak = [](DeviceMemory& memory) {
          return static_cast<double>(memory.Stats().peak);
        };
        return Rates{{"device_bytes", peak(Memory(device))},
                     {"staging_bytes", peak(PinnedMemory(device))}};
      });
}

// A product, three more behind it, and a barrier.
bool BenchmarkBarrier(const std::string& name, void (*wait)(const Tensor& b)) {
  return BenchmarkCalls(
      name, 1,
      [wait](Device device) {
        return
            [wait, a = Rand({kN, kN}, device)] { wait(Products(a, 3).first); };
      },
      /*iterations=*/20);
}

// A program that repeats an operation kTimes on a small tensor of ones.
template <typename Program>
bool BenchmarkTimes(const std::string& name, const Shape& shape,
                    Program program) {
  return BenchmarkWork(name, kTimes, [shape, program](Device device) {
    return [program, x = Ones(shape, device)] { program(x, kTimes); };
  });
}

// t1 or t2 of a thousand additions.
bool BenchmarkHeldUp(const std::string& name, bool enqueueing) {
  return BenchmarkSeconds(name, kAdditions, [enqueueing](Device device) {
    return [=, held = std::min(kAdditions, StreamStall::Room(device)),
            x = Ones({1, 2}, device)] {
      const auto [t1, t2] = T1AndT2(x, held);
      return kAdditions * (enqueueing ? t1 : t2);
    };
  });
}

[[maybe_unused]] const bool registered[] = {
    BenchmarkHost(
        "BM_004_In2_RandnMatMul_Host", kProducts,
        [] { return [] { TenProductsOnTheHost(kN); }; }, kFlop),
    BenchmarkCalls(
        "BM_004_In2_RandnMatMul_Enqueue", kProducts,
        [](Device device) { return [device] { TenProducts(kN, device); }; },
        /*iterations=*/20),
    BenchmarkWork(
        "BM_004_In4_RandnMatMul_Synchronized", kProducts,
        [](Device device) { return [device] { TenProductsDone(kN, device); }; },
        kFlop),
    BenchmarkCalls(
        "BM_004_In5_OnesMulAdd_Enqueue", 1,
        [](Device device) { return [device] { ThreeStatements(device); }; }),
    BenchmarkWork("BM_004_In5_OnesMulAdd_Print", 1,
                  [](Device device) {
                    return [device] {
                      std::ostringstream() << ThreeStatements(device);
                    };
                  }),
    BenchmarkAdditions("BM_000_launch_blocking_Add_Without", false),
    BenchmarkAdditions("BM_000_launch_blocking_Add_With", true),
    BenchmarkEpoch("BM_004_queue_memory_Epoch_Enqueueing", "enqueueing"),
    BenchmarkEpoch("BM_004_queue_memory_Epoch_Synchronizing", "synchronizing"),
    BenchmarkEpoch("BM_004_queue_memory_Epoch_Reading", "reading"),
    BenchmarkBarrier("BM_d2l_barriers_MatMul_WaitAll", WaitForAll),
    BenchmarkBarrier("BM_d2l_barriers_MatMul_WaitToRead", WaitForOne),
    BenchmarkTimes("BM_d2l_blockers_Mul_ReadEach", {}, ReadEach),
    BenchmarkTimes("BM_d2l_blockers_Mul_ReadAtTheEnd", {},
                   [](const Tensor& x, int n) {
                     Tensor y;
                     for (int i = 0; i < n; ++i) y = x * (i % 10);
                     return Item(y);
                   }),
    BenchmarkTimes("BM_d2l_blockers_Mul_SumOnTheDevice", {}, SumOnTheDevice),
    BenchmarkTimes("BM_d2l_t1_t2_t3_AddOne_Each", {1, 2},
                   [](const Tensor& x, int n) { AddOnes(x, n, true); }),
    BenchmarkTimes("BM_d2l_t1_t2_t3_AddOne_Once", {1, 2},
                   [](const Tensor& x, int n) { AddOnes(x, n, false); }),
    BenchmarkHeldUp("BM_d2l_t1_t2_t3_AddOne_Enqueue", /*enqueueing=*/true),
    BenchmarkHeldUp("BM_d2l_t1_t2_t3_AddOne_Compute", /*enqueueing=*/false),
};

}  // namespace
}  // namespace d2l::async_computation
