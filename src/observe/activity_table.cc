// SPDX-License-Identifier: Apache-2.0
#include "observe/activity_table.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace ccom {
namespace {

constexpr uint32_t kNoAge = UINT32_MAX;
constexpr int64_t kNsPerAge = 1'000'000;
constexpr uint8_t kSilentBit = 0x80;

// Ranks with equal ones are a group. Those furthest behind come first.
auto key_of(const ActivityGroup& group) {
  return std::tie(group.call.number, group.state, group.is_silent, group.call.kind, group.call.count, group.algorithm,
                  group.site, group.message, group.place, group.waits_for);
}

int64_t longest(int64_t a, int64_t b) {
  if (a == ActivityGroup::kNoTime || b == ActivityGroup::kNoTime) return std::max(a, b);
  return std::min(a, b);
}

std::vector<RankRange> unite(std::vector<RankRange> ranges) {
  std::ranges::sort(ranges, {}, &RankRange::first);
  std::vector<RankRange> united;
  for (const RankRange& range : ranges) {
    if (!united.empty() && range.first <= int64_t{united.back().last} + 1) {
      united.back().last = std::max(united.back().last, range.last);
    } else if (united.size() < kMostRankRanges) {
      united.push_back(range);
    }
  }
  return united;
}

void add(const ActivityGroup& other, ActivityGroup& group) {
  group.ranks.insert(group.ranks.end(), other.ranks.begin(), other.ranks.end());
  group.since_ns = longest(group.since_ns, other.since_ns);
  group.waits_since_ns = longest(group.waits_since_ns, other.waits_since_ns);
  group.beat_ns = longest(group.beat_ns, other.beat_ns);
  group.messages = std::max(group.messages, other.messages);
  group.pid = 0;
  if (group.host != other.host) group.host.clear();
}

// Of those below `ranks`.
int64_t count_ranks(const ActivityTable& table, int64_t ranks = INT64_MAX) {
  int64_t count = 0;
  for (const ActivityGroup& group : table)
    for (const RankRange& range : group.ranks)
      count += std::max<int64_t>(std::min(int64_t{range.last} + 1, ranks) - range.first, 0);
  return count;
}

ActivityTable arrange(ActivityTable table) {
  std::ranges::sort(table, [](const ActivityGroup& a, const ActivityGroup& b) {
    const auto key_a = key_of(a), key_b = key_of(b);
    return key_a != key_b ? key_a < key_b : a.ranks.front().first < b.ranks.front().first;
  });
  if (count_ranks(table) <= kMostSeparate) return table;
  ActivityTable groups;
  for (ActivityGroup& each : table) {
    if (!groups.empty() && key_of(groups.back()) == key_of(each)) {
      add(each, groups.back());
    } else {
      groups.push_back(std::move(each));
    }
  }
  for (ActivityGroup& group : groups) group.ranks = unite(std::move(group.ranks));
  return groups;
}

bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

std::string shortened(std::string text, size_t most = kMostTableText) {
  text.resize(std::min(text.size(), most));
  for (char& c : text)
    if (!is_printable({&c, 1})) c = ' ';
  return text;
}

int64_t time_before(int64_t now_ns, double seconds) {
  constexpr double kMostSeconds = 4e6;
  if (seconds < 0) return ActivityGroup::kNoTime;
  return now_ns - static_cast<int64_t>(std::min(seconds, kMostSeconds) * 1e9);
}

double seconds_between(int64_t time_ns, int64_t now_ns, double unknown) {
  if (time_ns == ActivityGroup::kNoTime) return unknown;
  return std::max(0.0, static_cast<double>(now_ns - time_ns) * 1e-9);
}

uint32_t age_of(int64_t time_ns, int64_t now_ns) {
  if (time_ns == ActivityGroup::kNoTime) return kNoAge;
  return static_cast<uint32_t>(std::clamp<int64_t>((now_ns - time_ns) / kNsPerAge, 0, kNoAge - 1));
}

int64_t time_of_age(uint32_t age, int64_t now_ns) {
  return age == kNoAge ? ActivityGroup::kNoTime : now_ns - int64_t{age} * kNsPerAge;
}

// As encoded, without its ranges.
struct [[gnu::packed]] EncodedGroup {
  uint8_t state;
  uint16_t algorithm, site, message, place, host;  // texts, counted from 1; 0: none
  uint64_t number, count, kind;
  int32_t waits_for, pid;
  uint32_t messages;
  uint32_t since, waits_since, beat;  // ages
  uint16_t ranges;
};

template <typename T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

// The texts of a table, each once. After one that has no room there are no more.
class TextList {
 public:
  uint16_t index_of(const std::string& text) {
    if (text.empty()) return 0;
    const auto found = std::ranges::find(texts_, text);
    if (found == texts_.end()) texts_.push_back(text), size_bytes_ += 1 + text.size();
    return static_cast<uint16_t>(std::ranges::find(texts_, text) - texts_.begin() + 1);
  }
  size_t count() const { return texts_.size(); }
  size_t size_bytes() const { return size_bytes_; }
  void cut_to(size_t count) { texts_.resize(count); }
  std::vector<std::byte> encoded() const {
    std::vector<std::byte> bytes;
    append(bytes, static_cast<uint16_t>(texts_.size()));
    for (const std::string& text : texts_) {
      append(bytes, static_cast<uint8_t>(text.size()));
      const auto raw = std::as_bytes(std::span(text));
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
    return bytes;
  }

 private:
  std::vector<std::string> texts_;
  size_t size_bytes_ = sizeof(uint16_t);
};

void append_group(const ActivityGroup& group, int64_t now_ns, TextList& texts, std::vector<std::byte>& bytes) {
  const auto state = static_cast<uint8_t>(static_cast<uint8_t>(group.state) | (group.is_silent ? kSilentBit : 0));
  append(bytes, EncodedGroup{.state = state,
                             .algorithm = texts.index_of(group.algorithm),
                             .site = texts.index_of(group.site),
                             .message = texts.index_of(group.message),
                             .place = texts.index_of(group.place),
                             .host = texts.index_of(group.host),
                             .number = group.call.number,
                             .count = group.call.count,
                             .kind = group.call.kind,
                             .waits_for = group.waits_for,
                             .pid = group.pid,
                             .messages = group.messages,
                             .since = age_of(group.since_ns, now_ns),
                             .waits_since = age_of(group.waits_since_ns, now_ns),
                             .beat = age_of(group.beat_ns, now_ns),
                             .ranges = static_cast<uint16_t>(group.ranks.size())});
  for (const RankRange& range : group.ranks) append(bytes, range);
}

// Consumes values from the front; after the first that is not there all further ones are 0.
class TableReader {
 public:
  explicit TableReader(ConstBytes bytes) : rest_(bytes) {}
  template <typename T>
  T next() {
    T value{};
    if (sizeof value > rest_.size()) fail();
    if (!is_good_) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::string text(size_t size) {
    if (size > rest_.size()) fail();
    if (!is_good_) return "";
    std::string text(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return text;
  }
  void fail() { is_good_ = false, rest_ = {}; }
  bool is_good() const { return is_good_; }
  bool is_empty() const { return rest_.empty(); }

 private:
  ConstBytes rest_;
  bool is_good_ = true;
};

std::vector<std::string> read_texts(TableReader& reader) {
  std::vector<std::string> texts(1);
  for (auto count = reader.next<uint16_t>(); count > 0 && reader.is_good(); --count) {
    texts.push_back(reader.text(reader.next<uint8_t>()));
    if (texts.back().size() > kMostTableText || !is_printable(texts.back())) reader.fail();
  }
  return texts;
}

std::vector<RankRange> read_ranges(TableReader& reader, size_t count) {
  std::vector<RankRange> ranges;
  if (count == 0 || count > kMostRankRanges) reader.fail();
  int64_t least = 0;
  for (; count > 0 && reader.is_good(); --count) {
    const auto range = reader.next<RankRange>();
    if (range.first < least || range.last < range.first) reader.fail();
    least = int64_t{range.last} + 2;
    ranges.push_back(range);
  }
  return ranges;
}

ActivityGroup read_group(TableReader& reader, const std::vector<std::string>& texts, int64_t now_ns) {
  const auto encoded = reader.next<EncodedGroup>();
  const auto text = [&](uint16_t index) {
    if (index >= texts.size()) reader.fail();
    return index < texts.size() ? texts[index] : "";
  };
  const auto state = static_cast<uint8_t>(encoded.state & ~kSilentBit);
  if (state > static_cast<uint8_t>(RankActivity::State::Dead) || encoded.waits_for < -1 || encoded.pid < 0)
    reader.fail();
  return {.state = static_cast<RankActivity::State>(state),
          .is_silent = (encoded.state & kSilentBit) != 0,
          .call = {encoded.number, encoded.count, encoded.kind, 0},
          .algorithm = text(encoded.algorithm),
          .site = text(encoded.site),
          .message = text(encoded.message),
          .place = text(encoded.place),
          .host = text(encoded.host),
          .waits_for = encoded.waits_for,
          .messages = encoded.messages,
          .pid = encoded.pid,
          .since_ns = time_of_age(encoded.since, now_ns),
          .waits_since_ns = time_of_age(encoded.waits_since, now_ns),
          .beat_ns = time_of_age(encoded.beat, now_ns),
          .ranks = read_ranges(reader, encoded.ranges)};
}

// Of a process that ran when it was read nobody knows that it has not since: then its host does not answer.
double silent_for(const ActivityGroup& group, int64_t now_ns) {
  const double seconds = seconds_between(group.beat_ns, now_ns, -1);
  return group.is_silent ? seconds : std::min(seconds, 0.9 * kSilentSeconds);
}

}  // namespace

ActivityTable table_of(const std::vector<RankActivity>& activities, int64_t now_ns) {
  ActivityTable table;
  for (const RankActivity& each : activities) {
    const bool waits = each.waits_for >= 0;
    table.push_back({.state = each.state,
                     .is_silent = is_silent(each),
                     .call = {each.call.number, each.call.count, each.call.kind, 0},
                     .algorithm = shortened(each.algorithm),
                     .site = shortened(each.site),
                     .message = shortened(each.message),
                     .place = shortened(each.place),
                     .host = shortened(each.host, kMostTableHost),
                     .waits_for = waits ? each.waits_for : -1,
                     .messages = each.messages,
                     .pid = std::max(each.pid, 0),
                     .since_ns = time_before(now_ns, each.seconds),
                     .waits_since_ns = time_before(now_ns, waits ? each.waited : -1),
                     .beat_ns = time_before(now_ns, each.silent),
                     .ranks = {{each.rank, each.rank}}});
  }
  return arrange(std::move(table));
}

ActivityTable merge(ActivityTable a, const ActivityTable& b) {
  a.insert(a.end(), b.begin(), b.end());
  return arrange(std::move(a));
}

std::vector<RankActivity> activities_in(const ActivityTable& table, int64_t now_ns, Rank ranks) {
  std::vector<RankActivity> found;
  if (count_ranks(table, ranks) > ranks) return found;
  for (const ActivityGroup& group : table) {
    RankActivity activity{.state = group.state,
                          .call = group.call,
                          .algorithm = group.algorithm,
                          .site = group.site,
                          .seconds = seconds_between(group.since_ns, now_ns, -1),
                          .message = group.message,
                          .messages = group.messages,
                          .waits_for = group.waits_for,
                          .waited = seconds_between(group.waits_since_ns, now_ns, 0),
                          .silent = silent_for(group, now_ns),
                          .place = group.place,
                          .pid = group.pid,
                          .host = group.host};
    for (const RankRange& range : group.ranks)
      for (activity.rank = range.first; activity.rank <= range.last && activity.rank < ranks; ++activity.rank)
        found.push_back(activity);
  }
  std::ranges::stable_sort(found, {}, &RankActivity::rank);
  const auto is_same = [](const RankActivity& a, const RankActivity& b) { return a.rank == b.rank; };
  const auto repeated = std::unique(found.begin(), found.end(), is_same);
  found.erase(repeated, found.end());
  return found;
}

// u16 number of texts, {u8 size, text} texts, {EncodedGroup, {i32 first, i32 last} ranges} groups; little-endian.
std::vector<std::byte> encode_table(const ActivityTable& table, int64_t now_ns) {
  TextList texts;
  std::vector<std::byte> groups;
  for (const ActivityGroup& group : table) {
    const size_t fitting_texts = texts.count(), fitting_bytes = groups.size();
    append_group(group, now_ns, texts, groups);
    if (texts.size_bytes() + groups.size() <= kMostTableBytes) continue;
    texts.cut_to(fitting_texts);
    groups.resize(fitting_bytes);
    break;
  }
  std::vector<std::byte> bytes = texts.encoded();
  bytes.insert(bytes.end(), groups.begin(), groups.end());
  return bytes;
}

std::optional<ActivityTable> decode_table(ConstBytes bytes, int64_t now_ns) {
  if (bytes.size() > kMostTableBytes) return std::nullopt;
  TableReader reader(bytes);
  const std::vector<std::string> texts = read_texts(reader);
  ActivityTable table;
  while (reader.is_good() && !reader.is_empty()) table.push_back(read_group(reader, texts, now_ns));
  if (!reader.is_good() || arrange(table) != table) return std::nullopt;
  return std::ranges::equal(encode_table(table, now_ns), bytes) ? std::optional(std::move(table)) : std::nullopt;
}

}  // namespace ccom
