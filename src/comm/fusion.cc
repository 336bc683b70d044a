// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring small collectives of a group as one: of one kind, type, operator and root, packed unit by unit.
//
// Results have the bits of separate calls: fused are those that add nothing, integers, and sums that the programs of
// all calls involved make in one way (sums_alike()). What ranks fuse follows from the calls alone. Whether it may be
// done also depends on memory, which each rank knows alone: a call that reads or overwrites what one before it writes
// must come after it. So ranks tell one another first, and if any says no, all make the calls one by one.
#include <algorithm>
#include <cstring>

#include "algorithms/same_sums.h"
#include "comm/communicator.h"
#include "comm/witness.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

bool is_exact(DataType type, ReduceOp op) {
  const bool is_float = is_narrow_float(type) || type == DataType::Float32 || type == DataType::Float64 ||
                        type == DataType::Complex64 || type == DataType::Complex128;
  return !is_float && !is_user(op);
}

bool are_of_one_kind(const Request& a, const Request& b) {
  return a.collective == b.collective && a.type == b.type && a.op == b.op && a.root == b.root && b.shares == nullptr &&
         b.multiplier == nullptr && b.user == nullptr;
}

// The bytes of a call's buffers on this rank.
struct Extents {
  ConstBytes input, output, residual;
  bool touch(ConstBytes memory) const {
    return overlap(memory, input) || overlap(memory, output) || overlap(memory, residual);
  }
};

uint64_t hash_of(std::span<const Request> calls) {
  uint64_t hash = calls.size();
  for (const Request& call : calls) hash = mix(hash ^ call.count);
  return hash;
}

}  // namespace

// How many of the first calls are to be fused: the same on all ranks. 0: none.
size_t Communicator::count_fused(std::span<const Request> calls) {
  const Request& first = calls[0];
  const bool can_be = first.collective != Collective::Barrier && first.collective != Collective::SendReceive &&
                      are_of_one_kind(first, first) && membership_.nranks > 1;
  if (!can_be) return 0;
  if (reduces(first.collective) && config_.rounding == Rounding::Stochastic) return 0;
  const size_t element = size_of(first.type);
  const size_t units = largest_units(first.collective, membership_.nranks);
  const bool is_small = small_calls_.serves(first.collective, first.count * element);
  const Fusing terms = fusing(is_small);
  size_t count = 0, elements = 0;
  for (const Request& call : calls) {
    if (!are_of_one_kind(first, call)) break;
    const size_t bytes = (elements + call.count) * element;
    const bool fits = bytes * units <= terms.most_bytes && (!is_small || small_calls_.serves(call.collective, bytes));
    if (!fits) break;
    elements += call.count;
    ++count;
  }
  if (count < terms.least_calls) return 0;
  if (is_small || !reduces(first.collective) || is_exact(first.type, first.op)) return count;
  return have_equal_sums(calls.first(count), elements) ? count : 0;
}

bool Communicator::have_equal_sums(std::span<const Request> calls, size_t elements) {
  Request fused = calls[0];
  fused.count = elements;
  const auto whole = programs_->choice(key_of(fused));
  return whole && std::ranges::all_of(calls, [&](const Request& call) {
           const auto alone = programs_->choice(key_of(call));
           return alone && sums_alike((*alone)->program(), (*whole)->program());
         });
}

// Whether no call touches what one before it writes, or writes what one before it reads.
bool Communicator::are_independent(std::span<const Request> calls) const {
  std::vector<Extents> before;
  for (const Request& call : calls) {
    const bool is_root = membership_.rank == call.root;
    const size_t unit = call.count * size_of(call.type);
    const Extents now{{call.input, unit * input_units(call.collective, membership_.nranks, is_root)},
                      {call.output, unit * output_units(call.collective, membership_.nranks, is_root)},
                      {call.residual, call.residual == nullptr ? 0 : call.count * sizeof(float)}};
    for (const Extents& other : before) {
      if (now.touch(other.output) || now.touch(other.residual) || overlap(other.input, now.output) ||
          overlap(other.input, now.residual))
        return false;
    }
    before.push_back(now);
  }
  return true;
}

// nullopt: some rank cannot, and nothing has been done.
std::optional<Status> Communicator::run_fused(std::span<const Request> calls) {
  Request fused = calls[0];
  fused.is_group = true;
  fused.residual = nullptr;
  fused.count = 0;
  for (const Request& call : calls) {
    fused.count += call.count;
    fused.timeout_ms = std::min(fused.timeout_ms, call.timeout_ms);
  }
  const Envelope envelope = begin_call(fused);
  const EndOfCall end(links_->monitor().activity());
  struct Said {
    uint64_t calls, can;
  };
  const Said mine{hash_of(calls), are_independent(calls) ? 1U : 0U};
  std::vector<Said> all(static_cast<size_t>(membership_.nranks));
  Request gather = gathering(&mine, sizeof mine, all.data());
  gather.timeout_ms = fused.timeout_ms;
  if (Status told = run_as(envelope, gather); !told.is_ok()) return told;
  if (std::ranges::any_of(all, [&](const Said& said) { return said.calls != mine.calls || said.can == 0; })) return {};
  const bool is_root = membership_.rank == fused.root;
  const size_t element = size_of(fused.type), whole = fused.count * element;
  const size_t sent = input_units(fused.collective, membership_.nranks, is_root);
  const size_t received = output_units(fused.collective, membership_.nranks, is_root);
  packed_.resize(whole * (sent + received));
  std::byte *const inputs = packed_.data(), *const outputs = inputs + whole * sent;
  const auto for_each_unit = [&](size_t units, auto move) {
    size_t begin = 0;
    for (const Request& call : calls) {
      const size_t bytes = call.count * element;
      for (size_t unit = 0; unit < units && bytes > 0; ++unit) move(call, unit * bytes, unit * whole + begin, bytes);
      begin += bytes;
    }
  };
  for_each_unit(sent, [&](const Request& call, size_t from, size_t to, size_t bytes) {
    std::memcpy(inputs + to, call.input + from, bytes);
  });
  fused.input = inputs;
  fused.output = outputs;
  if (Status status = run_as(envelope, fused); !status.is_ok()) return status;
  for_each_unit(received, [&](const Request& call, size_t to, size_t from, size_t bytes) {
    std::memcpy(call.output + to, outputs + from, bytes);
    if (call.residual != nullptr) std::memset(call.residual, 0, call.count * sizeof(float));  // encodes nothing
  });
  if (config_.witness && has_equal_results(fused.collective)) note_equal({outputs, whole * received});
  return Status();
}

}  // namespace ccom
