// SPDX-License-Identifier: Apache-2.0
//
// An event file as TensorBoard reads it: records {length, masked CRC32C of it, an Event, masked CRC32C of that}, where
// an Event is a protocol buffer (TensorFlow's event.proto, summary.proto) of which few fields are needed:
//
//   Event    1 wall_time (double)   2 step (int64)   3 file_version (string)   5 summary (Summary)
//   Summary  1 value (Value, repeated)               Value   1 tag (string)    2 simple_value (float)
#include <unistd.h>

#include <bit>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/checksum.h"
#include "tools/trace/outputs.h"
#include "tools/trace/words.h"

namespace ccom::tracetool {
namespace {

template <typename T>
void append(std::string& bytes, T value) {
  static_assert(std::endian::native == std::endian::little);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Fields of protocol buffers.
class Message {
 public:
  Message& real(int field, double value) {
    tag(field, 1);
    append(bytes_, value);
    return *this;
  }
  Message& real(int field, float value) {
    tag(field, 5);
    append(bytes_, value);
    return *this;
  }
  Message& integer(int field, uint64_t value) {
    tag(field, 0);
    variable(value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    tag(field, 2);
    variable(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int type) { variable(static_cast<uint64_t>(field << 3 | type)); }
  void variable(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

uint32_t masked_check(std::string_view bytes) {
  const uint32_t check = crc32c(std::as_bytes(std::span(bytes)), 0);
  return std::rotr(check, 15) + 0xa282ead8U;
}

void write_record(std::ostream& out, const std::string& event) {
  std::string head;
  append(head, static_cast<uint64_t>(event.size()));
  append(head, masked_check(head));
  std::string tail;
  append(tail, masked_check(event));
  out << head << event << tail;
}

// Mean of some calls that follow one another.
struct Mean {
  uint64_t calls = 0;
  double seconds = 0, waited_seconds = 0;
  void add(const RecordedCall& call) {
    ++calls;
    seconds += static_cast<double>(*call.ended_ns - call.begun_ns) / 1e9;
    waited_seconds += static_cast<double>(call.waited_ns) / 1e9;
  }
};

void write_scalars(std::ostream& out, const std::string& prefix, double wall_time, uint64_t step, const Mean& mean) {
  const auto calls = static_cast<double>(mean.calls);
  const auto value = [&](const char* name, double of) {
    return Message().text(1, prefix + name).real(2, static_cast<float>(of)).bytes();
  };
  const std::string summary = Message()
                                  .text(1, value("/seconds", mean.seconds / calls))
                                  .text(1, value("/seconds_waited", mean.waited_seconds / calls))
                                  .bytes();
  write_record(out, Message().real(1, wall_time).integer(2, step).text(5, summary).bytes());
}

void write_rank(std::ostream& out, const RecordedJob& job, const RecordedGroup& group, Rank rank,
                const RecordedRank& recorded) {
  constexpr size_t kMostPoints = 1000;
  std::map<std::string, std::vector<const RecordedCall*>> by_name;
  for (const RecordedCall* call : recorded.calls) {
    const CallKind kind = parts_of(call->call.kind);
    if (call->ended_ns) by_name[call_name(kind.collective, kind.is_v)].push_back(call);
  }
  for (const auto& [name, calls] : by_name) {
    const size_t at_a_time = (calls.size() + kMostPoints - 1) / kMostPoints;
    const std::string prefix = group_name(group) + "/" + name + "/rank " + std::to_string(rank);
    Mean mean;
    for (size_t i = 0; i < calls.size(); ++i) {
      mean.add(*calls[i]);
      if ((i + 1) % at_a_time != 0 && i + 1 != calls.size()) continue;
      const int64_t when = realtime(job, job.time(recorded.file, *calls[i]->ended_ns));
      write_scalars(out, prefix, static_cast<double>(when) / 1e9, calls[i]->call.number, mean);
      mean = {};
    }
  }
}

}  // namespace

Result<std::string> write_tensorboard(const RecordedJob& job, const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, sizeof host - 1);
  const double begin = static_cast<double>(realtime(job, job.last_ns)) / 1e9;
  std::string path = folder + "/events.out.tfevents." + std::to_string(static_cast<int64_t>(begin)) + "." + host +
                     ".ccom-" + std::to_string(job.groups.front().number);
  std::ofstream out(path, std::ios::binary);
  write_record(out, Message().real(1, begin).text(3, "brain.Event:2").bytes());
  for (const RecordedGroup& group : job.groups) {
    for (const auto& [rank, recorded] : group.ranks) write_rank(out, job, group, rank, recorded);
  }
  if (!out.flush()) return error(Code::SystemError, "cannot write %s", path.c_str());
  return path;
}

}  // namespace ccom::tracetool
