#include "common/profiler/race_checker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/source_location.h"
#include "common/device/device_table.h"
#include "common/device/testing/testing.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SourceLocation At(int line) { return {"program.cc", line}; }

class RaceCheckerTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    const std::vector<float> ones(100, 1);
    x_ = FromVector(ones, {10, 10}, GetParam());
    Synchronize(GetParam());
  }
  void TearDown() override { Synchronize(GetParam()); }

  Stream& other_ = NewStream(GetParam());
  Tensor x_;
};

TEST_P(RaceCheckerTest, NamesBothLinesAndTheMissingEvent) {
  const RaceChecker checker;
  const Tensor y = Square(x_, At(12));
  Tensor z;
  {
    const StreamGuard guard(other_);
    z = Square(y, At(14));
  }
  const std::string device = GetParam().ToString();
  EXPECT_THAT(checker.races(), SizeIs(1));
  // For exercises, which do not say at once what is missing.
  const std::string conflict = checker.races()[0].Conflict();
  EXPECT_THAT(conflict, HasSubstr("no event orders them."));
  EXPECT_THAT(conflict, Not(HasSubstr("Wait")));
  const std::string text = checker.Report();
  EXPECT_THAT(text, HasSubstr("RACE  square (program.cc:14, stream "));
  EXPECT_THAT(text, HasSubstr("reads what square"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("Missing: ", other_.name(), ".Wait(",
                                           device, ".Record())")));
  EXPECT_THAT(text, HasSubstr("lines 12 and 14."));
  EXPECT_THAT(text, HasSubstr("1 race in 2 operations on 2 streams.\n"));
}

// An operation on several tensors, as a step of SGD is: each that it reads or
// writes may race.
TEST_P(RaceCheckerTest, AnOperationOnListsRacesOnEachTensor) {
  const std::vector<Tensor> y = {Ones({5}, GetParam()), Ones({70}, GetParam())};
  const std::vector<Tensor> x = {Ones({5}, GetParam()), Ones({70}, GetParam())};
  Synchronize(GetParam());
  for (const bool ordered : {false, true}) {
    for (const std::size_t i : {0, 1}) {
      const RaceChecker checker;
      AxpbyInPlace(y, 1, x, 1, At(12));
      {
        if (ordered) other_.Wait(DefaultStream(GetParam()).Record());
        const StreamGuard guard(other_);
        Square(y[i], At(14));
        FillInPlace(x[i], 2, At(15));
      }
      if (ordered) {
        EXPECT_THAT(checker.races(), IsEmpty());
      } else {
        const std::string text = checker.Report();
        EXPECT_THAT(checker.races(), SizeIs(2));
        EXPECT_THAT(text, HasSubstr("RACE  square (program.cc:14, stream "));
        EXPECT_THAT(text, HasSubstr("reads what axpby (program.cc:12,"));
        EXPECT_THAT(text, HasSubstr("RACE  fill (program.cc:15, stream "));
        EXPECT_THAT(text, HasSubstr("2 races in 3 operations on 2 streams.\n"));
      }
      other_.Synchronize();
      Synchronize(GetParam());
    }
  }
}

// Batch normalisation writes to two of its operands.
TEST_P(RaceCheckerTest, AnOperationRacesOnTheOperandsThatItWrites) {
  const Tensor one = Ones({10}, GetParam());
  const Tensor mean = Zeros({10}, GetParam()), var = Ones({10}, GetParam());
  Synchronize(GetParam());
  for (const bool ordered : {false, true}) {
    const RaceChecker checker;
    BatchNorm(x_, one, one, mean, var, true, 0.1, 1e-5, At(12));
    {
      if (ordered) other_.Wait(DefaultStream(GetParam()).Record());
      const StreamGuard guard(other_);
      Square(mean, At(14));
      FillInPlace(var, 2, At(15));
      Square(x_, At(16));
    }
    const std::string text = checker.Report();
    EXPECT_THAT(checker.races(), SizeIs(ordered ? 0 : 2)) << text;
    if (!ordered) {
      EXPECT_THAT(text, HasSubstr("reads what batch_norm_stats"));
      EXPECT_THAT(text, HasSubstr("RACE  fill (program.cc:15, stream "));
    }
    other_.Synchronize();
    Synchronize(GetParam());
  }
}

