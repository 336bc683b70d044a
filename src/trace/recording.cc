// SPDX-License-Identifier: Apache-2.0
#include "trace/recording.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/files.h"
#include "observe/recording_format.h"

namespace ccom {
namespace {

using recording::Values;

// Copies of the file's words: what it refers to is compared with its length first.
class Words {
 public:
  explicit Words(ConstBytes file) : file_(file) {}
  uint64_t at(uint64_t byte) const {
    uint64_t word = 0;
    if (byte <= file_.size() && file_.size() - byte >= sizeof word) std::memcpy(&word, &file_[byte], sizeof word);
    return word;
  }
  uint64_t size() const { return file_.size(); }
  std::string text(uint64_t begin, uint64_t end) const {
    return {reinterpret_cast<const char*>(file_.data()) + begin, static_cast<size_t>(end - begin)};
  }

 private:
  ConstBytes file_;
};

#define CCOM_WORD(type, member) \
  uint64_t { offsetof(recording::type, member) }

class RecordingReader {
 public:
  explicit RecordingReader(ConstBytes file) : words_(file) {}

  Result<Recording> read() {
    CCOM_TRY(read_header());
    if (!read_clock()) return error(Code::InvalidArgument, "the recording had not begun: it has no time");
    read_communicators();
    read_records();
    std::ranges::stable_sort(found_.calls, {}, &RecordedCall::begun_ns);
    drop_twice();
    for (const RecordedCall& call : found_.calls)
      found_.last_ns = std::max(found_.last_ns, call.ended_ns.value_or(call.begun_ns));
    return std::move(found_);
  }

 private:
  struct Place {
    std::optional<size_t> communicator;  // of the result
    uint64_t turn = 0;
  };

  uint64_t header(uint64_t offset) const { return words_.at(offset); }

  Status read_header() {
    if (header(CCOM_WORD(Header, magic)) != recording::kMagic)
      return error(Code::InvalidArgument,
                   "this is no recording of ccom's, or of a process that was killed before it began");
    if (header(CCOM_WORD(Header, version)) != recording::kVersion)
      return error(Code::InvalidArgument, "the recording is of version %llu, this is made for version %llu",
                   static_cast<unsigned long long>(header(CCOM_WORD(Header, version))),
                   static_cast<unsigned long long>(recording::kVersion));
    const uint64_t bytes = header(CCOM_WORD(Header, file_bytes));
    const uint64_t check = recording::check_of_header([this](uint64_t offset) { return header(offset); });
    if (header(CCOM_WORD(Header, check)) != check || bytes < recording::kLeastBytes || bytes > recording::kMostBytes)
      return error(Code::InvalidArgument, "the recording is damaged: the checksum of its first page is wrong");
    if (bytes > words_.size())
      return error(Code::InvalidArgument, "the recording is cut off: it should have %llu bytes",
                   static_cast<unsigned long long>(bytes));
    layout_ = recording::layout_of(bytes);
    found_.host = text(header(CCOM_WORD(Header, host)));
    found_.machine = text(header(CCOM_WORD(Header, machine)));
    found_.program = text(header(CCOM_WORD(Header, program)));
    found_.pid = static_cast<int64_t>(header(CCOM_WORD(Header, pid)));
    found_.lost_texts = header(CCOM_WORD(Header, lost_texts));
    found_.lost_communicators = header(CCOM_WORD(Header, lost_communicators));
    return {};
  }

  std::optional<ClockPoint> point(size_t index) const {
    const uint64_t at = CCOM_WORD(Header, points) + index * sizeof(recording::Point);
    const uint64_t ticks = words_.at(at), monotonic = words_.at(at + 8), realtime = words_.at(at + 16);
    if (words_.at(at + 24) != recording::check_of(ticks, monotonic, realtime)) return std::nullopt;
    return ClockPoint{ticks, static_cast<int64_t>(monotonic), static_cast<int64_t>(realtime)};
  }

  bool read_clock() {
    const std::optional<ClockPoint> first = point(0);
    if (!first) return false;
    first_ = *first;
    found_.realtime_offset_ns =
        static_cast<int64_t>(static_cast<uint64_t>(first->realtime_ns) - static_cast<uint64_t>(first->monotonic_ns));
    uint64_t longest = 0;
    for (const size_t index : {1, 2}) {
      const std::optional<ClockPoint> later = point(index);
      if (!later || later->ticks <= first->ticks || later->ticks - first->ticks <= longest) continue;
      longest = later->ticks - first->ticks;
      found_.last_ns = std::max(found_.last_ns, std::min(later->monotonic_ns, int64_t{1} << 61));
      ns_per_tick_ = (static_cast<double>(later->monotonic_ns) - static_cast<double>(first->monotonic_ns)) /
                     static_cast<double>(longest);
    }
    if (!(ns_per_tick_ > 1e-3 && ns_per_tick_ < 1e3)) ns_per_tick_ = 1;
    return true;
  }

