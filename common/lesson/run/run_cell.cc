#include "common/lesson/run/run_cell.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <streambuf>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/mutex.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/lesson/cell/cell.h"

namespace d2l {
namespace {

// Reports on stderr, if that is a terminal, that the cell is still running.
class SlownessNotice {
 public:
  explicit SlownessNotice(std::string what) : what_(std::move(what)) {
    if (isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { Run(); });
  }
  ~SlownessNotice() {
    {
      MutexLock lock(mutex_);
      done_ = true;
    }
    ended_.NotifyAll();
    if (thread_.joinable()) thread_.join();
  }
  SlownessNotice(const SlownessNotice&) = delete;
  SlownessNotice& operator=(const SlownessNotice&) = delete;

 private:
  void Run() {
    const Timer timer;
    double next = 2;
    MutexLock lock(mutex_);
    while (!done_) {
      const double left = next - timer.Seconds();
      if (left > 0) {
        ended_.WaitFor(mutex_, std::chrono::milliseconds(
                                   1 + static_cast<int>(1000 * left)));
        continue;
      }
      std::cerr << Say("%s: %.0f s ...", what_, next) << "\n" << std::flush;
      next = next < 10 ? 10 : next + 10;
    }
  }

  const std::string what_;
  Mutex mutex_;
  CondVar ended_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The advice for a lack of memory.
std::string SmallerSize(Size size) {
  switch (size) {
    case Size::kLarge:
      return Say("Run the lesson with --size=course or --size=small.");
    case Size::kCourse:
      return Say("Run the lesson with --size=small.");
    case Size::kSmall:
      break;
  }
  return Say(
      "This is the smallest size; end other programs, or lower "
      "--max_queued_operations and --max_bytes_in_flight.");
}

void WaitForAllDevices() {
  for (const DeviceInfo& info : Devices()) Synchronize(info.device);
}

// Removes the effects of an error, which must not appear in the next cell.
void ForgetFailures() {
  for (const DeviceInfo& info : Devices()) {
    try {
      Synchronize(info.device);
    } catch (const AsyncError&) {
      // The failure was reported already, or follows from one that was.
    }
  }
}

// While it lives, also keeps the text written to std::cout. Not thread-safe;
// several threads' texts have no order.
class KeepOutput : private std::streambuf {
 public:
  KeepOutput() : out_(std::cout.rdbuf(this)) {}
  ~KeepOutput() override { std::cout.rdbuf(out_); }
  KeepOutput(const KeepOutput&) = delete;
  KeepOutput& operator=(const KeepOutput&) = delete;

  const std::string& text() const { return text_; }

 private:
  int_type overflow(int_type c) override {
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    text_.append(text, static_cast<std::size_t>(size));
    return out_->sputn(text, size);
  }
  int sync() override { return out_->pubsync(); }

  std::streambuf* const out_;
  std::string text_;
};

}  // namespace

bool RunCell(const std::string& name, void (*code)(Cell& cell), Cell& cell,
             CellResult* result) {
  const SlownessNotice notice(name);
  const KeepOutput kept;
  std::string& error = result->error;
  const Timer timer;
  const auto end = [&] {
    result->seconds = timer.Seconds();
    result->output = kept.text();
  };
  try {
    code(cell);
    // An operation whose result was not read may still fail: here, not later.
    WaitForAllDevices();
    cell.ShowFigures();
    end();
    return true;
  } catch (const OutOfMemoryError& e) {
    error = absl::StrCat(e.what(), " ", SmallerSize(cell.size()));
  } catch (const std::exception& e) {
    error = e.what();
  } catch (...) {
    error = "something that is not a std::exception was thrown";
  }
  end();
  std::cout << std::flush;
  std::cerr << Wrap(error, Say("Error in %s:", result->text.id) + " ")
            << std::flush;
  ForgetFailures();
  return false;
}

}  // namespace d2l
