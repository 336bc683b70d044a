// SPDX-License-Identifier: Apache-2.0
//
// Recorders' files: anything may stand in one.
#include "observe/recording_format.h"
#include "tests/fuzz/target.h"
#include "trace/differences.h"
#include "trace/recorded_job.h"
#include "trace/stragglers.h"

namespace ccom {
namespace {

using fuzz::require;

constexpr uint64_t kBytes = recording::kLeastBytes;
constexpr recording::Layout kLayout = recording::layout_of(kBytes);

#define CCOM_WORD(type, member) \
  uint64_t { offsetof(recording::type, member) }

class MadeFile {
 public:
  MadeFile() : bytes_(kBytes, '\0') {
    set(CCOM_WORD(Header, magic), recording::kMagic);
    set(CCOM_WORD(Header, version), recording::kVersion);
    set(CCOM_WORD(Header, file_bytes), kBytes);
    set(CCOM_WORD(Header, points) + CCOM_WORD(Point, check), recording::check_of(0, 0, 0));
  }
  void set(uint64_t at, uint64_t value) {
    if (at + sizeof value <= bytes_.size()) std::memcpy(&bytes_[at], &value, sizeof value);
  }
  // With the checksum of what the word belongs to, as a program that wants to deceive would.
  void set_checked(uint64_t at, uint64_t value) {
    set(at, value);
    if (at < CCOM_WORD(Header, points)) check_header();
    if (at >= kLayout.sites_at && at < kLayout.communicators_at) set(at, recording::checked(value & 0xffffffffU));
    if (at >= kLayout.communicators_at && at < kLayout.texts_at) {
      const uint64_t place = (at - kLayout.communicators_at) / sizeof(recording::Communicator);
      check_communicator(kLayout.communicators_at + place * sizeof(recording::Communicator));
    }
    if (at >= kLayout.records_at) check_record(at - (at - kLayout.records_at) % sizeof(recording::Record));
  }
  std::string bytes() && { return std::move(bytes_); }

 private:
  uint64_t get(uint64_t at) const {
    uint64_t word = 0;
    std::memcpy(&word, &bytes_[at], sizeof word);
    return word;
  }
  void check_header() {
    set(CCOM_WORD(Header, check), recording::check_of_header([this](uint64_t offset) { return get(offset); }));
  }
  void check_communicator(uint64_t at) {
    const auto word = [&](uint64_t offset) { return get(at + offset); };
    set(at + CCOM_WORD(Communicator, check), recording::check_of_communicator(word));
    check_record(at + CCOM_WORD(Communicator, current));
  }
  void check_record(uint64_t at) {
    if (at + sizeof(recording::Record) > bytes_.size()) return;
    recording::Values values{get(at),      get(at + 8),  get(at + 16), get(at + 24),
                             get(at + 32), get(at + 40), get(at + 48), get(at + 56) & 0xffffffffU};
    set(at + 56, values.origin | recording::check_of(values) << 32);
  }

  std::string bytes_;
};
#undef CCOM_WORD

// An input changes words of a file: {offset in words, value} each. Without that nearly all would be refused at once.
std::string file_from(ConstBytes input) {
  MadeFile file;
  file.set_checked(0, recording::kMagic);
  fuzz::Reader reader(input);
  while (!reader.is_empty()) {
    const uint64_t at = reader.number<uint16_t>();
    file.set_checked(at * sizeof(uint64_t), reader.number<uint64_t>());
  }
  return std::move(file).bytes();
}

void check_times(const RecordedJob& job) {
  for (size_t i = 0; i < job.files.size(); ++i) {
    for (const RecordedCall& call : job.files[i].calls) {
      require(call.communicator < job.files[i].communicators.size());
      require(call.site < job.files[i].texts.size() && call.algorithm < job.files[i].texts.size());
      require(!call.ended_ns || *call.ended_ns >= call.begun_ns);
      require(is_kind(call.call.kind) && !text_of(call.call).empty());
      require(!call_name(parts_of(call.call.kind).collective, parts_of(call.call.kind).is_v).empty());
    }
  }
}

CCOM_FUZZ_TARGET(recording) {
  const bool is_whole = !input.empty() && input[0] == std::byte{'w'};
  const std::string made = is_whole ? "" : file_from(input);
  const ConstBytes file = is_whole ? input.subspan(1) : std::as_bytes(std::span(made));
  Result<Recording> found = read_recording(file);
  if (!found) return require(!found.error().message().empty());
  std::vector<Recording> recordings{*found};
  if (found->communicators.size() > 1) recordings.push_back(*std::move(found));
  for (const RecordedJob& job : jobs_of(std::move(recordings))) {
    check_times(job);
    const RecordedGroup& group = job.groups.front();
    if (group.nranks > 64) continue;  // takes long, and is no fault
    last_calls(job, group, 4);
    find_stragglers(job, group);
  }
}

}  // namespace
}  // namespace ccom
