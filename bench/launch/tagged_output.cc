// SPDX-License-Identifier: Apache-2.0
#include "bench/launch/tagged_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace ccom::launch {
namespace {

constexpr int kPatienceMs = 50;  // of the last words of processes that have ended
constexpr size_t kLongestLine = 65536;

void write_all(int target, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(target, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

}  // namespace

TaggedOutput::TaggedOutput(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    for (const int target : {STDOUT_FILENO, STDERR_FILENO}) {
      Stream stream{.target = target, .tag = "[" + std::to_string(rank) + "] "};
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) == 0) {
        stream.reading = ends[0];
        stream.writing = ends[1];
      }
      streams_.push_back(std::move(stream));
    }
  }
}

TaggedOutput::~TaggedOutput() { end(); }

TaggedOutput::Ends TaggedOutput::ends_of(int rank) const {
  if (streams_.empty()) return {};
  const auto first = 2 * static_cast<size_t>(rank);
  return {streams_[first].writing, streams_[first + 1].writing};
}

void TaggedOutput::begin() {
  if (streams_.empty()) return;
  for (Stream& stream : streams_) {
    if (stream.writing >= 0) ::close(std::exchange(stream.writing, -1));
  }
  thread_ = std::thread([this] { run(); });
}

void TaggedOutput::end() {
  are_gone_ = true;
  if (thread_.joinable()) thread_.join();
  for (Stream& stream : streams_) {
    if (stream.reading >= 0) ::close(std::exchange(stream.reading, -1));
    if (stream.writing >= 0) ::close(std::exchange(stream.writing, -1));
  }
}

void TaggedOutput::run() {
  std::vector<pollfd> all;
  for (const Stream& stream : streams_) all.push_back({.fd = stream.reading, .events = POLLIN, .revents = 0});
  while (std::ranges::any_of(all, [](const pollfd& one) { return one.fd >= 0; })) {
    const bool are_gone = are_gone_;
    const int ready = ::poll(all.data(), all.size(), kPatienceMs);
    if (ready == 0 && are_gone) break;
    for (size_t i = 0; ready > 0 && i < all.size(); ++i) {
      if (all[i].fd >= 0 && all[i].revents != 0 && !read(streams_[i])) all[i].fd = -1;
    }
  }
  for (Stream& stream : streams_) {
    if (!stream.line.empty()) stream.line += '\n', print(stream);
  }
}

// False at the end.
bool TaggedOutput::read(Stream& stream) {
  char part[4096];
  const ssize_t bytes = ::read(stream.reading, part, sizeof part);
  if (bytes <= 0) return false;
  for (const char letter : std::string_view(part, static_cast<size_t>(bytes))) {
    stream.line += letter;
    if (letter == '\n' || stream.line.size() >= kLongestLine) print(stream);
  }
  return true;
}

void TaggedOutput::print(Stream& stream) { write_all(stream.target, stream.tag + std::exchange(stream.line, {})); }

}  // namespace ccom::launch
