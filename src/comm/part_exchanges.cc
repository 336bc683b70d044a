// SPDX-License-Identifier: Apache-2.0
//
// V-forms of gather, scatter and alltoall: messages of the engine, straight between those who have the parts and those
// who get them, or where not all ranks are linked an allgather of everything. Where all ranks share memory an alltoall
// begins with a barrier at which ranks say how long their parts are (node/v_forms.cc).
#include <cstring>
#include <memory>
#include <numeric>

#include "comm/communicator.h"

namespace ccom {
namespace {

void copy_bytes(std::byte* to, const std::byte* from, size_t size_bytes) {
  if (size_bytes > 0 && to != from) std::memcpy(to, from, size_bytes);
}

bool is_exchange_in_place(const Request& request) {
  return request.collective == Collective::AllToAll && request.input == request.output && request.input != nullptr;
}

// sent_at: of the parts in `input`.
void copy_own_part(const Request& request, const std::byte* input, const std::vector<size_t>& sent_at, Rank rank) {
  const auto self = static_cast<size_t>(rank);
  const size_t element = size_of(request.type), count = request.shares->sent[self];
  if (count == 0) return;
  copy_bytes(request.output + request.shares->received_at[self] * element, input + sent_at[self] * element,
             count * element);
}

// A copy of all parts that a rank sends. at: where it begins each.
void pack(const Request& request, const std::vector<size_t>& at, std::byte* room) {
  const Shares& shares = *request.shares;
  const size_t element = size_of(request.type);
  for (size_t to = 0; to < at.size(); ++to) {
    if (shares.sent[to] == 0) continue;
    copy_bytes(room + at[to] * element, request.input + shares.sent_at[to] * element, shares.sent[to] * element);
  }
}

// Of the parts that the ranks of this host have said they send, without those that they keep.
Result<NodeViews> views_of_exchange(const ShmCollectives& host, const std::vector<size_t>& received_at,
                                    size_t element) {
  const size_t n = received_at.size();
  const NodeTask task = node_task(Collective::AllToAll, static_cast<int>(n), -1);
  NodeViews views{std::vector(n, std::vector<int64_t>(n)), std::vector(n, std::vector<int64_t>(n)),
                  std::vector<size_t>(n * n)};
  for (size_t from = 0; from < n; ++from) {
    const PartLists parts = host.of_exchange(static_cast<Rank>(from));
    for (size_t to = 0; to < n; ++to) {
      size_t end = 0, bytes = 0;
      if (from == to || parts.sent[to] == 0) continue;
      if (__builtin_add_overflow(parts.sent_at[to], parts.sent[to], &end) ||
          __builtin_mul_overflow(end, element, &bytes) || bytes > PTRDIFF_MAX)
        return error(Code::InternalError, "rank %zu says that its parts lie outside of its memory", from)
            .with_peers({static_cast<Rank>(from)});
      views.given[from][to] = static_cast<int64_t>(parts.sent_at[to] * element);
      views.block_elements[task.blocks.gives[from][to]] = parts.sent[to];
    }
    // Of other ranks' outputs nothing is asked.
    for (size_t to = 0; to < n; ++to) views.got[from][to] = static_cast<int64_t>(received_at[to] * element);
  }
  return views;
}

}  // namespace

// From now on no rank's equal parts are taken for everybody's.
void Communicator::note_unlike_parts() {
  are_parts_alike_ = false;
  prepared_.forget_all();
}

// A call that began as an equal one, on this rank, and is none. By value: those that are kept are forgotten.
Status Communicator::exchange_after_all(PreparedCall call, const std::byte* input, std::byte* output,
                                        int64_t timeout_ms) {
  note_unlike_parts();
  call.words[2] = ShmCollectives::kSaysParts;  // as other ranks have it
  Shares shares;
  shares.sent = shares.received = std::vector(static_cast<size_t>(membership_.nranks), call.count);
  shares.sent_at = shares.received_at = in_a_row(shares.sent);
  const CallKind kind = parts_of(call.words[3]);
  Request request;
  request.collective = kind.collective;
  request.type = kind.type;
  request.input = input;
  request.output = output;
  request.shares = &shares;
  request.timeout_ms = timeout_ms;
  return exchange_in_memory({call.words}, request, true);
}

// Parts too long for mail are read where they lie, if others can read them there without the kernel; if not, messages
// share the copies between both ends, where other ranks' reads would all fall to who gets the longest part.
Status Communicator::exchange_in_memory(const Envelope& envelope, const Request& request, bool has_met) {
  const Shares& shares = *request.shares;
  const size_t element = size_of(request.type);
  const auto exchanged = host_->exchange_small({.parts = {shares.sent, shares.received, shares.sent_at},
                                                .received_at = shares.received_at,
                                                .claim = claim_of(shares, membership_.rank),
                                                .input = request.input,
                                                .output = request.output,
                                                .element_bytes = element},
                                               envelope.words, std::chrono::milliseconds(request.timeout_ms), has_met);
  if (host_->take_unlike_parts()) note_unlike_parts();
  if (!exchanged) return finish(envelope, exchanged.error());
  if (exchanged->longest == 0) return {};
  if (!exchanged->is_mapped) return exchange(envelope, request);
  const Result<const BoundProgram*> bound =
      programs_->get({.collective = Collective::AllToAll, .type = request.type, .count = exchanged->longest});
  if (!bound) return refuse(envelope, bound.error());
  if (!(*bound)->program().is_node()) return exchange(envelope, request);
  const Result<NodeViews> views = views_of_exchange(*host_, shares.received_at, element);
  if (!views) return finish(envelope, engine_->fail(views.error()));
  copy_own_part(request, request.input, shares.sent_at, membership_.rank);
  return run_bound(**bound, {.input = request.input,
                             .output = request.output,
                             .views = &*views,
                             .envelope = envelope,
                             .timeout_ms = request.timeout_ms});
}

Status Communicator::exchange(const Envelope& envelope, const Request& request) {
  const Shares& shares = *request.shares;
  const size_t element = size_of(request.type);
  const auto n = static_cast<size_t>(membership_.nranks), self = static_cast<size_t>(membership_.rank);
  const std::byte* input = request.input;
  std::vector<size_t> sent_at = shares.sent_at;
  std::unique_ptr<std::byte[]> room;
  if (is_exchange_in_place(request)) {
    sent_at = in_a_row(shares.sent);
    CCOM_TRY_ASSIGN(room, room_for(envelope, (sent_at.back() + shares.sent.back()) * element));
    pack(request, sent_at, room.get());
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
  copy_own_part(request, input, sent_at, membership_.rank);
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
