#include "chapters/multi_gpu/train/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

// "cpu:0, cpu:1", with f applied to each device.
template <typename F>
std::string DeviceList(const TrainOptions& options, F f) {
  return absl::StrJoin(options.devices, ", ",
                       [f](std::string* out, Device device) {
                         absl::StrAppend(out, f(device));
                       });
}

// "2 processes of 1 device"
std::string HowMany(const TrainOptions& options, const Processes& processes) {
  const std::size_t devices = options.devices.size();
  return absl::StrFormat("%d process%s of %d device%s", processes.size(),
                         processes.several() ? "es" : "", devices,
                         devices == 1 ? "" : "s");
}

// A checkpoint's description of its data or processes, in the run's language.
std::string InWords(const std::string& fingerprint) {
  int processes = 0, devices = 0;
  if (Language() != "en" && std::sscanf(fingerprint.c_str(), "%d %*s of %d",
                                        &processes, &devices) == 2) {
    return Say("%d processes of %d devices", processes, devices);
  }
  long long images = 0;
  char hash[17] = "";
  return std::sscanf(fingerprint.c_str(), "%lld images with the SHA-256 %16s",
                     &images, hash) == 2
             ? Say("%d images with the SHA-256 %s", images, std::string(hash))
             : fingerprint;
}

std::string InEach(const Processes& processes) {
  return processes.several() ? Say(" in each of %d processes", processes.size())
                             : "";
}

