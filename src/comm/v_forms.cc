// SPDX-License-Identifier: Apache-2.0
//
// V-forms: collectives in which ranks have parts of different lengths.
//
// Every call begins with an allgather of two words per rank, by which all ranks know whether they agree on the counts;
// if not, a second one tells all of them where they differ. Then allgather and reduce-scatter run programs like those
// of equal units. Gather, scatter and alltoall are messages of the engine, straight between those who have the parts
// and those who get them; where not all ranks are linked, an allgather of everything.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

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

bool are_equal_in_a_row(const UnitLayout& units) {
  return std::ranges::count(units.lengths, units.lengths[0]) == std::ssize(units.lengths) &&
         units.begins == in_a_row(units.lengths);
}

uint64_t hash_of(const std::vector<size_t>& values) {
  uint64_t hash = 0;
  for (const size_t value : values) hash = mix(hash ^ value);
  return hash;
}

void copy_bytes(std::byte* to, const std::byte* from, size_t size_bytes) {
  if (size_bytes > 0 && to != from) std::memcpy(to, from, size_bytes);
}

}  // namespace

Status Communicator::run_v_form(const Envelope& envelope, const Request& request) {
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
                  has_units ? hash_of(units_of(request.collective, *request.shares).begins) : 0};
  std::vector<Said> all(static_cast<size_t>(membership_.nranks));
  Request gather = gathering(&mine, sizeof mine, all.data());
  gather.timeout_ms = request.timeout_ms;
  CCOM_TRY(run_as(envelope, gather));
  uint64_t sum = 0;
  for (const Said& said : all) sum += said.claim;
  if (sum == 0) return std::ranges::all_of(all, [&](const Said& said) { return said.places == mine.places; });
  CCOM_TRY_ASSIGN(const std::vector<uint64_t> claims, gather_counts(envelope, request, true));
  const std::optional<Difference> found = first_difference(claims, membership_.nranks);
  CCOM_ASSERT(found);
  return finish(envelope, engine_->fail(different_counts(request.collective, describe_call(envelope), *found)));
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

// ---- Allgather and reduce-scatter -----------------------------------------------------------------------------------

