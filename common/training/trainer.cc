#include "common/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"

namespace d2l {
namespace {

// 0 if all is finite, else NaN, as infinity times 0 is. Asynchronous.
Tensor CheckFinite(const Tensor& x) { return To(Sum(x * 0), DType::kFloat64); }
Tensor CheckFinite(const TrainingState& state, const Tensor& loss) {
  Tensor check = CheckFinite(loss);
  for (const auto& [name, tensor] : state.tensors) {
    if (!IsFloatingPoint(tensor.dtype())) continue;
    check = check + CheckFinite(tensor);
  }
  return check;
}

// Keeps the results of operations.
class Results : public OpListener {
 public:
  // "exp of (256, 10), requested at net.cc:88"; "" if all are finite. Of memory
  // that several operations wrote to in place it sees the last values.
  std::string FirstNotFinite() const {
    for (const Result& result : results_) {
      if (Item(CheckFinite(result.value)) == 0) continue;
      std::string text = absl::StrFormat(
          "%s, whose result is %s, requested at %s", result.operation,
          result.value.Describe(), result.at.ToString());
      if (result.by.known()) {
        absl::StrAppend(&text, " for ", result.by.ToString());
      }
      return text;
    }
    return "";
  }

 private:
  struct Result {
    const char* operation;
    SourceLocation at;
    SourceLocation by;
    Tensor value;
  };

  void OnOp(const OpRecord& record) override {
    if (record.view || record.primitive->effect() == Effect::kUninitialized) {
      return;
    }
    if (!IsFloatingPoint(record.output.dtype())) return;
    results_.push_back({record.primitive->name(), record.requested_at,
                        record.requested_by, record.output});
  }

  std::vector<Result> results_;
};

}  // namespace

Tensor CountRight(const Tensor& logits, const Tensor& labels) {
  return Sum(ArgMax(logits, 1) == labels);
}

TrainStep MakeTrainStep(nn::Module& net, nn::SGD& sgd) {
  return [&net, &sgd](const Batch& batch) {
    if (batch.labels.numel() == 0) {
      throw std::invalid_argument(
          "[Trainer] a batch of at least one image wanted; got none");
    }
    GradientTape tape(nn::Parameters(net));
    const Tensor logits = net(batch.images);
    const Tensor loss = nn::CrossEntropyLoss(logits, batch.labels);
    sgd.Step(tape.Backward(loss));
    return StepResult{loss, CountRight(logits, batch.labels)};
  };
}

std::optional<double> Accuracy(nn::Module& net, DataLoader& batches,
                               const std::function<bool()>& stop) {
  const bool training = net.training();
  net.Eval();
  const absl::Cleanup as_before = [&] { net.Train(training); };
  batches.SetPosition({0, 0});
  Tensor right = Zeros({}, batches.device(), DType::kInt64);
  std::deque<Tensor> in_flight;
  while (std::optional<Batch> batch = batches.Next()) {
    if (stop()) return std::nullopt;
    right = right + CountRight(net(batch->images), batch->labels);
    in_flight.push_back(right);
    if (in_flight.size() > Trainer::kStepsPerLook) {
      WaitToRead(in_flight.front());
      in_flight.pop_front();
    }
  }
  return Item(right) / static_cast<double>(batches.data().size());
}

Trainer::Trainer(nn::Module& net, nn::SGD& sgd, DataLoader& batches,
                 TrainerHooks hooks)
    : Trainer(net, sgd, batches, std::move(hooks), MakeTrainStep(net, sgd)) {}

Trainer::Trainer(nn::Module& net, nn::SGD& sgd, DataLoader& batches,
                 TrainerHooks hooks, TrainStep step,
                 std::vector<Device> devices)
    : net_(net),
      sgd_(sgd),
      batches_(batches),
      hooks_(std::move(hooks)),
      step_(std::move(step)),
      devices_(devices.empty() ? std::vector<Device>{batches.device()}
                               : std::move(devices)) {
  for (const auto& [name, parameter] : nn::NamedParameters(net)) {
    if (parameter.device() == batches.device()) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[Trainer] parameter \"%s\" is %s, and the batches are on %s: before "
        "the optimiser is made, move the network with nn::To(net, device)",
        name, parameter.Describe(), batches.device().ToString()));
  }
  if (batches.batches() == 0) {
    throw std::invalid_argument(
        absl::StrFormat("[Trainer] at least one batch wanted; %s, which has %d "
                        "images, has none",
                        batches.data().name, batches.data().size()));
  }
  progress_.next = batches.position();
}