// "1:05", "2:00:10".
std::string ClockTime(double seconds) {
  const std::int64_t s = std::llround(seconds);
  return s < 3600
             ? absl::StrFormat("%d:%02d", s / 60, s % 60)
             : absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

std::string HeadText(const TrainOptions& options, const TrainData& data,
                     const Processes& processes, std::int64_t parameters) {
  const std::string devices = DeviceList(
      options, [](Device device) { return GetDeviceInfo(device).Describe(); });
  return Wrap(Say("%s, %d parameters, --init=%s, --batch_size=%d, --lr=%g, "
                  "--momentum=%g, --seed=%d, on %s%s",
                  options.net, parameters, options.init, options.batch_size,
                  options.lr, options.momentum, options.seed, devices,
                  InEach(processes))) +
         Wrap(Say("%s: %d images to train on, %d to test", data.training.name,
                  data.training.size(), data.test.size()));
}

std::string ResultText(const TrainOptions& options, const TrainData& data,
                       const Processes& processes,
                       const std::vector<EpochRecord>& epochs) {
  double seconds = 0;
  for (const EpochRecord& epoch : epochs) seconds += epoch.seconds;
  seconds /= static_cast<double>(epochs.size());
  const std::string devices =
      DeviceList(options, [](Device device) { return device.ToString(); });
  return Say("test accuracy %.2f on %s, %.1f s/epoch, on [%s]%s",
             epochs.back().test_accuracy, data.test.name, seconds, devices,
             InEach(processes));
}

std::string NotFiniteText(const TrainOptions& options,
                          const TrainingProgress& progress, double loss,
                          std::optional<std::size_t> saved_epoch) {
  // The batch of the step that was added last.
  const std::int64_t batch =
      (progress.samples + options.batch_size - 1) / options.batch_size;
  const double lr = options.lr / 10;
  return absl::StrCat(
      Say("the training left the finite numbers in batch %d of epoch %d, where "
          "the loss was %s.",
          batch, progress.next.epoch + 1,
          std::isnan(loss) ? "NaN" : absl::StrCat(loss)),
      " ",
      saved_epoch
          ? Say("Training stopped. Try a smaller learning rate: --lr=%.2g, or "
                "go on with it from %s, which is of the end of epoch %d.",
                lr, options.save, *saved_epoch)
          : Say("Training stopped. Try a smaller learning rate: --lr=%.2g.",
                lr));
}

std::string ChanceText(const TrainOptions& options,
                       const TrainingProgress& progress, std::int64_t batches) {
  const std::int64_t steps = progress.next.epoch * batches;
  const EpochRecord& last = progress.epochs.back();
  constexpr double kChance = 1.5 / kClasses;
  if (steps < 35 || last.training_accuracy > kChance ||
      last.test_accuracy > kChance) {
    return "";
  }
  return options.init == "book"
             ? Say("Still at chance after %d steps: try --init=xavier.\nThe "
                   "book's N(0, 0.01) keeps LeNet there for about 970 steps at "
                   "--lr=0.2, xavier for 35.",
                   steps)
             : Say("Still at chance after %d steps: try another --lr.", steps);
}

std::string HowToGoOnText(const TrainOptions& options, bool saved) {
  const std::string& file = saved ? options.save : options.resume;
  return file.empty()
             ? Translated(
                   "Nothing was saved: --save=FILE saves after each epoch.\n")
             : absl::StrCat(Translated("Go on from the last save with"), "\n  ",
                            options.CommandToResume(file), "\n");
}

std::map<std::string, std::string> Surroundings(const TrainOptions& options,
                                                const TrainData& data,
                                                const Processes& processes) {
  // "cpu (AMD EPYC), cpu (AMD EPYC)", as if all processes were like this one.
  const std::string own = DeviceList(options, [](Device device) {
    return absl::StrCat(DeviceTypeName(device.type()), " (",
                        GetDeviceInfo(device).name, ")");
  });
  return {
      {"data", data.training_fingerprint},
      {"test_data", data.test_fingerprint},
      {"hardware",
       absl::StrJoin(std::vector<std::string>(processes.size(), own), ", ")},
      {"processes", HowMany(options, processes)}};
}

std::string OtherDataText(const TrainOptions& options, const TrainData& data) {
  const auto before = options.checkpoint->options.find("data");
  if (before != options.checkpoint->options.end() &&
      before->second == data.training_fingerprint) {
    return "";
  }
  return Say(
      "it was trained on %s; %s has %s. Name the same data with "
      "--data_dir or --images.",
      before == options.checkpoint->options.end()
          ? Translated("nothing that it names")
          : InWords(before->second),
      data.training.name, InWords(data.training_fingerprint));
}

std::vector<std::string> ChangesSince(const TrainOptions& options,
                                      const TrainData& data,
                                      const Processes& processes) {
  std::vector<std::string> changes;
  const auto surroundings = Surroundings(options, data, processes);
  for (const auto& [name, so] :
       {std::pair{"hardware",
                  "from here on the numbers may differ in their last bits."},
        {"processes",
         options.by_mpi
             ? "MPI_Allreduce may add in another order, so from here on the "
               "numbers may differ in their last bits."
             : "as many devices in all, so the numbers stay the same, bit for "
               "bit."},
        {"test_data",
         "from here on the test accuracies are of other images."}}) {
    const std::string& now = surroundings.at(name);
    const auto before = options.checkpoint->options.find(name);
    if (before == options.checkpoint->options.end() || before->second == now) {
      continue;
    }
    changes.push_back(Say("It was made with %s, and this is %s: %s",
                          InWords(before->second), InWords(now),
                          Translated(so)));
  }
  return changes;
}

std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& epochs) {
  nlohmann::ordered_json curves = nlohmann::ordered_json::array();
  for (const EpochRecord& epoch : epochs) {
    curves.push_back({{"training_loss", epoch.loss},
                      {"training_accuracy", epoch.training_accuracy},
                      {"test_accuracy", epoch.test_accuracy},
                      {"seconds", epoch.seconds}});
  }
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const Device device : options.devices) {
    const DeviceInfo& info = GetDeviceInfo(device);
    devices.push_back({{"name", info.device.ToString()},
                       {"kind", DeviceKindName(info.kind)},
                       {"hardware", info.name}});
  }
  const nlohmann::ordered_json json = {
      {"program", "train"},
      {"data",
       {{"name", data.training.name.english},
        {"training", data.training_fingerprint},
        {"test", data.test_fingerprint}}},
      {"options", options.ForCheckpoint()},
      {"parameters", parameters},
      {"devices", devices},
      {"versions", {{"compiler", __VERSION__}}},
      {"epochs", curves}};
  // `replace`: a path may not be UTF-8, which must not throw.
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

