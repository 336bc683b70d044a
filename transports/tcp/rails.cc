// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/rails.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "transports/tcp/lost_rails.h"

namespace ccom::tcp {
namespace {

std::string rail_of(const Line& line) {
  return local_endpoint(line.fd).address().to_string() + " - " + line.remote.address().to_string();
}

std::string ends_of(const Line& line) { return to_text(local_endpoint(line.fd)) + " - " + to_text(line.remote); }

}  // namespace

Rails::~Rails() {
  for (const Loss& loss : logged_) lost_rails().remove(loss.rail);
}

void Rails::begin() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i]->is_failed) lose(i, "cannot be connected");
  }
}

size_t Rails::first() const {
  if (!fail_over()) return 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (!lines_[i]->is_lost) return i;
  }
  return 0;
}

bool Rails::has_other(size_t i) const {
  for (size_t other = 0; other < lines_.size(); ++other) {
    if (other != i && !lines_[other]->is_lost) return true;
  }
  return false;
}

bool Rails::answers_elsewhere(size_t i) const {
  for (size_t other = 0; other < lines_.size(); ++other) {
    const Line& line = *lines_[other];
    if (other != i && !line.is_lost && !is_hung_up(line.fd) && !query_silence(line.fd).is_response_due) return true;
  }
  return false;
}

bool Rails::awaits_answer() const {
  return std::ranges::any_of(
      lines_, [](const auto& line) { return !line->is_lost && query_silence(line->fd).is_response_due; });
}

void Rails::lose(size_t i, const std::string& why) {
  Line& line = *lines_[i];
  line.is_lost = true;
  const auto left = std::ranges::count_if(lines_, [](const auto& each) { return !each->is_lost; });
  unconfirmed_.push_back({i, rail_of(line),
                          ends_of(line) + ": " + why + "; " + std::to_string(left) + " of " +
                              std::to_string(lines_.size()) + " connections go on"});
}

bool Rails::lose_for_good(size_t i, const std::string& why) {
  Line& line = *lines_[i];
  if (!fail_over() || line.is_failed) return fail_over() && (line.is_lost || has_other(i));
  if (!line.is_lost) {
    if (!has_other(i)) return false;
    lose(i, why);
  }
  line.is_failed = true;
  return true;
}

// What this process has said of the rail already is for those who look closer.
void Rails::say(bool is_new, const std::string& text) const {
  if (is_new) {
    log_rarely(LogTopic::Rail, LogLevel::Warn, "rank %d: %s", route_.self, text.c_str());
  } else {
    log(LogLevel::Info, "rank %d: %s", route_.self, text.c_str());
  }
}

std::string Rails::peer_text() const { return "rank " + std::to_string(route_.peer); }
std::string Rails::channel_text() const { return " (channel " + std::to_string(route_.channel) + "): "; }

void Rails::log_losses() {
  for (Loss& loss : unconfirmed_) {
    say(lost_rails().add(loss.rail), "degraded: a rail to " + peer_text() + " is lost" + channel_text() + loss.text);
    logged_.push_back(std::move(loss));
  }
  unconfirmed_.clear();
}

// Where the loss was logged.
void Rails::log_return(size_t i) {
  const auto is_of_line = [i](const Loss& loss) { return loss.line == i; };
  std::erase_if(unconfirmed_, is_of_line);
  const auto logged = std::ranges::find_if(logged_, is_of_line);
  if (logged == logged_.end()) return;
  say(lost_rails().remove(logged->rail),
      "the rail to " + peer_text() + " is in use again" + channel_text() + ends_of(*lines_[i]));
  logged_.erase(logged);
}

// Everything that it was asked for, keepalives included, has been answered; until then the kernel repeats it, at
// intervals that double.
void Rails::take_back(size_t i) {
  Line& line = *lines_[i];
  if (is_hung_up(line.fd) || unsettled_bytes(line.fd) > 0 || query_silence(line.fd).is_response_due) return;
  line.is_lost = false;
  log_return(i);
}

Status Rails::check_silence(std::chrono::milliseconds last_limit) {
  const auto now = Clock::now();
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& line = *lines_[i];
    if (line.is_lost) {
      if (!line.is_failed) take_back(i);
      continue;
    }
    const std::chrono::nanoseconds silence = silent_for(line, now, (fail_over() ? limit_ : last_limit) / 4);
    if (fail_over() && silence >= limit_ && answers_elsewhere(i)) {
      lose(i, "no response for " + std::to_string(limit_.count()) + " ms");
    } else if (silence >= last_limit) {
      const std::string reason =
          "no response from " + to_text(line.remote) + " for " + std::to_string(last_limit.count()) + " ms";
      return peer_error(Code::RemoteError, route_, "wait for", reason, ETIMEDOUT);
    }
  }
  return Status::ok();
}

}  // namespace ccom::tcp
