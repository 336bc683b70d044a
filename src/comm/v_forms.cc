// SPDX-License-Identifier: Apache-2.0
//
// V-forms: collectives in which ranks have parts of different lengths.
//
// Allgather and reduce-scatter run programs like those of equal units, the others are in part_exchanges.cc. Where all
// ranks share memory, the words that the first barrier of a call compares have a hash of the counts. Elsewhere a call
// begins with an allgather of two words per rank, by which all know whether they agree on the counts; if not, a second
// one tells all of them where they differ.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/assert.h"
#include "comm/communicator.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

// The larger buffer of an allgather or reduce-scatter.
UnitLayout units_of(Collective collective, const Shares& shares) {
  if (collective == Collective::AllGather) return {shares.received, shares.received_at};
  return {shares.sent, shares.sent_at};
}

bool lies_in_place(const Request& request, const UnitLayout& units, Rank rank) {
  const size_t own = units.begins[static_cast<size_t>(rank)] * size_of(request.type);
  const auto input = reinterpret_cast<uintptr_t>(request.input), output = reinterpret_cast<uintptr_t>(request.output);
  return request.collective == Collective::AllGather ? input == output + own : output == input + own;
}

bool are_equal(const UnitLayout& units) {
  return std::ranges::count(units.lengths, units.lengths[0]) == std::ssize(units.lengths);
}
bool are_equal_in_a_row(const UnitLayout& units) { return are_equal(units) && units.begins == in_a_row(units.lengths); }

// The plain form with the same units.
Request with_equal_units(const Request& request, const UnitLayout& units) {
  Request equal = request;
  equal.shares = nullptr;
  equal.count = units.lengths[0];
  return equal;
}

ProgramKey key_of_units(const Request& request, const UnitLayout& units, Rank rank) {
  return {.collective = request.collective,
          .type = request.type,
          .op = request.op,
          .in_place = lies_in_place(request, units, rank),
          .units = units};
}

}  // namespace

// Whether a program of this host's memory serves whatever the counts.
bool Communicator::runs_v_form_in_memory(Collective collective) {
  return (moves_units(collective) || collective == Collective::AllToAll) && config_.algorithm.empty() &&
         small_calls_.serves(collective, 0);
}

Status Communicator::run_v_form(const Envelope& envelope, const Request& request) {
  if (runs_v_form_in_memory(request.collective)) {
    const bool has_units = moves_units(request.collective);
    return has_units ? run_units_in_memory(envelope, request) : exchange_in_memory(envelope, request, false);
  }
  CCOM_TRY_ASSIGN(const bool same_places, agree_on_shares(envelope, request));
  if (moves_units(request.collective)) return run_units(envelope, request, same_places);
  return all_linked_ ? exchange(envelope, request) : exchange_routed(envelope, request);
}

// Whether units also begin at the same places on all ranks.
Result<bool> Communicator::agree_on_shares(const Envelope& envelope, const Request& request) {
  struct Said {
    uint64_t claim, places;
  };
  const bool has_units = moves_units(request.collective);
  const Said mine{claim_of(*request.shares, membership_.rank),
                  has_units ? hash_of_counts(units_of(request.collective, *request.shares).begins) : 0};
  std::vector<Said> all(static_cast<size_t>(membership_.nranks));
  Request gather = gathering(&mine, sizeof mine, all.data());
  gather.timeout_ms = request.timeout_ms;
  CCOM_TRY(run_as(envelope, gather));
  uint64_t sum = 0;
  for (const Said& said : all) sum += said.claim;
  if (sum == 0) return std::ranges::all_of(all, [&](const Said& said) { return said.places == mine.places; });
  CCOM_TRY_ASSIGN(const std::vector<uint64_t> claims, gather_counts(envelope, request, true));
  return finish(envelope, engine_->fail(different_counts(request.collective, describe_call(envelope), claims,
                                                         membership_.nranks)));
}