Status Communicator::run_units(const Envelope& envelope, const Request& request, bool same_places) {
  const UnitLayout units = units_of(request.collective, *request.shares);
  if (same_places && are_equal_in_a_row(units)) {
    Request equal = request;
    equal.shares = nullptr;
    equal.count = units.lengths[0];
    return run_as(envelope, equal);
  }
  const ProgramKey key{.collective = request.collective,
                       .type = request.type,
                       .op = request.op,
                       .in_place = lies_in_place(request, units, membership_.rank),
                       .units = units};
  if (same_places) return run_program(envelope, request, key);
  const Result<std::shared_ptr<const Choice>> choice = programs_->choice(key);
  if (!choice) return refuse(envelope, choice.error());
  // Of several stages one reads what others have in their outputs.
  const Program& program = (*choice)->program();
  if (program.is_node() || program.is_messages()) return run_program(envelope, request, key);
  return gather_packed(envelope, request, units);
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
  CCOM_TRY(run_program(envelope, packed, {.collective = request.collective, .type = request.type, .units = row}));
  for (size_t rank = 0; rank < units.lengths.size(); ++rank) {
    if (units.lengths[rank] == 0) continue;
    std::byte* const to = request.output + units.begins[rank] * element;
    if (to == request.input && rank == static_cast<size_t>(membership_.rank)) continue;
    copy_bytes(to, room.get() + row.begins[rank] * element, units.lengths[rank] * element);
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

// ---- Gather, scatter and alltoall -----------------------------------------------------------------------------------

Status Communicator::exchange(const Envelope& envelope, const Request& request) {
  const Shares& shares = *request.shares;
  const size_t element = size_of(request.type);
  const auto n = static_cast<size_t>(membership_.nranks), self = static_cast<size_t>(membership_.rank);
  const std::byte* input = request.input;
  std::vector<size_t> sent_at = shares.sent_at;
  std::unique_ptr<std::byte[]> room;
  if (request.collective == Collective::AllToAll && input == request.output && input != nullptr) {  // in place
    sent_at = in_a_row(shares.sent);
    CCOM_TRY_ASSIGN(room, room_for(envelope, (sent_at.back() + shares.sent.back()) * element));
    for (size_t to = 0; to < n; ++to) {
      if (shares.sent[to] == 0) continue;
      copy_bytes(room.get() + sent_at[to] * element, input + shares.sent_at[to] * element, shares.sent[to] * element);
    }
    input = room.get();
  }
  std::vector<std::shared_ptr<const BoundPlan>> plans;
  std::vector<Operation> operations;
  const auto add = [&](size_t peer, bool sends) -> Status {
    const size_t count = (sends ? shares.sent : shares.received)[peer];
    if (count == 0) return {};
    Request end;
    end.type = request.type;
    end.count = count;
    end.peer = static_cast<Rank>(peer);
    end.sends = sends;
    CCOM_TRY_ASSIGN(std::shared_ptr<const BoundPlan> plan, transfers_->get(end));
    operations.push_back({.plan = plan.get(),
                          .input = sends ? input + sent_at[peer] * element : nullptr,
                          .output = sends ? nullptr : request.output + shares.received_at[peer] * element,
                          .envelope = envelope});
    plans.push_back(std::move(plan));
    return {};
  };
  for (size_t k = 1; k < n; ++k) {
    Status added = add((self + k) % n, true);
    if (added.is_ok()) added = add((self + n - k) % n, false);
    if (!added.is_ok()) return refuse(envelope, added);
  }
  if (shares.sent[self] > 0) {
    copy_bytes(request.output + shares.received_at[self] * element, input + sent_at[self] * element,
               shares.sent[self] * element);
  }
  if (operations.empty()) return {};
  return finish(envelope, engine_->run(operations, Deadline::after_ms(request.timeout_ms)));
}

// Everybody gets everything: on a fabric where messages must be handed on.
Status Communicator::exchange_routed(const Envelope& envelope, const Request& request) {
  const Shares& shares = *request.shares;
  const size_t element = size_of(request.type);
  const auto n = static_cast<size_t>(membership_.nranks), self = static_cast<size_t>(membership_.rank);
  CCOM_TRY_ASSIGN(const std::vector<uint64_t> counts, gather_counts(envelope, request, false));
  const auto sum = [&](size_t from, size_t ranks) {  // of what a rank sends to the first ones
    const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(from * n);
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(ranks), size_t{0});
  };
  UnitLayout units;
  for (size_t rank = 0; rank < n; ++rank) units.lengths.push_back(sum(rank, n));
  units.begins = in_a_row(units.lengths);
  CCOM_TRY_ASSIGN(const std::unique_ptr<std::byte[]> room,
                  room_for(envelope, (units.begins.back() + units.lengths.back()) * element));
  std::byte* const own = room.get() + units.begins[self] * element;
  for (size_t to = 0; to < n; ++to) {
    if (shares.sent[to] == 0) continue;
    copy_bytes(own + sum(self, to) * element, request.input + shares.sent_at[to] * element, shares.sent[to] * element);
  }
  Request gather = request;
  gather.collective = Collective::AllGather;
  gather.input = own;
  gather.output = room.get();
  CCOM_TRY(run_program(envelope, gather,
                       {.collective = Collective::AllGather, .type = request.type, .in_place = true, .units = units}));
  for (size_t from = 0; from < n; ++from) {
    const size_t count = counts[from * n + self];
    if (count == 0) continue;
    copy_bytes(request.output + shares.received_at[from] * element,
               room.get() + (units.begins[from] + sum(from, self)) * element, count * element);
  }
  return {};
}

}  // namespace ccom
