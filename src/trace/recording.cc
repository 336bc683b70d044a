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
  // Whether `count` things of that size lie there.
  bool holds(uint64_t begin, uint64_t count, uint64_t size) const {
    return begin <= file_.size() && count <= (file_.size() - begin) / size;
  }
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
    communicators_at_ = header(CCOM_WORD(Header, communicators_at));
    communicators_ = header(CCOM_WORD(Header, communicators));
    records_at_ = header(CCOM_WORD(Header, records_at));
    records_ = header(CCOM_WORD(Header, records));
    texts_at_ = header(CCOM_WORD(Header, texts_at));
    text_bytes_ = header(CCOM_WORD(Header, text_bytes));
    sites_at_ = header(CCOM_WORD(Header, sites_at));
    algorithms_at_ = header(CCOM_WORD(Header, algorithms_at));
    if (!words_.holds(communicators_at_, communicators_, sizeof(recording::Communicator)) ||
        !words_.holds(records_at_, records_, sizeof(recording::Record)) || !words_.holds(texts_at_, text_bytes_, 1) ||
        !words_.holds(sites_at_, recording::kSites, sizeof(uint64_t)) ||
        !words_.holds(algorithms_at_, recording::kAlgorithms, sizeof(uint64_t)))
      return error(Code::InvalidArgument, "the recording is cut off: it should have %llu bytes",
                   static_cast<unsigned long long>(header(CCOM_WORD(Header, file_bytes))));
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
    if (reference == 0 || reference > text_bytes_ / 8) return "";
    const uint64_t offset = (reference - 1) * 8, bytes = words_.at(texts_at_ + offset);
    if (text_bytes_ - offset < 8 || bytes > text_bytes_ - offset - 8) return "";
    return words_.text(texts_at_ + offset + 8, texts_at_ + offset + 8 + bytes);
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
    call.site = kept(words_.at(sites_at_ + sizeof(uint64_t) * (site % recording::kSites)));
    call.algorithm = kept(words_.at(algorithms_at_ + sizeof(uint64_t) * (algorithm % recording::kAlgorithms)));
    return call;
  }

  void read_communicators() {
    places_.resize(communicators_);
    for (uint64_t place = 0; place < communicators_; ++place) {
      const uint64_t at = communicators_at_ + place * sizeof(recording::Communicator);
      const uint64_t state = words_.at(at + CCOM_WORD(Communicator, state));
      if (state == 0 || state > static_cast<uint64_t>(recording::PlaceState::Closed)) continue;
      if (!read_communicator(at)) continue;
      places_[place] = {found_.communicators.size() - 1, words_.at(at + CCOM_WORD(Communicator, turn)) & 0xff};
      read_current(at, found_.communicators.size() - 1);
    }
  }

  bool read_communicator(uint64_t at) {
    const auto word = [&](uint64_t offset) { return words_.at(at + offset); };
    const uint64_t nranks = word(CCOM_WORD(Communicator, ranks)), rank = word(CCOM_WORD(Communicator, rank));
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
    if (current.ticket != 1 || words_.at(at + CCOM_WORD(Communicator, closed)) != 0) return;
    if (!is_kind(current.kind)) {  // it has no check, as it is still written
      ++found_.torn;
      return;
    }
    RecordedCall call = call_of(current, communicator);
    const uint64_t waits_for = words_.at(at + CCOM_WORD(Communicator, waits_for));
    if (waits_for > 0 && waits_for <= (uint64_t{1} << recording::kPeerBits)) {
      call.waited_for = static_cast<Rank>(waits_for) - 1;
      waits_since_.emplace_back(found_.calls.size(), time(words_.at(at + CCOM_WORD(Communicator, waits_since))));
    }
    found_.calls.push_back(call);
  }

  void read_records() {
    const uint64_t claimed = header(CCOM_WORD(Header, claimed));
    for (uint64_t slot = 0; slot < records_; ++slot) {
      const Values record = values(records_at_ + slot * sizeof(recording::Record));
      if (record == Values{}) continue;
      const bool is_whole = record.ticket != 0 && (record.ticket - 1) % records_ == slot &&
                            record.origin >> 32 == recording::check_of(record) && is_kind(record.kind);
      if (!is_whole) {
        ++found_.torn;
        continue;
      }
      // Somebody has taken its place and not used it yet: of the calls after it some are gone.
      if (claimed > records_ && record.ticket <= claimed - records_) continue;
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
  uint64_t communicators_at_ = 0, communicators_ = 0, records_at_ = 0, records_ = 0, texts_at_ = 0, text_bytes_ = 0;
  uint64_t sites_at_ = 0, algorithms_at_ = 0;
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