TEST_P(RaceCheckerTest, AnEventBehindTheWriterOrders) {
  const RaceChecker checker;
  const Event before = DefaultStream(GetParam()).Record();
  const Tensor y = Square(x_, At(1));
  const Event behind = DefaultStream(GetParam()).Record();
  const StreamGuard guard(other_);
  other_.Wait(before);
  const Tensor race = Square(y, At(2));
  other_.Wait(behind);
  const Tensor right = Square(y, At(3));
  ASSERT_THAT(checker.races(), SizeIs(1));
  EXPECT_EQ(checker.races()[0].second.at, At(2));
}

TEST_P(RaceCheckerTest, WhatTheHostHasWaitedForIsDone) {
  const RaceChecker checker;
  const auto on_other = [&](const Tensor& x, int line) {
    const StreamGuard guard(other_);
    return Square(x, At(line));
  };
  const Tensor a = Square(x_, At(1));
  Synchronize(GetParam());
  on_other(a, 2);
  const Tensor b = Square(x_, At(3));
  Item(Sum(b));
  on_other(b, 4);
  const Tensor c = Square(x_, At(5));
  const Event event = DefaultStream(GetParam()).Record();
  const Tensor later = Square(x_, At(6));
  event.Synchronize();
  on_other(c, 7);
  EXPECT_THAT(checker.races(), IsEmpty());
  on_other(later, 8);
  EXPECT_THAT(checker.races(), SizeIs(1));
}

TEST_P(RaceCheckerTest, OverwritingRacesWithReadersToo) {
  const RaceChecker checker;
  const Tensor y = Square(x_, At(1));
  Synchronize(GetParam());
  Tensor read;
  {
    const StreamGuard guard(other_);
    read = Square(y, At(2));
  }
  FillInPlace(y, 3, At(3));
  ASSERT_THAT(checker.races(), SizeIs(1));
  EXPECT_THAT(checker.Report(), HasSubstr("overwrites what square"));
}

TEST_P(RaceCheckerTest, PartsOfATensorAreApart) {
  const RaceChecker checker;
  const Tensor y = Square(x_, At(1));
  Synchronize(GetParam());
  FillInPlace(Slice(y, 0, 0, 5), 1, At(2));
  const StreamGuard guard(other_);
  FillInPlace(Slice(y, 0, 5, 10), 2, At(3));
  EXPECT_THAT(checker.races(), IsEmpty());
  FillInPlace(Slice(y, 0, 4, 6), 3, At(4));
  EXPECT_THAT(checker.races(), SizeIs(1));
}

TEST_P(RaceCheckerTest, CopiesOfBytesCount) {
  const StorageRef host = PinnedMemory(GetParam()).AllocatePinned(400);
  const RaceChecker checker;
  const Tensor y = Square(x_, At(1));
  other_.CopyAsync(host->data(), y.data(), 400, CopyKind::kDeviceToHost, At(2));
  ASSERT_THAT(checker.races(), SizeIs(1));
  EXPECT_EQ(checker.races()[0].second.operation, "copy");
  other_.Synchronize();
}

// Memory that was allocated before the checker began, or since.
TEST_P(RaceCheckerTest, CopiesOfBytesCountWhereNoOperationHasBeen) {
  Stream& stream = DefaultStream(GetParam());
  const auto allocate = [&] {
    return Empty({100}, GetParam(), DType::kFloat32, At(1));
  };
  const Tensor before = allocate();
  const StorageRef host = PinnedMemory(GetParam()).AllocatePinned(400);
  const RaceChecker checker;
  const Tensor since = allocate();
  int line = 10;
  std::size_t races = 0;
  for (const Tensor& y : {before, since}) {
    other_.CopyAsync(y.data(), host->data(), 400, CopyKind::kHostToDevice,
                     At(line));
    Square(y, At(line + 1));
    EXPECT_THAT(checker.races(), SizeIs(++races)) << line;
    other_.Synchronize();
    stream.Synchronize();
    line += 10;
  }
  // Copies alone: of halves that do not meet, and of one that meets both.
  const Tensor y = allocate();
  auto* const bytes = static_cast<char*>(before.data());
  const auto copy = [&](Stream& on, std::size_t begin, int at) {
    on.CopyAsync(bytes + begin, y.data(), 200, CopyKind::kDeviceToDevice,
                 At(at));
  };
  copy(stream, 0, 31);
  copy(other_, 200, 32);
  EXPECT_THAT(checker.races(), SizeIs(races));
  Stream& third = NewStream(GetParam());
  copy(third, 100, 33);
  EXPECT_THAT(checker.races(), SizeIs(races + 2));
}

