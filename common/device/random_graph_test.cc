// Property: a graph of operations on several devices and streams, ordered by
// the streams and by events where an edge crosses from one to another, gives
// the same result as the operations one after the other. The events are needed
// for that: without one of the needed ones the result differs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr int kGraphs = 1000;
constexpr int kNodes = 200;
constexpr int kDevices = 3;
constexpr int kStreams = 2 * kDevices;
constexpr int kMaxInputs = 3;

// The value of memory that no operation has written.
constexpr std::uint64_t kUnwritten = 0x5eed;

struct Node {
  int stream = 0;
  int inputs = 0;
  int input[kMaxInputs];  // earlier nodes
  bool read_elsewhere = false;
  int last_reader = -1;
};

using Graph = std::vector<Node>;

// Splitmix64's finaliser, of a sum in which the two do not commute.
std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Graph RandomGraph(std::mt19937_64& random) {
  Graph graph(kNodes);
  for (int n = 0; n < kNodes; ++n) {
    Node& node = graph[n];
    node.stream = static_cast<int>(random() % kStreams);
    node.inputs = static_cast<int>(random() % (kMaxInputs + 1));
    if (n == 0) node.inputs = 0;
    for (int i = 0; i < node.inputs; ++i) {
      // Half of the edges are short, since a race would hit these.
      const int reach = random() % 2 == 0 ? n : std::min(n, 8);
      node.input[i] = n - 1 - static_cast<int>(random() % reach);
      Node& from = graph[node.input[i]];
      from.last_reader = n;
      if (from.stream != node.stream) from.read_elsewhere = true;
    }
  }
  return graph;
}

// The values of all nodes, and one per stream that depends on the order in
// which its nodes ran.
struct Result {
  std::vector<std::uint64_t> values = std::vector<std::uint64_t>(kNodes);
  std::vector<std::uint64_t> streams = std::vector<std::uint64_t>(kStreams);

  bool operator==(const Result& other) const {
    return values == other.values && streams == other.streams;
  }
};

Result Serial(const Graph& graph) {
  Result result;
  for (int n = 0; n < kNodes; ++n) {
    const Node& node = graph[n];
    std::uint64_t value = Mix(n, node.stream);
    for (int i = 0; i < node.inputs; ++i) {
      value = Mix(value, result.values[node.input[i]]);
    }
    result.values[n] = value;
    result.streams[node.stream] = Mix(result.streams[node.stream], value);
  }
  return result;
}

// An edge: `reader` reads node.input[input] of another stream.
struct Edge {
  int reader = -1;
  int input = 0;
};

// True if without the event of `edge` nothing orders its two ends.
bool IsNeeded(const Graph& graph, Edge edge) {
  const int from = graph[edge.reader].input[edge.input];
  // The nodes that are ordered behind `from` without the edge.
  std::vector<bool> behind(kNodes, false);
  behind[from] = true;
  for (int n = from + 1; n < kNodes; ++n) {
    for (int i = 0; i < graph[n].inputs; ++i) {
      const bool left_out = n == edge.reader && graph[n].input[i] == from;
      if (!left_out && behind[graph[n].input[i]]) behind[n] = true;
    }
    for (int m = n - 1; m >= from; --m) {  // the node before it on its stream
      if (graph[m].stream != graph[n].stream) continue;
      if (behind[m]) behind[n] = true;
      break;
    }
  }
  return !behind[edge.reader];
}

class RandomGraphTest : public testing::Test {
 protected:
  RandomGraphTest() {
    const std::vector<Device> devices = AllDevices();
    for (int s = 0; s < kStreams; ++s) {
      const Device device = devices[s % kDevices % devices.size()];
      streams_.push_back(MakeStream(device, 1 + s / kDevices));
    }
  }

  // Enqueues the operation of node n, without the events it needs.
  void EnqueueNode(const Graph& graph, int n,
                   const std::vector<std::uint64_t*>& at, Result* result) {
    struct Operation {
      std::uint64_t seed;
      int inputs;
      const std::uint64_t* input[kMaxInputs];
      std::uint64_t* output;
      std::uint64_t* value;
      std::uint64_t* stream;
      void operator()() const {
        std::uint64_t mixed = seed;
        for (int i = 0; i < inputs; ++i) mixed = Mix(mixed, *input[i]);
        *output = mixed;
        *value = mixed;
        *stream = Mix(*stream, mixed);
      }
    };
    const Node& node = graph[n];
    Operation operation{Mix(n, node.stream),
                        node.inputs,
                        {},
                        at[n],
                        &result->values[n],
                        &result->streams[node.stream]};
    for (int i = 0; i < node.inputs; ++i) {
      operation.input[i] = at[node.input[i]];
    }
    streams_[node.stream]->HostCallback(operation);
  }

  void WaitForInputs(const Graph& graph, int n,
                     const std::vector<Event>& events, Edge left_out) {
    const Node& node = graph[n];
    for (int i = 0; i < node.inputs; ++i) {
      const int from = node.input[i];
      if (graph[from].stream == node.stream) continue;
      if (n == left_out.reader && from == node.input[left_out.input]) continue;
      streams_[node.stream]->Wait(events[from]);
    }
  }

