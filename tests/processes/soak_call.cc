// SPDX-License-Identifier: Apache-2.0
#include "tests/processes/soak_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ccom {

using bench::Area;
using bench::Case;
using bench::Collective;
using launch::Outcome;

namespace {

template <typename T>
T one_of(std::mt19937_64& random, std::span<const T> all) {
  return all[random() % all.size()];
}

size_t random_size(std::mt19937_64& random, size_t most_bytes) {
  if (random() % 32 == 0) return 0;
  const double exponent =
      static_cast<double>(random() % 100'000) / 100'000 * std::log2(static_cast<double>(most_bytes));
  return static_cast<size_t>(std::exp2(exponent));
}

std::string text_of(const bench::Verdict& verdict, size_t offset, const char* where) {
  if (verdict.wrong == 0) return "";
  return std::string(where) + ": " + std::to_string(verdict.wrong) + " wrong, the first at " +
         std::to_string(offset + verdict.index) + ": got " + verdict.got + ", expected " + verdict.expected;
}

}  // namespace

Case random_case(std::mt19937_64& random, int ranks, size_t most_bytes) {
  const Collective collective = one_of(random, bench::all_collectives());
  if (collective == Collective::Barrier) return {.collective = collective, .type = ccomUint8, .ranks = ranks};
  Case what{.collective = collective, .type = one_of(random, bench::all_types()), .ranks = ranks};
  if (bench::reduces(collective)) {
    do {
      what.reduction = one_of(random, bench::all_reductions());
    } while (!bench::is_legal(what.type, what.reduction));
  }
  if (bench::has_root(collective)) what.root = static_cast<int>(random() % static_cast<size_t>(ranks));
  if (bench::is_v(collective)) what.skew = one_of(random, bench::all_skews());
  what.in_place = random() % 2 == 0 && bench::has_in_place(collective);
  what.count = bench::count_for(collective, what.type, ranks, random_size(random, most_bytes));
  return what;
}

SoakCall::SoakCall(const Case& what, const Placement& placement, int rank, uint64_t seed, ccomComm_t comm)
    : what_(what),
      placement_(placement),
      rank_(rank),
      layout_(bench::layout_of(what, rank)),
      counts_(bench::counts_of(what, rank)),
      pattern_(what.pattern()),
      comm_(comm),
      op_(comm) {
  pattern_.seed = seed;
}

SoakCall::~SoakCall() {
  for (void* handle : {send_handle_, recv_handle_}) {
    if (handle != nullptr) ccomCommDeregister(comm_, handle);
  }
}

Outcome SoakCall::take(Area& area, size_t bytes, size_t unalign, void*& handle) {
  const bool is_mapped = placement_.memory == Memory::Mapped;
  CCOM_LAUNCH_TRY(area.allocate(bytes, unalign, is_mapped ? bench::Memory::Mapped : bench::Memory::Heap));
  area.write_guards();
  if (placement_.memory != Memory::Registered) return {};
  return launch::outcome_of(ccomCommRegister(comm_, area.pages().data(), area.pages().size(), &handle), comm_,
                            "register a buffer");
}

Outcome SoakCall::allocate() {
  const size_t element = bench::size_of(what_.type);
  const size_t send_bytes = layout_.send_count * element;
  const size_t recv_bytes = layout_.recv_count * element;
  const size_t both_bytes = std::max(send_bytes, recv_bytes);
  CCOM_LAUNCH_TRY(take(recv_area_, what_.in_place ? both_bytes : recv_bytes, placement_.unalign_recv, recv_handle_));
  if (!what_.in_place) CCOM_LAUNCH_TRY(take(send_area_, send_bytes, placement_.unalign_send, send_handle_));
  std::byte* const send_base = what_.in_place ? recv_area_.data() : send_area_.data();
  if (layout_.has_send) send_ = send_base + layout_.send_offset * element;
  if (layout_.has_recv) recv_ = recv_area_.data() + layout_.recv_offset * element;
  // In place, a broadcast gives both pointers everywhere, and a reduction too.
  if (what_.in_place && what_.collective == Collective::Broadcast) send_ = recv_;
  if (what_.in_place && what_.collective == Collective::Reduce) recv_ = send_;
  return op_.create(pattern_, rank_);
}

bench::Stretch SoakCall::input(uint64_t iteration) const {
  return {.iteration = iteration, .source = rank_, .first = 0, .count = layout_.send_count};
}

void SoakCall::fill(uint64_t iteration) {
  if (layout_.has_recv && layout_.recv_count > 0)
    std::memset(recv_, 0x5a ^ static_cast<int>(iteration & 1), layout_.recv_count * bench::size_of(what_.type));
  if (layout_.has_send) bench::fill(pattern_, input(iteration), send_);
}

ccomResult_t SoakCall::issue(ccomStream_t stream) {
  return bench::call(what_, counts_, rank_, send_, recv_, op_.get(), comm_, stream);
}

std::string SoakCall::fault(uint64_t iteration) const {
  const size_t element = bench::size_of(what_.type);
  std::string found;
  for (const bench::Arrival& arrival : bench::arrivals(what_, rank_, iteration)) {
    if (found.empty())
      found =
          text_of(bench::check(pattern_, arrival.stretch, recv_ + arrival.offset * element), arrival.offset, "output");
  }
  if (found.empty() && layout_.has_send && !what_.in_place)
    found = text_of(bench::check(pattern_, input(iteration), send_), 0, "input");
  const size_t damaged = recv_area_.damaged_guards() + (what_.in_place ? 0 : send_area_.damaged_guards());
  if (found.empty() && damaged > 0) found = std::to_string(damaged) + " bytes around the buffers were written to";
  return found.empty() ? "" : bench::text_of(what_) + ": " + found;
}

bool SoakCall::is_equal_everywhere() const { return what_.collective == Collective::AllReduce && what_.count > 0; }

uint64_t SoakCall::hash() const { return bench::hash_bytes(recv_, layout_.recv_count * bench::size_of(what_.type)); }

}  // namespace ccom
