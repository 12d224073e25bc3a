#include "common/lesson/run/prompt.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

// The terminal's settings before TakeKeys.
termios settings_before;
volatile sig_atomic_t settings_changed = 0;

// Has the terminal give each key at once, and not show it. Returns whether it
// does.
bool TakeKeys() {
  if (tcgetattr(STDIN_FILENO, &settings_before) != 0) return false;
  termios settings = settings_before;
  settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  settings_changed = 1;
  return tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) == 0;
}

// Waits for a key, without Enter: "3"; "" for Enter, also if it is pressed
// twice; several characters for an arrow key or pasted text; nothing for
// Ctrl-D. Ignores keys before the prompt.
std::optional<std::string> ReadKey(const std::string& prompt) {
  tcflush(STDIN_FILENO, TCIFLUSH);
  // Comes after the flush of the input: a key that follows the prompt is kept.
  std::cout << prompt << std::flush;
  char typed[64];
  const ssize_t size = read(STDIN_FILENO, typed, sizeof(typed));
  std::string key(typed, typed + std::max<ssize_t>(size, 0));
  while (absl::EndsWith(key, "\n")) key.pop_back();
  const bool shown = key.size() == 1 && absl::ascii_isprint(key[0]);
  std::cout << (shown ? key : "") << "\n";
  const bool end =
      size <= 0 || key == std::string(1, settings_before.c_cc[VEOF]);
  return end ? std::nullopt : std::optional(key);
}

}  // namespace

bool IsOnTerminal() { return isatty(STDOUT_FILENO) == 1; }

bool CanAsk() { return IsOnTerminal() && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void RestoreTerminal() {
  if (settings_changed != 0) {
    tcsetattr(STDIN_FILENO, TCSANOW, &settings_before);
  }
  settings_changed = 0;
}

std::optional<int> AskForChoice(const std::vector<std::string>& choices) {
  const int count = static_cast<int>(choices.size());
  for (int i = 0; i < count; ++i) {
    std::cout << Wrap(choices[i], absl::StrCat("  ", i + 1, "  "));
  }
  const std::string prompt = Lead(Say("Press 1-%d (Enter skips):", count));
  const absl::Cleanup restore = [] { RestoreTerminal(); };
  if (!TakeKeys()) return std::nullopt;
  while (const std::optional<std::string> key = ReadKey(prompt)) {
    if (key->empty()) return 0;
    const int digit = key->front() - '0';
    if (key->size() == 1 && digit >= 1 && digit <= count) return digit;
    std::cout << Wrap(Say("%s is not one of 1-%d. Ctrl-D skips all questions.",
                          QuotedText(*key), count))
              << std::flush;
    // Whoever has not looked, and types a word, would answer with a later key.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  return std::nullopt;
}

}  // namespace d2l
