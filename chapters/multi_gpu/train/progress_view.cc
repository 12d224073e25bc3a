#include "chapters/multi_gpu/train/progress_view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

// "1:05", "2:00:10".
std::string ClockTime(double seconds) {
  const std::int64_t s = std::llround(seconds);
  return s < 3600
             ? absl::StrFormat("%d:%02d", s / 60, s % 60)
             : absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

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
  // mpirun gives its processes a terminal, which is not what one sees.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ||
      isatty(STDOUT_FILENO) == 0 || terminal == nullptr ||
      std::string(terminal) == "dumb" ||
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return 0;
  }
  // 0 where nobody has told the terminal: then the bar alone.
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
  // The terminal would scroll a drawing that is higher.
  if (std::count(text.begin(), text.end(), '\n') + 2 > rows_) text.clear();
  absl::StrAppend(&text, Bar(), "\n");
  drawn_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  out_ << text << std::flush;
}

// Up, and everything from there on.
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