// Of all ranks, in their order: what each sends to each, and perhaps what it expects of each.
Result<std::vector<uint64_t>> Communicator::gather_counts(const Envelope& envelope, const Request& request,
                                                          bool with_received) {
  std::vector<uint64_t> mine(request.shares->sent.begin(), request.shares->sent.end());
  if (with_received) mine.insert(mine.end(), request.shares->received.begin(), request.shares->received.end());
  std::vector<uint64_t> all(mine.size() * static_cast<size_t>(membership_.nranks));
  Request gather = gathering(mine.data(), mine.size() * sizeof(uint64_t), all.data());
  gather.timeout_ms = request.timeout_ms;
  CCOM_TRY(run_as(envelope, gather));
  return all;
}

Status Communicator::run_units(const Envelope& envelope, const Request& request, bool same_places) {
  const UnitLayout units = units_of(request.collective, *request.shares);
  if (same_places && are_equal_in_a_row(units)) return run_as(envelope, with_equal_units(request, units));
  const ProgramKey key = key_of_units(request, units, membership_.rank);
  if (same_places) return run_program(envelope, request, key);
  const Result<std::shared_ptr<const Choice>> choice = programs_->choice(key);
  if (!choice) return refuse(envelope, choice.error());
  // Of several stages one reads what others have in their outputs.
  const Program& program = (*choice)->program();
  if (program.is_node() || program.is_messages()) return run_program(envelope, request, key);
  return gather_packed(envelope, request, units);
}

// Which way a call takes follows from the lengths alone: where units begin, ranks do not know of each other.
Status Communicator::run_units_in_memory(Envelope envelope, const Request& request) {
  const UnitLayout units = units_of(request.collective, *request.shares);
  envelope.words[2] = hash_of_units(request.collective, *request.shares);
  host_->show_counts({request.shares->sent, request.shares->received, request.shares->sent_at});
  if (are_equal_in_a_row(units)) return run_as(envelope, with_equal_units(request, units));
  if (are_equal(units) && host_->small_call(request.collective, -1, request.type, units.lengths[0]))
    return gather_packed(envelope, request, units);
  return run_program(envelope, request, key_of_units(request, units, membership_.rank));
}

// Units that begin elsewhere on other ranks are collected in a row first.
Status Communicator::gather_packed(const Envelope& envelope, const Request& request, const UnitLayout& units) {
  CCOM_ASSERT(request.collective == Collective::AllGather);
  const size_t element = size_of(request.type);
  const UnitLayout row{units.lengths, in_a_row(units.lengths)};
  CCOM_TRY_ASSIGN(const std::unique_ptr<std::byte[]> room,
                  room_for(envelope, (row.begins.back() + row.lengths.back()) * element));
  Request packed = request;
  packed.output = room.get();
  CCOM_TRY(are_equal(units) ? run_as(envelope, with_equal_units(packed, units))
                            : run_program(envelope, packed, key_of_units(packed, row, membership_.rank)));
  for (size_t rank = 0; rank < units.lengths.size(); ++rank) {
    if (units.lengths[rank] == 0) continue;
    std::byte* const to = request.output + units.begins[rank] * element;
    if (to == request.input && rank == static_cast<size_t>(membership_.rank)) continue;
    std::memcpy(to, room.get() + row.begins[rank] * element, units.lengths[rank] * element);
  }
  return {};
}

// Memory of one call.
Result<std::unique_ptr<std::byte[]>> Communicator::room_for(const Envelope& envelope, size_t bytes) {
  const auto most = static_cast<size_t>(config_.max_memory);
  if (bytes <= most) return std::make_unique_for_overwrite<std::byte[]>(bytes);
  return finish(envelope,
                engine_->fail(error(ErrorKey::ScratchLimit, "rank %d: %s needs %zu bytes of scratch, maxMemory is %zu",
                                    membership_.rank, describe_call(envelope).c_str(), bytes, most)
                                  .with_cure("raise maxMemory (CCOM_MAX_MEMORY) or split the call")));
}

}  // namespace ccom