Plot TrainingCurves(const std::vector<EpochRecord>& epochs) {
  Plot plot("epoch", "", "", "");
  std::vector<double> x, loss, training, test;
  for (const EpochRecord& epoch : epochs) {
    x.push_back(static_cast<double>(x.size() + 1));
    loss.push_back(epoch.loss);
    training.push_back(epoch.training_accuracy);
    test.push_back(epoch.test_accuracy);
  }
  plot.AddLine("training loss", x, loss);
  plot.AddLine("training accuracy", x, training);
  plot.AddLine("test accuracy", x, test);
  return plot;
}

int ProgressView::TerminalRows() {
  const char* const terminal = std::getenv("TERM");
  struct winsize size = {};
  // mpirun gives its processes a terminal that the user does not see.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
      isatty(STDOUT_FILENO) == 0 || terminal == nullptr ||
      std::string(terminal) == "dumb" ||
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return 0;
  }
  // 0 if the terminal does not know its size: then only the bar is drawn.
  return std::max<int>(size.ws_row, 2);
}

void ProgressView::Look(const TrainingProgress& progress) {
  progress_ = progress;
  const double now = 1e-9 * static_cast<double>(NowNanos());
  if (now - drawn_at_ < 0.1) return;
  drawn_at_ = now;
  Draw();
}

void ProgressView::Epoch(const TrainingProgress& progress) {
  const EpochRecord& last = progress.epochs.back();
  progress_ = progress;
  Line(Say("epoch %s/%d  loss %.4f  training %.4f  test %.4f  %.2f s  %.0f/s",
           absl::StrFormat("%*d",
                           static_cast<int>(absl::StrCat(work_.epochs).size()),
                           progress.epochs.size()),
           work_.epochs, last.loss, last.training_accuracy, last.test_accuracy,
           last.seconds, static_cast<double>(work_.samples) / last.seconds));
}

void ProgressView::Line(const std::string& line) {
  Erase();
  out_ << line << std::endl;
  Draw();
}

void ProgressView::Draw() {
  if (rows_ == 0) return;
  Erase();
  std::string text;
  if (!progress_.epochs.empty()) {
    text = TrainingCurves(progress_.epochs).ToText(TextWidth());
  }
  // The terminal would scroll a higher drawing.
  if (std::count(text.begin(), text.end(), '\n') + 2 > rows_) text.clear();
  absl::StrAppend(&text, Bar(), "\n");
  drawn_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  out_ << text << std::flush;
}

// Moves up, and erases everything from there on.
void ProgressView::Erase() {
  if (drawn_ > 0) out_ << absl::StrFormat("\033[%dF\033[J", drawn_);
  out_ << std::flush;
  drawn_ = 0;
}

// "epoch 3/10 [#####     ] 5120/s, loss 0.53, accuracy 0.81, 0:42 left"
std::string ProgressView::Bar() const {
  const auto done = static_cast<double>(progress_.samples);
  const double of =
      static_cast<double>(std::max<std::int64_t>(1, work_.samples));
  const double epochs =
      static_cast<double>(progress_.epochs.size()) + done / of;
  std::string figures;
  if (progress_.samples > 0 && progress_.seconds > 0) {
    const double rate = done / progress_.seconds;
    figures = Say(
        " %.0f/s, loss %.3f, accuracy %.3f, %s left", rate,
        progress_.loss_sum / done, static_cast<double>(progress_.right) / done,
        ClockTime((static_cast<double>(work_.epochs) - epochs) * of / rate));
  }
  const std::string epoch =
      Say("epoch %d/%d ",
          std::min<std::int64_t>(progress_.next.epoch + 1, work_.epochs),
          work_.epochs);
  const int width = std::clamp<int>(
      TextWidth() - 3 - static_cast<int>(TextColumns(epoch + figures)), 4, 30);
  const int full = static_cast<int>(width * std::clamp(done / of, 0.0, 1.0));
  const std::string bar = absl::StrCat(epoch, "[", std::string(full, '#'),
                                       std::string(width - full, ' '), "]");
  const auto columns = static_cast<int>(TextColumns(bar + figures));
  return columns < TextWidth() ? bar + figures : bar;
}

}  // namespace d2l