  // Of any words: within a quarter of what the type holds.
  int64_t duration(double ticks) const { return static_cast<int64_t>(std::clamp(ticks * ns_per_tick_, -2e18, 2e18)); }
  int64_t time(uint64_t ticks) const {
    constexpr int64_t kMost = int64_t{1} << 61;
    const auto passed = static_cast<double>(static_cast<int64_t>(ticks - first_.ticks));
    return std::clamp(first_.monotonic_ns, -kMost, kMost) + duration(passed);
  }

  std::string text(uint64_t reference) const {
    if (reference == 0 || reference > layout_.text_bytes / 8) return "";
    const uint64_t offset = (reference - 1) * 8, word = words_.at(layout_.texts_at + offset);
    const uint64_t bytes = word & 0xffffffffU;
    if (layout_.text_bytes - offset < 8 || bytes > layout_.text_bytes - offset - 8) return "";
    std::string found = words_.text(layout_.texts_at + offset + 8, layout_.texts_at + offset + 8 + bytes);
    return recording::check_of(found) == word >> 32 ? found : "";
  }
  // Of one line: what a file says stands in terminals.
  std::string line(uint64_t reference) const {
    std::string found = text(reference).substr(0, 4096);
    for (char& c : found)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
    return found;
  }

  uint32_t kept(uint64_t reference) {
    const auto [known, is_new] = kept_.try_emplace(reference, 0);
    if (!is_new) return known->second;
    std::string found = line(reference);
    if (!found.empty()) {
      known->second = static_cast<uint32_t>(found_.texts.size());
      found_.texts.push_back(std::move(found));
    }
    return known->second;
  }

  uint32_t kept_in(uint64_t table, uint64_t number) {
    return kept(recording::unchecked(words_.at(table + number * sizeof(uint64_t))));
  }

  Values values(uint64_t at) const {
    return {words_.at(at),      words_.at(at + 8),  words_.at(at + 16), words_.at(at + 24),
            words_.at(at + 32), words_.at(at + 40), words_.at(at + 48), words_.at(at + 56)};
  }

  RecordedCall call_of(const Values& values, size_t communicator) {
    RecordedCall call;
    call.communicator = communicator;
    call.call = {recording::number_of(values.call), values.count, values.kind};
    call.begun_ns = time(values.begun);
    const uint64_t site = recording::site_of(values.origin), algorithm = recording::algorithm_of(values.origin);
    call.site = kept_in(layout_.sites_at, site % recording::kSites);
    call.algorithm = kept_in(layout_.algorithms_at, algorithm % recording::kAlgorithms);
    return call;
  }

  void read_communicators() {
    places_.resize(layout_.communicators);
    for (uint64_t place = 0; place < layout_.communicators; ++place) {
      const uint64_t at = layout_.communicators_at + place * sizeof(recording::Communicator);
      const uint64_t state = words_.at(at + CCOM_WORD(Communicator, state));
      if (state == 0 || state > static_cast<uint64_t>(recording::PlaceState::Closed)) continue;
      if (!read_communicator(at)) {
        ++found_.torn;
        continue;
      }
      places_[place] = {found_.communicators.size() - 1, words_.at(at + CCOM_WORD(Communicator, turn)) & 0xff};
      read_current(at, found_.communicators.size() - 1);
    }
  }

  bool read_communicator(uint64_t at) {
    const auto word = [&](uint64_t offset) { return words_.at(at + offset); };
    const uint64_t nranks = word(CCOM_WORD(Communicator, ranks)), rank = word(CCOM_WORD(Communicator, rank));
    if (word(CCOM_WORD(Communicator, check)) != recording::check_of_communicator(word)) return false;
    if (nranks == 0 || nranks > (uint64_t{1} << recording::kPeerBits) || rank >= nranks) return false;
    RecordedCommunicator found;
    found.number = word(CCOM_WORD(Communicator, number));
    found.parent = word(CCOM_WORD(Communicator, parent));
    found.rank = static_cast<Rank>(rank);
    found.nranks = static_cast<int>(nranks);
    found.name = line(word(CCOM_WORD(Communicator, name)));
    found.topology = text(word(CCOM_WORD(Communicator, topology)));
    found.costs = text(word(CCOM_WORD(Communicator, costs)));
    const std::string origins = text(word(CCOM_WORD(Communicator, origins)));
    if (origins.size() == nranks * sizeof(Rank)) {
      found.origins.resize(nranks);
      std::memcpy(found.origins.data(), origins.data(), origins.size());
    }
    found.opened_ns = time(word(CCOM_WORD(Communicator, opened)));
    if (const uint64_t closed = word(CCOM_WORD(Communicator, closed)); closed != 0) found.closed_ns = time(closed);
    found_.last_ns = std::max(found_.last_ns, found.closed_ns.value_or(found.opened_ns));
    found_.communicators.push_back(std::move(found));
    return true;
  }