TEST_P(RaceCheckerTest, CopiesToAndFromPinnedMemoryRaceThere) {
  Stream& stream = DefaultStream(GetParam());
  DeviceMemory& pinned = PinnedMemory(GetParam());
  const StorageRef before = pinned.AllocatePinned(800);
  const RaceChecker checker;
  const StorageRef since = pinned.AllocatePinned(800);
  const Tensor from = Square(x_, At(1));
  const Tensor to = Square(x_, At(2));
  Synchronize(GetParam());
  std::size_t races = 0;
  for (const StorageRef& host : {before, since}) {
    auto* const bytes = static_cast<char*>(host->data());
    const auto fetch = [&](int at) {
      stream.CopyAsync(bytes, from.data(), 400, CopyKind::kDeviceToHost,
                       At(at));
    };
    const auto send = [&](int offset, int at) {
      other_.CopyAsync(to.data(), bytes + offset, 400, CopyKind::kHostToDevice,
                       At(at));
    };
    const int line = races == 0 ? 10 : 20;
    fetch(line);
    send(400, line + 1);
    EXPECT_THAT(checker.races(), SizeIs(races)) << "another part";
    send(0, line + 2);
    EXPECT_THAT(checker.races(), SizeIs(++races)) << line;
    Synchronize(GetParam());
    fetch(line + 3);
    other_.Wait(stream.Record());
    send(0, line + 4);
    EXPECT_THAT(checker.races(), SizeIs(races)) << "ordered by an event";
    Synchronize(GetParam());
  }
}

// To the host, memory that is freed and allocated again is other memory.
TEST_P(RaceCheckerTest, PinnedMemoryThatIsUsedAgainIsAnother) {
  DeviceMemory& pinned = PinnedMemory(GetParam());
  const RaceChecker checker;
  for (int i = 0; i < 20; ++i) {
    const StorageRef host = pinned.AllocatePinned(400);
    Stream& stream = i % 2 == 0 ? other_ : DefaultStream(GetParam());
    stream.CopyAsync(host->data(), x_.data(), 400, CopyKind::kDeviceToHost,
                     At(i));
    host->RecordStream(stream);
  }
  EXPECT_THAT(checker.races(), IsEmpty());
}

TEST_P(RaceCheckerTest, WhatWaitsBehindTheHostsReadIsNotDone) {
  Stream& stream = DefaultStream(GetParam());
  Stream& third = NewStream(GetParam());
  const RaceChecker checker;
  Tensor y;
  {
    const StreamGuard guard(other_);
    y = Square(x_, At(1));
  }
  const Tensor sum = Sum(x_, {}, false, At(2));
  stream.Wait(other_.Record());
  Item(sum);  // before the wait
  const auto use = [&](int line) {
    const StreamGuard guard(third);
    Square(y, At(line));
  };
  use(3);
  EXPECT_THAT(checker.races(), SizeIs(1));
  const Tensor behind = Sum(x_, {}, false, At(4));
  Item(behind);  // behind the wait
  use(5);
  EXPECT_THAT(checker.races(), SizeIs(1));
}

