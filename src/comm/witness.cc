// SPDX-License-Identifier: Apache-2.0
#include "comm/witness.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checksum.h"
#include "comm/communicator.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

constexpr size_t kPieces = 32, kPieceBytes = 64;

}  // namespace

uint64_t digest_of(ConstBytes data, uint64_t call, uint64_t before) {
  std::array<std::byte, kPieces * kPieceBytes> sample;
  ConstBytes digested = data;
  if (data.size() > sample.size()) {
    // One of the lines of each of so many stretches; the last line may overlap the one before.
    const size_t lines = (data.size() + kPieceBytes - 1) / kPieceBytes;
    for (size_t i = 0; i < kPieces; ++i) {
      const size_t first = i * lines / kPieces, end = (i + 1) * lines / kPieces;
      const size_t line = first + mix(call * kPieces + i) % (end - first);
      std::memcpy(&sample[i * kPieceBytes], &data[std::min(line * kPieceBytes, data.size() - kPieceBytes)],
                  kPieceBytes);
    }
    digested = sample;
  }
  const uint64_t all = mix(mix(before) + (static_cast<uint64_t>(crc32c(digested, 0)) << 32 ^ data.size()));
  return all == 0 ? 1 : all;
}

// By whoever has the turn, and so the next.
void Communicator::note_equal(ConstBytes data) {
  results_ = digest_of(data, sequence(), results_);
  history_ = extend(history_, {.count = results_});
}

void Communicator::witness_result(const Request& request) {
  if (request.shares != nullptr || !has_equal_results(request.collective)) return;
  const size_t units = output_units(request.collective, membership_.nranks, false);
  note_equal({request.output, units * request.count * size_of(request.type)});
}

// With a user's operator: where it has failed on one rank, no rank returns success. With the witness, where ranks of a
// call with a root do not hear from all others: all have made the same call.
bool Communicator::meets_at_end(const Request& request) const {
  return request.user != nullptr || (config_.witness && is_rooted(request.collective));
}

// Part of the call.
Status Communicator::meet_at_end(const Envelope& of_call, const Request& request) {
  if (membership_.nranks == 1) return {};
  Request barrier;
  barrier.collective = Collective::Barrier;
  barrier.timeout_ms = request.timeout_ms;
  const Result<const BoundProgram*> bound = programs_->get(key_of(barrier));
  if (!bound) return refuse(of_call, bound.error());
  const Envelope envelope = describe(barrier, membership_.communicator, numbered(sequence(), history_), 0);
  const ProgramCall call{.envelope = envelope, .timeout_ms = request.timeout_ms};
  return finish(of_call, runner_->run(**bound, call));
}

Status Communicator::witness(Ticket ticket, ConstBytes data) {
  Turns::Ticket place = ticket.use();
  if (!wait_for_turn(place)) return leave(place);
  return in_turn(place, [&]() -> Status {
    if (is_finalized()) return refuse_finalized();
    note_equal(data);
    return {};
  });
}

}  // namespace ccom
