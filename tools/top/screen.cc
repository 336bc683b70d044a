// SPDX-License-Identifier: Apache-2.0
#include "tools/top/screen.h"

#define NCURSES_NOMACROS 1
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <optional>

#include "base/time.h"

namespace ccom {
namespace {

constexpr std::array kEndings = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kEscape = 27;

volatile sig_atomic_t ended_by = 0;
void note_ending(int number) { ended_by = number; }

// Signals end a wait for keys, and nothing else, for as long as it lives.
class EndingsNoted {
 public:
  EndingsNoted() {
    struct sigaction action {};
    action.sa_handler = note_ending;
    for (size_t i = 0; i < kEndings.size(); ++i) ::sigaction(kEndings[i], &action, &before_[i]);
  }
  ~EndingsNoted() {
    for (size_t i = 0; i < kEndings.size(); ++i) ::sigaction(kEndings[i], &before_[i], nullptr);
  }
  EndingsNoted(const EndingsNoted&) = delete;
  EndingsNoted& operator=(const EndingsNoted&) = delete;

 private:
  std::array<struct sigaction, kEndings.size()> before_{};
};

class Terminal {
 public:
  Terminal() {
    std::setlocale(LC_ALL, "");
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return;
    screen_ = ::newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) return;
    ::set_escdelay(50);
    ::cbreak();
    ::noecho();
    ::nonl();
    ::keypad(stdscr, TRUE);
    ::nodelay(stdscr, TRUE);
    ::curs_set(0);
    if (::has_colors() == TRUE) {
      ::start_color();
      ::use_default_colors();
      ::init_pair(1, COLOR_RED, -1);
    }
  }
  ~Terminal() {
    if (screen_ == nullptr) return;
    ::endwin();
    ::delscreen(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool is_usable() const { return screen_ != nullptr; }

  void draw(const TopModel& model) {
    ::erase();
    int row = 0;
    for (const TopLine& line : model.lines(static_cast<size_t>(COLS), static_cast<size_t>(LINES))) {
      ::attrset(static_cast<int>(attributes_of(line.style)));
      ::mvaddstr(row++, 0, line.text.c_str());
      if (line.style == TopLine::Style::Selected) ::mvchgat(row - 1, 0, -1, A_REVERSE, 0, nullptr);
    }
    ::refresh();
  }

 private:
  static chtype attributes_of(TopLine::Style style) {
    switch (style) {
      case TopLine::Style::Title: return A_BOLD;
      case TopLine::Style::Header: return A_UNDERLINE;
      case TopLine::Style::Selected: return A_REVERSE;
      case TopLine::Style::Warning: return ::has_colors() == TRUE ? COLOR_PAIR(1) : A_BOLD;
      case TopLine::Style::Plain: break;
    }
    return A_NORMAL;
  }
  SCREEN* screen_ = nullptr;
};

std::optional<TopModel::Key> key_of(int code) {
  switch (code) {
    case KEY_UP:
    case 'k': return TopModel::Key::Up;
    case KEY_DOWN:
    case 'j': return TopModel::Key::Down;
    case KEY_ENTER:
    case '\r':
    case '\n': return TopModel::Key::Enter;
    case KEY_BACKSPACE:
    case KEY_LEFT:
    case kEscape: return TopModel::Key::Back;
    case 's': return TopModel::Key::Sort;
    case 'p':
    case ' ': return TopModel::Key::Pause;
    case 'l': return TopModel::Key::Links;
    case '?':
    case 'h': return TopModel::Key::Help;
    default: return std::nullopt;
  }
}

// All keys that were pressed. False: to quit, or the terminal is gone.
bool read_keys(TopModel& model) {
  for (int code = ::getch(); code != ERR; code = ::getch()) {
    if (code == 'q') return false;
    if (const auto key = key_of(code)) model.press(*key);
  }
  return true;
}

bool wait_for_keys(Deadline deadline) {
  pollfd keys{STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&keys, 1, static_cast<int>(deadline.left_ms()) + 1);
  return ready <= 0 || (keys.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

}  // namespace

Status show(TopModel& model, std::chrono::milliseconds interval, const std::function<HostSeen()>& look) {
  {
    const EndingsNoted endings;  // first: ncurses has handlers of its own for signals that have none
    Terminal terminal;
    if (!terminal.is_usable())
      return error(Code::ConfigError, "there is no terminal that can show it").with_cure("use --once or --json");
    bool goes_on = true;
    while (goes_on && ended_by == 0) {
      model.add(look());
      const Deadline next = Deadline::after(interval);
      do {
        terminal.draw(model);
        goes_on = wait_for_keys(next) && read_keys(model);
      } while (goes_on && ended_by == 0 && !next.passed());
    }
  }
  if (ended_by != 0) ::raise(ended_by);
  return {};
}

}  // namespace ccom