// Without a wait of the host.
TEST_P(RaceCheckerTest, QueryOrdersWhereItReturnsTrue) {
  const RaceChecker checker;
  for (Stream* const stream : {&DefaultStream(GetParam()), &other_}) {
    Tensor y;
    {
      const StreamGuard guard(*stream);
      y = Square(x_, At(1));
    }
    Stream& third = NewStream(GetParam());
    third.Wait(stream->Record());  // so Query must also see waits
    while (!third.Query()) std::this_thread::yield();
    const StreamGuard guard(NewStream(GetParam()));
    Square(y, At(2));
  }
  EXPECT_THAT(checker.races(), IsEmpty());
  {
    const StreamStall stall(other_);  // cudaMalloc might wait for it
    {
      const StreamGuard guard(other_);
      FillInPlace(x_, 1, At(3));
    }
    EXPECT_FALSE(other_.Query());
    FillInPlace(x_, 2, At(4));
  }
  EXPECT_THAT(checker.races(), SizeIs(1));
}

TEST_P(RaceCheckerTest, EachOfManyPartsIsRemembered) {
  constexpr int kParts = 600;
  const Tensor y = Zeros({kParts, 2}, GetParam());
  Synchronize(GetParam());
  const RaceChecker checker;
  for (int i = 0; i < kParts; ++i) {
    FillInPlace(Slice(y, 0, i, i + 1), 1, At(1));
  }
  const StreamGuard guard(other_);
  std::size_t races = 0;
  for (const int i : {0, 255, 256, 257, kParts - 1}) {
    FillInPlace(Slice(y, 0, i, i + 1), 2, At(10 + i));
    EXPECT_THAT(checker.races(), SizeIs(++races)) << i;
  }
}

