// SPDX-License-Identifier: Apache-2.0
//
// What ranks of several hosts say to one another to agree on who is left (agreement.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"
#include "liveness/consensus.h"

namespace ccom {

// What a rank knows of another one. Absent: it lives, and has not come; Silent: it may come back; Left: in order; Dead:
// it has ended otherwise; Excluded: by the callers.
enum class PeerView : uint8_t { Fine, Absent, Silent, Left, Dead, Excluded };
// Of a rank in an outcome.
enum class RankPart : uint8_t { In, Out, Late };

// What is agreed on. A value.
struct AgreedValue {
  std::vector<RankPart> parts;  // by rank
  uint64_t flags = 0;
  std::array<uint64_t, ConsensusTerms::kWords> payload{};
  int32_t different = -1;  // the first that is In and makes another call than the first of all
  friend bool operator==(const AgreedValue&, const AgreedValue&) = default;
};

struct AgreementMessage {
  enum class Kind : uint8_t {
    Report,    // to the coordinator of the ballot: what the sender brings, knows, and has accepted
    Prepare,   // from the coordinator: report to me
    Proposal,  // from the coordinator: accept `value`
    Accepted,  // to the coordinator
    Decision,  // `value` is the outcome of the round
    Missed,    // the round is over for so long that its outcome is not known any more
    Views,     // of no round: ranks that are dead
  };
  Kind kind = Kind::Views;
  bool has_come = false, is_over = false, has_given_up = false;  // of a report, see AgreementState
  uint64_t round = 0;
  int64_t ballot = 0;
  ConsensusTerms terms{};         // of a report of a rank that has come
  int64_t accepted_ballot = -1;   // of a report: that of `value`; -1: none
  AgreedValue value{};            // of a report, proposal or decision
  std::vector<PeerView> views{};  // of a report, or Views; by rank
  friend bool operator==(const AgreementMessage&, const AgreementMessage&) = default;
};

// Two bytes a rank at most. All ranks run the same build.
std::vector<std::byte> encode_agreement(const AgreementMessage& message);
// Empty unless the bytes are exactly one well-formed message.
std::optional<AgreementMessage> decode_agreement(ConstBytes bytes);

}  // namespace ccom
