// SPDX-License-Identifier: Apache-2.0
#include "base/log_levels.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace ccom {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"error", "warn", "info", "debug"};  // by the value of LogLevel

constexpr std::array<std::string_view, 22> kRooms = {
    "algorithms", "api",    "base",     "bootstrap", "comm", "control", "engine", "kernels",
    "liveness",   "memory", "messages", "metrics",   "node", "observe", "ofi",    "plan",
    "planner",    "runner", "setup",    "shm",       "tcp",  "topology"};

constexpr LogLevel kDefault = LogLevel::Warn;

std::optional<LogLevel> level_of_word(std::string_view word) {
  const auto* const level = std::ranges::find(kLevels, word);
  if (level == kLevels.end()) return std::nullopt;
  return static_cast<LogLevel>(level - kLevels.begin());
}

// "bootstrap=debug", or "warn" for all rooms that are not named.
struct Word {
  std::string_view whole, room, level;
  bool has_room;
};

// The first of the words; takes it off.
Word take_word(std::string_view& levels) {
  const std::string_view whole = levels.substr(0, levels.find(','));
  levels.remove_prefix(std::min(levels.size(), whole.size() + 1));
  const size_t equals = whole.find('=');
  if (equals == std::string_view::npos) return {whole, {}, whole, false};
  return {whole, whole.substr(0, equals), whole.substr(equals + 1), true};
}

std::string list_of(std::span<const std::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + std::string(words[i]);
  return text;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
  const std::string_view meant = closest(word, {words.begin(), words.end()});
  return meant.empty() ? "" : "; did you mean " + std::string(meant) + "?";
}

std::string quoted(std::string_view word) { return "'" + std::string(word.substr(0, 100)) + "'"; }

std::string fault_of_level(const Word& word) {
  const std::string hint = suggestion(word.level, kLevels);
  const std::string_view room = closest(word.level, {kRooms.begin(), kRooms.end()});
  const bool is_room_alone = hint.empty() && !word.has_room && !room.empty();
  return "there is no level " + quoted(word.level) + ": there are " + list_of(kLevels) +
         (is_room_alone ? "; did you mean " + std::string(room) + "=debug?" : hint);
}

// What is wrong with a word, or "". before: the rooms of those before it.
std::string fault_of(const Word& word, const std::vector<std::string_view>& before) {
  if (word.has_room && std::ranges::find(kRooms, word.room) == kRooms.end())
    return "there is no room " + quoted(word.room) + " (" + list_of(kRooms) + ")" + suggestion(word.room, kRooms);
  if (!level_of_word(word.level)) return fault_of_level(word);
  if (std::ranges::find(before, word.room) == before.end()) return "";
  return quoted(word.whole) + (word.has_room ? " names the room " + std::string(word.room) + " again"
                                             : " is a second level for all other rooms");
}

}  // namespace

std::span<const std::string_view> log_rooms() { return kRooms; }

Status check_log_levels(std::string_view levels) {
  std::vector<std::string_view> before;
  for (std::string_view rest = levels;;) {
    const bool is_last = rest.find(',') == std::string_view::npos;
    const Word word = take_word(rest);
    if (const std::string fault = fault_of(word, before); !fault.empty())
      return error(ErrorKey::VariableValue, "CCOM_LOG=%s: %s", std::string(levels).c_str(), fault.c_str());
    before.push_back(word.room);
    if (is_last) return {};
  }
}

LogLevel log_level_of(std::string_view levels, std::string_view room) noexcept {
  LogLevel others = kDefault;
  for (std::string_view rest = levels; !rest.empty();) {
    const Word word = take_word(rest);
    const std::optional<LogLevel> level = level_of_word(word.level);
    if (!level || (word.has_room && std::ranges::find(kRooms, word.room) == kRooms.end())) return kDefault;
    if (word.has_room && word.room == room) return *level;
    if (!word.has_room) others = *level;
  }
  return others;
}

std::string_view name_of(LogLevel level) { return kLevels[static_cast<size_t>(level)]; }

}  // namespace ccom
