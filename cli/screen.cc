// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/commands.h"
#include "cli/stop_signals.h"

namespace batchloom::cli {
namespace {

// A second screen, so that what was on the terminal is there again afterwards; without a cursor.
constexpr std::string_view kBegin = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kEnd = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearRest = "\x1b[J";

termios keys_before{};
bool keys_were_taken = false;

/// Only what a signal handler may do.
void give_terminal_back() {
  [[maybe_unused]] const ssize_t said = write(STDOUT_FILENO, kEnd.data(), kEnd.size());
  if (keys_were_taken) tcsetattr(STDIN_FILENO, TCSANOW, &keys_before);
}

void write_now(std::string_view text) {
  print(text);
  std::fflush(stdout);
}

}  // namespace

Screen::Screen() : is_terminal_(isatty(STDOUT_FILENO) == 1) {
  if (!is_terminal_) return;
  termios keys{};
  if (isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &keys) == 0) {
    keys_before = keys;
    keys_were_taken = true;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C stays a signal.
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  before_forced_end(give_terminal_back);
  write_now(kBegin);
}

Screen::~Screen() {
  if (!is_terminal_) return;
  std::fflush(stdout);
  give_terminal_back();
  before_forced_end(nullptr);
  keys_were_taken = false;
}

TopRoom Screen::room() const {
  winsize size{};
  if (!is_terminal_ || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {.columns = size.ws_col, .lines = size.ws_row};
}

void Screen::show(std::string_view text) const {
  if (!is_terminal_) {
    write_now(std::string(text) + "\n");
    return;
  }
  std::string drawn(kHome);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    drawn.append(text.substr(0, end)).append(kClearLine);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!text.empty()) drawn += "\n";  // None behind the last: the screen would move up.
  }
  write_now(drawn.append(kClearRest));
}

bool Screen::wants_to_quit() const {
  if (!keys_were_taken) return false;
  pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1) return false;
    if (key == 'q' || key == 'Q') return true;
  }
  return false;
}

}  // namespace batchloom::cli