void Trainer::SetProgress(const TrainingProgress& progress) {
  batches_.SetPosition(progress.next);
  const std::int64_t before =
      std::min(progress.next.batch * batches_.options().batch_size,
               batches_.data().size());
  if (progress.samples != before || progress.right < 0 ||
      progress.right > before) {
    throw std::invalid_argument(absl::StrFormat(
        "[Trainer] %d of %d samples right before batch %d of an epoch; there "
        "are %d samples before it",
        progress.right, progress.samples, progress.next.batch, before));
  }
  progress_ = progress;
}

Trainer::Mark Trainer::MakeMark(const Tensor& loss_sum, const Tensor& right,
                                std::int64_t samples) {
  Mark mark = {batches_.position(),
               samples,
               loss_sum,
               right,
               {},
               CopyState(net_, sgd_, devices_)};
  mark.check = CheckFinite(mark.state, loss_sum);
  return mark;
}

absl::StatusOr<bool> Trainer::RunEpoch() {
  const Device device = batches_.device();
  const Timer timer;
  const double seconds_before = progress_.seconds;
  Tensor loss_sum = Full({}, progress_.loss_sum, device, DType::kFloat64);
  Tensor right = Full({}, progress_.right, device, DType::kInt64);
  std::int64_t samples = progress_.samples;
  Mark good = MakeMark(loss_sum, right, samples);
  const auto look = [&](Mark mark) {
    absl::Status status = Look(mark, good);
    progress_.seconds = seconds_before + timer.Seconds();
    good = std::move(mark);
    if (status.ok()) hooks_.look(progress_);
    return status;
  };

  std::optional<Mark> next_look;
  bool over = false;
  for (int steps = 1; !hooks_.stop(); ++steps) {
    const std::optional<Batch> batch = batches_.Next();
    if (!batch) {
      over = true;
      break;
    }
    const StepResult result = step_(*batch);
    const std::int64_t size = batch->labels.numel();
    loss_sum = loss_sum + To(result.loss, DType::kFloat64) * size;
    right = right + result.right;
    samples += size;
    if (steps % kStepsPerLook != 0) continue;
    if (next_look) {
      const absl::Status status = look(*std::move(next_look));
      if (!status.ok()) return status;
    }
    next_look = MakeMark(loss_sum, right, samples);
  }
  if (next_look) {
    const absl::Status status = look(*std::move(next_look));
    if (!status.ok()) return status;
  }
  Mark last = MakeMark(loss_sum, right, samples);
  // The loader is in the next epoch already; this one ends in FinishEpoch.
  if (over) last.next = {progress_.next.epoch, batches_.batches()};
  const absl::Status status = look(std::move(last));
  if (!status.ok()) return status;
  return over;
}

void Trainer::FinishEpoch(double test_accuracy) {
  const auto samples = static_cast<double>(progress_.samples);
  TrainingProgress next;
  next.epochs = std::move(progress_.epochs);
  next.epochs.push_back({progress_.seconds, progress_.loss_sum / samples,
                         static_cast<double>(progress_.right) / samples,
                         test_accuracy});
  next.next = {progress_.next.epoch + 1, 0};
  progress_ = std::move(next);
}

absl::Status Trainer::Look(const Mark& mark, const Mark& good) {
  if (Item(mark.check) != 0) return Explain(good);
  progress_.next = mark.next;
  progress_.samples = mark.samples;
  progress_.right = Item<std::int64_t>(mark.right);
  progress_.loss_sum = Item(mark.loss_sum);
  return absl::OkStatus();
}

absl::Status Trainer::Explain(const Mark& good) {
  absl::Status restored = RestoreState(good.state, net_, sgd_, devices_);
  if (!restored.ok()) return restored;
  batches_.SetPosition(good.next);
  while (true) {
    const LoaderPosition at = batches_.position();
    const std::optional<Batch> batch = batches_.Next();
    if (!batch) break;
    const TrainingState before = CopyState(net_, sgd_, devices_);
    const Tensor loss = step_(*batch).loss;
    if (Item(CheckFinite(CopyState(net_, sgd_, devices_), loss)) == 0) continue;
    restored = RestoreState(before, net_, sgd_, devices_);
    if (!restored.ok()) return restored;
    Results results;
    {
      const ScopedOpListener listen(&results);
      step_(*batch);
    }
    const std::string first = results.FirstNotFinite();
    restored = RestoreState(before, net_, sgd_, devices_);
    if (!restored.ok()) return restored;
    return absl::OutOfRangeError(absl::StrFormat(
        "the training left the finite numbers in batch %d of epoch %d, where "
        "the loss was %s. First: %s.",
        at.batch + 1, at.epoch + 1,
        std::isnan(Item(loss)) ? "NaN" : absl::StrCat(Item(loss)), first));
  }
  return absl::InternalError(
      "a loss or parameter was not finite, but was when the batches were run "
      "again: the step is no function of the parameters and the batch");
}

}  // namespace d2l