  void read_current(uint64_t at, size_t communicator) {
    const Values current = values(at + CCOM_WORD(Communicator, current));
    if (current.ticket == 0 || words_.at(at + CCOM_WORD(Communicator, closed)) != 0) return;
    if (current.origin >> 32 != recording::check_of(current) || !is_kind(current.kind)) {
      ++found_.torn;
      return;
    }
    RecordedCall call = call_of(current, communicator);
    const uint64_t waits_for = recording::unchecked(words_.at(at + CCOM_WORD(Communicator, waits_for)));
    if (waits_for > 0 && waits_for <= (uint64_t{1} << recording::kPeerBits)) {
      call.waited_for = static_cast<Rank>(waits_for) - 1;
      waits_since_.emplace_back(found_.calls.size(), time(words_.at(at + CCOM_WORD(Communicator, waits_since))));
    }
    found_.calls.push_back(call);
  }

  void read_records() {
    const uint64_t claimed = header(CCOM_WORD(Header, claimed));
    const uint64_t records = layout_.records;
    for (uint64_t slot = 0; slot < records; ++slot) {
      const Values record = values(layout_.records_at + slot * sizeof(recording::Record));
      if (record == Values{}) continue;
      const bool is_whole = record.ticket != 0 && (record.ticket - 1) % records == slot &&
                            record.origin >> 32 == recording::check_of(record) && is_kind(record.kind);
      if (!is_whole) {
        ++found_.torn;
        continue;
      }
      // Somebody has taken its place and not used it yet: of the calls after it some are gone.
      if (claimed > records && record.ticket <= claimed - records) continue;
      const uint64_t number = recording::place_of(record.call);
      const Place place = number < places_.size() ? places_[number] : Place();
      if (!place.communicator || place.turn != recording::turn_of(record.waited)) {
        ++found_.unplaced;
        continue;
      }
      RecordedCall call = call_of(record, *place.communicator);
      call.ended_ns = std::max(time(record.ended), call.begun_ns);
      call.waited_ns = duration(static_cast<double>(recording::waited_ticks(record.waited)));
      call.waited_for = static_cast<Rank>(recording::peer_of(record.waited));
      call.code = static_cast<Code>(recording::code_of(record.call));
      found_.calls.push_back(call);
    }
    for (const auto& [index, since] : waits_since_)
      found_.calls[index].waited_ns = std::max<int64_t>(0, latest() - since);
  }
  int64_t latest() const {
    int64_t last = found_.last_ns;
    for (const RecordedCall& call : found_.calls) last = std::max(last, call.ended_ns.value_or(call.begun_ns));
    return last;
  }

  // A process that was killed just after its call went into the ring has it as its current one too.
  void drop_twice() {
    std::vector<RecordedCall>& calls = found_.calls;
    const auto is_twice = [&](const RecordedCall& call) {
      if (call.ended_ns) return false;
      const auto first = std::ranges::lower_bound(calls, call.begun_ns, {}, &RecordedCall::begun_ns);
      const auto last = std::ranges::upper_bound(calls, call.begun_ns, {}, &RecordedCall::begun_ns);
      return std::any_of(first, last, [&](const RecordedCall& other) {
        return other.ended_ns && other.communicator == call.communicator && other.call == call.call;
      });
    };
    std::vector<RecordedCall> kept;
    kept.reserve(calls.size());
    for (const RecordedCall& call : calls)
      if (!is_twice(call)) kept.push_back(call);
    calls = std::move(kept);
  }

  Words words_;
  Recording found_;
  ClockPoint first_;
  double ns_per_tick_ = 0;
  recording::Layout layout_{};
  std::vector<Place> places_;
  std::unordered_map<uint64_t, uint32_t> kept_;          // by reference: of Recording::texts
  std::vector<std::pair<size_t, int64_t>> waits_since_;  // of current calls
};
#undef CCOM_WORD

}  // namespace

Result<Recording> read_recording(ConstBytes file) { return RecordingReader(file).read(); }

Result<Recording> read_recording(const std::string& path) {
  CCOM_TRY_ASSIGN(const std::string bytes, read_file(path, recording::kMostBytes));
  Result<Recording> found = read_recording(std::as_bytes(std::span(bytes)));
  if (!found) return std::move(found).error().in(path);
  found->path = path;
  return found;
}

}  // namespace ccom