  // Every node's value lies in memory of its device, which is released as soon
  // as the last reader is enqueued: so blocks are in flight and reused, too.
  Result RunWithReusedMemory(const Graph& graph) {
    Result result;
    std::vector<StorageRef> blocks(kNodes);
    std::vector<std::uint64_t*> at(kNodes);
    std::vector<Event> events(kNodes);
    for (int n = 0; n < kNodes; ++n) {
      const Node& node = graph[n];
      Stream& stream = *streams_[node.stream];
      blocks[n] = AllocateOnHost(stream);
      at[n] = static_cast<std::uint64_t*>(blocks[n]->data());
      WaitForInputs(graph, n, events, Edge());
      EnqueueNode(graph, n, at, &result);
      blocks[n]->RecordStream(stream);
      if (node.read_elsewhere) events[n] = stream.Record();
      if (node.last_reader < 0) blocks[n].reset();
      for (int i = 0; i < node.inputs; ++i) {
        const int from = node.input[i];
        if (!blocks[from]) continue;  // read twice by this node
        blocks[from]->RecordStream(stream);
        if (graph[from].last_reader == n) blocks[from].reset();
      }
    }
    for (const auto& stream : streams_) stream->Synchronize();
    return result;
  }

  // Memory that host callbacks may touch: on a GPU that is pinned memory.
  StorageRef AllocateOnHost(Stream& stream) {
    const int d = stream.device().index();
    if (stream.device().type() != DeviceType::kCpu) {
      return PinnedMemory(stream.device()).AllocatePinned(8);
    }
    while (static_cast<int>(memories_.size()) <= d) {
      memories_.push_back(std::make_unique<DeviceMemory>(
          CpuBackend(), Device(DeviceType::kCpu, memories_.size()), 0,
          DeviceMemory::Kind::kDevice, std::int64_t{1} << 30));
    }
    return memories_[d]->Allocate(8, stream);
  }

  // Runs the graph with the writing node of `edge` blocked until the reader is
  // done, which is possible only if nothing orders the reader behind it.
  Result RunWithout(const Graph& graph, Edge edge) {
    Result result;
    std::vector<std::uint64_t> memory(kNodes, kUnwritten);
    std::vector<std::uint64_t*> at(kNodes);
    for (int n = 0; n < kNodes; ++n) at[n] = &memory[n];
    std::vector<Event> events(kNodes);
    const int from = graph[edge.reader].input[edge.input];
    std::unique_ptr<StreamStall> stall;
    for (int n = 0; n < kNodes; ++n) {
      Stream& stream = *streams_[graph[n].stream];
      WaitForInputs(graph, n, events, edge);
      if (n == from) stall = std::make_unique<StreamStall>(stream);
      EnqueueNode(graph, n, at, &result);
      if (graph[n].read_elsewhere) events[n] = stream.Record();
      if (n == edge.reader) {
        stream.Record().Synchronize();
        stall->Release();
      }
    }
    for (const auto& stream : streams_) stream->Synchronize();
    return result;
  }

  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<DeviceMemory>> memories_;  // destroyed first
};

TEST_F(RandomGraphTest, EqualsTheSerialResult) {
  std::mt19937_64 random(20240917);
  std::int64_t edges_across = 0;
  for (int g = 0; g < kGraphs; ++g) {
    const Graph graph = RandomGraph(random);
    for (int n = 0; n < kNodes; ++n) {
      for (int i = 0; i < graph[n].inputs; ++i) {
        edges_across += graph[graph[n].input[i]].stream != graph[n].stream;
      }
    }
    const Result serial = Serial(graph);
    const Result result = RunWithReusedMemory(graph);
    ASSERT_EQ(result.values, serial.values) << "graph " << g;
    ASSERT_EQ(result.streams, serial.streams) << "graph " << g;
  }
  EXPECT_GT(edges_across, 100 * kGraphs) << "or it would prove little";
  for (const auto& memory : memories_) EXPECT_EQ(memory->Stats().allocated, 0);
}

TEST_F(RandomGraphTest, OneEventLeftOutMakesAnotherResult) {
  std::mt19937_64 random(7);
  int tried = 0;
  while (tried < 50) {
    const Graph graph = RandomGraph(random);
    std::vector<Edge> needed;
    for (int n = 0; n < kNodes; ++n) {
      for (int i = 0; i < graph[n].inputs; ++i) {
        const Edge edge{n, i};
        if (graph[graph[n].input[i]].stream != graph[n].stream &&
            IsNeeded(graph, edge)) {
          needed.push_back(edge);
        }
      }
    }
    if (needed.empty()) continue;
    ++tried;
    const Edge edge = needed[random() % needed.size()];
    const Result serial = Serial(graph);
    const Result result = RunWithout(graph, edge);
    const int from = graph[edge.reader].input[edge.input];
    EXPECT_EQ(result.values[from], serial.values[from]);
    EXPECT_NE(result.values[edge.reader], serial.values[edge.reader])
        << "the event between " << from << " and " << edge.reader
        << " was left out, and nothing happened";
    EXPECT_FALSE(result == serial);
  }
}

}  // namespace
}  // namespace d2l
