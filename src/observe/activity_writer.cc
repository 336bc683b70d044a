// SPDX-License-Identifier: Apache-2.0
#include "observe/activity_writer.h"

#include "base/text.h"

namespace ccom {
namespace {

uint64_t now_ns() { return static_cast<uint64_t>(monotonic_ns()); }

}  // namespace

void ActivityWriter::begin_time() {
  begun_ns_ = now_ns();
  record_.times.lock.write([this] {
    record_.times.begun.store(current_, std::memory_order_release);
    record_.times.begun_ns.store(begun_ns_, std::memory_order_release);
  });
}

void ActivityWriter::end_time() {
  const uint64_t ended_ns = now_ns();
  record_.counters.count_time(collective_, bytes_, ended_ns - begun_ns_);
  begun_ns_ = 0;
  record_.times.lock.write([this, ended_ns] {
    record_.times.ended.store(current_, std::memory_order_release);
    record_.times.ended_ns.store(ended_ns, std::memory_order_release);
  });
}

void ActivityWriter::end_record() {
  recorder_->end(result_);
  result_ = Code::Ok;
}

void ActivityWriter::set_algorithm(std::string_view name, uint64_t hash) {
  constexpr uint64_t kIsAlgorithm = uint64_t{1} << 63;  // keys of call sites are small
  if (current_ == 0 || current_ == kInTransfers) return;
  origin_.algorithm = texts_.of_another(hash | kIsAlgorithm, name);
  record_.calls.amend(origin_);
  if (recorder_ != nullptr) recorder_->set_algorithm(name);
}

void ActivityWriter::begin_transfers(CallSite site) {
  current_ = kInTransfers;
  collective_ = Collective::SendReceive;
  bytes_ = 0;
  origin_ = {site_reference(site), 0};
  record_.transfers.site.store(origin_.site, std::memory_order_release);
  record_.transfers.turns.store(record_.transfers.turns.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (recorder_ != nullptr) {
    constexpr uint64_t kKind = kind_of(Collective::SendReceive, DataType::Uint8, ReduceOp::Sum, false, -1);
    recorder_->begin({.number = 0, .count = 0, .kind = kKind}, site);
  }
}

void ActivityWriter::end_transfers() {
  if (recorder_ != nullptr) end_record();
  record_.transfers.turns.store(record_.transfers.turns.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  current_ = 0;
}

void ActivityWriter::begin_wait(Rank peer, Clock::time_point since) {
  if (current_ == 0) return;
  waits_since_ns_ = static_cast<uint64_t>(since.time_since_epoch() / std::chrono::nanoseconds(1));
  waits_for_ = peer;
  record_.times.lock.write([this] {
    record_.times.waits_for.store(static_cast<uint64_t>(waits_for_), std::memory_order_release);
    record_.times.waits_since_ns.store(waits_since_ns_, std::memory_order_release);
    record_.times.waits_in.store(current_, std::memory_order_release);
  });
  if (recorder_ != nullptr) recorder_->begin_wait(peer);
}

void ActivityWriter::end_wait() {
  if (waits_since_ns_ == 0) return;
  if (recorder_ != nullptr) recorder_->end_wait();
  count_wait({collective_, bytes_, now_ns() - waits_since_ns_, waits_for_, current_, origin_.site});
  waits_since_ns_ = 0;
  record_.times.lock.write([this] { record_.times.waits_in.store(0, std::memory_order_release); });
}

}  // namespace ccom
