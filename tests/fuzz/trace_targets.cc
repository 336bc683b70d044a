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

// An input changes words of a file: {offset in words, value} each. Without that nearly all would be refused at once.
std::string file_from(ConstBytes input) {
  constexpr uint64_t kBytes = recording::kLeastBytes / 2;
  const recording::Layout layout = recording::layout_of(kBytes);
  std::string file(kBytes, '\0');
  const auto set = [&file](uint64_t at, uint64_t value) {
    if (at + sizeof value <= file.size()) std::memcpy(&file[at], &value, sizeof value);
  };
  const std::vector<uint64_t> head{recording::kMagic,    recording::kVersion,     kBytes,          layout.sites_at,
                                   layout.algorithms_at, layout.communicators_at, layout.texts_at, layout.records_at,
                                   layout.communicators, layout.text_bytes,       layout.records};
  for (size_t i = 0; i < head.size(); ++i) set(i * sizeof(uint64_t), head[i]);
  set(offsetof(recording::Header, points) + offsetof(recording::Point, check), recording::check_of(0, 0, 0));
  fuzz::Reader reader(input);
  while (!reader.is_empty()) {
    const uint64_t at = reader.number<uint16_t>();
    set(at * sizeof(uint64_t), reader.number<uint64_t>());
  }
  return file;
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