TEST_P(RaceCheckerTest, AnOldEventStillOrders) {
  const RaceChecker checker;
  const Tensor y = Square(x_, At(1));
  const Event event = DefaultStream(GetParam()).Record();
  for (int i = 0; i < 100'001; ++i) other_.Record();
  other_.Wait(event);
  const StreamGuard guard(other_);
  Square(y, At(2));
  EXPECT_THAT(checker.races(), IsEmpty());
}

// Events that the host knows to be over are forgotten, and no others.
TEST_P(RaceCheckerTest, ManyEventsBetweenWaitsOfTheHostOrder) {
  const RaceChecker checker;
  for (int round = 0; round < 4; ++round) {
    const Tensor y = Square(x_, At(1));
    const Event event = DefaultStream(GetParam()).Record();
    for (int i = 0; i < 1500; ++i) other_.Record();
    if (round % 2 == 0) other_.Synchronize();
    const StreamGuard guard(other_);
    if (round == 3) {
      Square(y, At(2));
    } else {
      other_.Wait(event);
      Square(y, At(3));
    }
  }
  EXPECT_THAT(checker.races(), SizeIs(1));
}

TEST_P(RaceCheckerTest, ACopyIsOrderedByTheWaitsOfItsStream) {
  // From a GPU to a CPU the source's stream copies first.
  const std::vector<Device> devices = AllDevices();
  const auto other =
      std::find_if(devices.begin(), devices.end(), [](Device device) {
        return device != GetParam() && device.type() == GetParam().type();
      });
  if (other == devices.end()) GTEST_SKIP() << "needs two devices of a type";
  const Device receiver = *other;
  To(x_, receiver);
  const RaceChecker checker;
  const auto write = [&](int line) {
    const StreamGuard guard(other_);
    FillInPlace(x_, 3, At(line));
    return other_.Record();
  };
  DefaultStream(receiver).Wait(write(1));
  const Tensor right = To(x_, receiver, /*non_blocking=*/true, At(2));
  FillInPlace(x_, 4, At(3));  // behind the copy
  const Tensor read = Square(right, At(4));
  EXPECT_THAT(checker.races(), IsEmpty());
  DefaultStream(GetParam()).Wait(other_.Record());
  other_.Wait(DefaultStream(GetParam()).Record());
  write(5);
  const Tensor race = To(x_, receiver, /*non_blocking=*/true, At(6));
  ASSERT_THAT(checker.races(), SizeIs(1));
  EXPECT_EQ(checker.races()[0].second.stream, receiver.ToString());
  EXPECT_EQ(checker.races()[0].second.at, At(6));
  Synchronize(receiver);
}

TEST_P(RaceCheckerTest, MemoryThatIsUsedAgainIsAnother) {
  const RaceChecker checker;
  for (int i = 0; i < 20; ++i) {
    Tensor y = Square(x_, At(1));
    y = Tensor();
    const StreamGuard guard(other_);
    y = Square(x_, At(2));
  }
  EXPECT_THAT(checker.races(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, RaceCheckerTest, testing::ValuesIn(AllDevices()),
                         [](const auto& info) {
                           std::string name = info.param.ToString();
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

// ---- Random programs, and their races by the definition.

struct Step {
  enum Kind { kAdd, kSquare, kCopy, kWait, kSynchronize } kind;
  std::size_t stream = 0;
  std::size_t a = 0, b = 0;  // of the tensors
  std::size_t behind = 0;    // kWait: the step
};

struct Program {
  std::vector<Device> devices;      // of the streams
  std::vector<std::size_t> tensor;  // the device of each, by its first stream
  std::vector<Step> steps;
};

using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

// The pairs of steps that conflict and of which neither happens before the
// other; for this it records all steps that came before each step.
Pairs RacesOf(const Program& p, std::size_t left_out) {
  struct Access {
    std::size_t step, memory;
    bool writes;
  };
  std::vector<std::vector<bool>> before;
  const std::size_t n = p.steps.size();
  std::vector<std::vector<bool>> of_stream(p.devices.size(),
                                           std::vector<bool>(n));
  std::vector<bool> host(n);
  std::vector<Access> accesses;
  std::vector<std::size_t> memory(p.tensor.size());
  std::size_t memories = 0;
  for (std::size_t& m : memory) m = memories++;
  Pairs races;
  const auto join = [n](std::vector<bool>& to, const std::vector<bool>& from) {
    for (std::size_t i = 0; i < n; ++i) to[i] = to[i] || from[i];
  };
  for (std::size_t i = 0; i < n; ++i) {
    const Step& s = p.steps[i];
    std::vector<bool>& mine = of_stream[s.stream];
    before.emplace_back(n);
    if (i == left_out) continue;
    if (s.kind == Step::kSynchronize) {
      join(host, mine);
      continue;
    }
    join(mine, host);
    // A copy waits for the current stream of its source's device.
    std::vector<bool>& source = of_stream[p.tensor[s.a]];
    if (s.kind == Step::kWait) {
      join(mine, before[s.behind]);
      mine[s.behind] = true;
      continue;
    }
    if (s.kind == Step::kCopy) join(source, host), join(mine, source);
    before[i] = mine;
    mine[i] = true;
    if (s.kind == Step::kCopy) join(source, mine);
    std::vector<Access> now = {{i, memory[s.a], false}};
    if (s.kind == Step::kSquare) memory[s.b] = memories++;
    now.push_back({i, memory[s.b], true});
    for (const Access& use : now) {
      for (const Access& other : accesses) {
        if (other.memory == use.memory && (other.writes || use.writes) &&
            !before[i][other.step]) {
          races.insert({other.step, i});
        }
      }
    }
    accesses.insert(accesses.end(), now.begin(), now.end());
  }
  return races;
}

Program RandomProgram(std::mt19937& random,
                      const std::vector<std::vector<std::size_t>>& streams_of,
                      const std::vector<Device>& devices) {
  const auto below = [&](std::size_t n) { return random() % n; };
  Program p = {devices, {}, {}};
  for (std::size_t i = 0; i < 4 * streams_of.size(); ++i) {
    p.tensor.push_back(streams_of[i % streams_of.size()][0]);
  }
  const auto device_of = [&](std::size_t tensor) {
    return tensor % streams_of.size();
  };
  for (int i = 0; i < 25; ++i) {
    Step s = {Step::kAdd};
    s.a = below(p.tensor.size());
    do s.b = below(p.tensor.size());
    while (s.b == s.a);
    if (device_of(s.a) != device_of(s.b)) {
      s.kind = Step::kCopy;
    } else if (below(4) == 0) {
      s.kind = Step::kSquare;
    }
    const auto& streams = streams_of[device_of(s.b)];
    s.stream = streams[below(streams.size())];
    if (below(12) == 0) {
      p.steps.push_back({Step::kSynchronize, below(devices.size())});
    }
    // Adds the waits that this step lacks.
    p.steps.push_back(s);
    for (;;) {
      const Pairs races = RacesOf(p, p.steps.size());
      if (races.empty()) break;
      const Step wait = {
          Step::kWait,
          s.kind == Step::kCopy && below(2) == 0 ? p.tensor[s.a] : s.stream, 0,
          0, races.begin()->first};
      p.steps.insert(p.steps.end() - 1, wait);
    }
  }
  return p;
}

std::vector<Race> RacesIn(const Program& p, const std::vector<Stream*>& streams,
                          std::size_t left_out) {
  std::vector<Tensor> tensors;
  for (const std::size_t stream : p.tensor) {
    tensors.push_back(Ones({5}, p.devices[stream]));
  }
  for (const Device device : p.devices) Synchronize(device);
  const RaceChecker checker;
  std::map<std::size_t, Event> events;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const Step& s = p.steps[i];
    Stream& stream = *streams[s.stream];
    const StreamGuard guard(stream);
    if (i == left_out) continue;
    const SourceLocation at = At(static_cast<int>(i) + 1);
    switch (s.kind) {
      case Step::kAdd:
        AxpbyInPlace(tensors[s.b], 1, tensors[s.a], 1, at);
        break;
      case Step::kSquare:
        tensors[s.b] = Square(tensors[s.a], at);
        break;
      case Step::kCopy:
        CopyTo(tensors[s.a], tensors[s.b], /*non_blocking=*/true, at);
        break;
      case Step::kWait:
        stream.Wait(events.at(s.behind), at);
        break;
      case Step::kSynchronize:
        stream.Synchronize(at);
        break;
    }
    events[i] = stream.Record();
  }
  for (const Device device : p.devices) Synchronize(device);
  return checker.races();
}

TEST(RandomRaces, AreReportedIfAWaitIsMissingAndOnlyThen) {
  constexpr int kPrograms = 500;
  std::mt19937 random(32);
  const std::vector<Device> all = AllDevices();
  int missed = 0, programs = 0;
  while (programs < kPrograms) {
    std::vector<std::vector<std::size_t>> streams_of;
    std::vector<Device> devices;
    std::vector<Stream*> streams;
    const std::size_t count =
        1 + random() % std::min<std::size_t>(all.size(), 3);
    for (std::size_t d = 0; d < count; ++d) {
      // Copies need the current stream of the other device: its first.
      streams_of.emplace_back();
      for (std::size_t s = 0; s < 1 + random() % 2 + (count == 1); ++s) {
        streams_of.back().push_back(devices.size());
        devices.push_back(all[d]);
        static std::map<std::pair<std::size_t, std::size_t>, Stream*> made;
        Stream*& stream = made[{d, s}];
        if (stream == nullptr) {
          stream = s == 0 ? &DefaultStream(all[d]) : &NewStream(all[d]);
        }
        streams.push_back(stream);
      }
    }
    const Program p = RandomProgram(random, streams_of, devices);
    const std::size_t none = p.steps.size();
    std::vector<std::size_t> necessary;
    for (std::size_t i = 0; i < none; ++i) {
      if (p.steps[i].kind == Step::kWait && !RacesOf(p, i).empty()) {
        necessary.push_back(i);
      }
    }
    if (necessary.empty()) continue;
    ++programs;
    EXPECT_THAT(RacesIn(p, streams, none), IsEmpty());
    const std::size_t left_out = necessary[random() % necessary.size()];
    const Pairs expected = RacesOf(p, left_out);
    const std::vector<Race> found = RacesIn(p, streams, left_out);
    missed += found.empty();
    for (const Race& race : found) {
      EXPECT_EQ(
          expected.count({race.first.at.line() - 1, race.second.at.line() - 1}),
          1)
          << race.ToText();
    }
  }
  EXPECT_LE(missed, kPrograms / 100);
}

}  // namespace
}  // namespace d2l
