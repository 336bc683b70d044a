// SPDX-License-Identifier: Apache-2.0
#include "base/log_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <string>

#include "base/json_text.h"
#include "base/text.h"

namespace ccom {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

// RFC 3339, in UTC.
std::string time_text(int64_t time_ns) {
  const std::time_t seconds = time_ns / kNsPerSecond;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char day[32];
  const size_t length = std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  char micros[16];
  std::snprintf(micros, sizeof micros, ".%06dZ", static_cast<int>(time_ns % kNsPerSecond / 1000));
  return std::string(day, length) + micros;
}

std::string host_name() {
  char host[256] = "";
  return ::gethostname(host, sizeof host - 1) == 0 ? host : "";
}

std::string json_of(const LogLine& line, std::string_view message, bool is_cut) {
  JsonObjectText object;
  object.add("time", time_text(line.time_ns)).add("level", name_of(line.level)).add("room", line.room);
  object.add("host", host_name()).add("pid", static_cast<int>(::getpid()));
  if (line.communicator != 0) object.add("communicator", hexadecimal(line.communicator));
  if (line.rank >= 0) object.add("rank", line.rank);
  object.add("message", message);
  if (is_cut) object.add("truncated", true);
  return object.text() + "\n";
}

size_t without_partial_character(std::string_view text, size_t length) {
  const auto continues = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  size_t begin = length;
  while (begin > 0 && length - begin < 3 && begin < text.size() && continues(begin)) --begin;
  return begin < text.size() && continues(begin) ? length : begin;  // no UTF-8: cut anywhere
}

// A byte of the message is six of JSON at most, so nothing is cut that would have fitted.
std::string json_line(const LogLine& line) {
  std::string_view message = line.text();
  std::string text = json_of(line, message, line.is_cut);
  while (text.size() > kLogLineBytes && !message.empty()) {
    const size_t excess = std::min((text.size() - kLogLineBytes + 5) / 6, message.size());
    message = message.substr(0, without_partial_character(message, message.size() - excess));
    text = json_of(line, message, true);
  }
  return text;
}

const char* word_for(LogLevel level) {
  switch (level) {
    case LogLevel::Error: return "error";
    case LogLevel::Warn: return "warning";
    case LogLevel::Info: return "info";
    case LogLevel::Debug: break;
  }
  return "debug";
}

size_t text_line(const LogLine& line, std::span<char, kLogLineBytes> bytes) {
  const bool has_room = !line.room.empty();
  const int written =
      std::snprintf(bytes.data(), bytes.size(), "ccom[%d] %s%s%.*s%s: %s%s\n", static_cast<int>(::getpid()),
                    word_for(line.level), has_room ? " (" : "", static_cast<int>(line.room.size()), line.room.data(),
                    has_room ? ")" : "", line.message, line.is_cut ? "..." : "");
  return std::min(static_cast<size_t>(std::max(written, 0)), bytes.size() - 1);
}

}  // namespace

int64_t log_time_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

void LogLine::set_message(std::string_view text) {
  is_cut = text.size() >= sizeof message;
  length = is_cut ? without_partial_character(text, sizeof message - 1) : text.size();
  std::memcpy(message, text.data(), length);
  message[length] = '\0';
}

void LogLine::append(std::string_view end) {
  length = without_partial_character(text(), std::min(length, sizeof message - 1 - end.size()));
  std::memcpy(message + length, end.data(), end.size());
  length += end.size();
  message[length] = '\0';
}

size_t format_log_line(const LogLine& line, LogFormat format, std::span<char, kLogLineBytes> bytes) noexcept {
  if (format == LogFormat::Text) return text_line(line, bytes);
  try {
    const std::string text = json_line(line);
    if (text.size() > bytes.size()) return 0;
    std::memcpy(bytes.data(), text.data(), text.size());
    return text.size();
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace ccom
