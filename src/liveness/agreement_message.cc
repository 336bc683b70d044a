// SPDX-License-Identifier: Apache-2.0
#include "liveness/agreement_message.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace ccom {
namespace {

// What does not depend on the number of ranks; native byte order.
struct Fixed {
  uint64_t round;
  int64_t ballot, accepted_ballot;
  ConsensusTerms terms;
  uint64_t flags;
  std::array<uint64_t, ConsensusTerms::kWords> payload;
  int32_t different;
  uint32_t parts, views;  // how many follow, a byte each
  AgreementMessage::Kind kind;
  uint8_t has_come, is_over, has_given_up;
};
static_assert(std::has_unique_object_representations_v<Fixed>);

bool is_well_formed(const Fixed& fixed) {
  return fixed.kind <= AgreementMessage::Kind::Views && fixed.has_come <= 1 && fixed.is_over <= 1 &&
         fixed.has_given_up <= 1 && fixed.ballot >= 0 && fixed.accepted_ballot >= -1;
}

// Consumes `count` bytes of `rest`. False if one is above `last`.
template <typename T>
bool take(ConstBytes& rest, size_t count, T last, std::vector<T>& taken) {
  for (const std::byte one : rest.first(count)) taken.push_back(static_cast<T>(one));
  rest = rest.subspan(count);
  return std::ranges::all_of(taken, [last](T one) { return one <= last; });
}

}  // namespace

std::vector<std::byte> encode_agreement(const AgreementMessage& message) {
  const AgreedValue& value = message.value;
  const Fixed fixed{.round = message.round,
                    .ballot = message.ballot,
                    .accepted_ballot = message.accepted_ballot,
                    .terms = message.terms,
                    .flags = value.flags,
                    .payload = value.payload,
                    .different = value.different,
                    .parts = static_cast<uint32_t>(value.parts.size()),
                    .views = static_cast<uint32_t>(message.views.size()),
                    .kind = message.kind,
                    .has_come = message.has_come,
                    .is_over = message.is_over,
                    .has_given_up = message.has_given_up};
  std::vector<std::byte> bytes;
  for (const ConstBytes part : {std::as_bytes(std::span(&fixed, 1)), std::as_bytes(std::span(value.parts)),
                                std::as_bytes(std::span(message.views))})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

std::optional<AgreementMessage> decode_agreement(ConstBytes bytes) {
  Fixed fixed;
  if (bytes.size() < sizeof fixed) return std::nullopt;
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  ConstBytes rest = bytes.subspan(sizeof fixed);
  if (!is_well_formed(fixed) || rest.size() != size_t{fixed.parts} + fixed.views) return std::nullopt;
  AgreementMessage message{.kind = fixed.kind,
                           .has_come = fixed.has_come != 0,
                           .is_over = fixed.is_over != 0,
                           .has_given_up = fixed.has_given_up != 0,
                           .round = fixed.round,
                           .ballot = fixed.ballot,
                           .terms = fixed.terms,
                           .accepted_ballot = fixed.accepted_ballot,
                           .value = {{}, fixed.flags, fixed.payload, fixed.different},
                           .views = {}};
  if (!take(rest, fixed.parts, RankPart::Late, message.value.parts) ||
      !take(rest, fixed.views, PeerView::Excluded, message.views))
    return std::nullopt;
  return message;
}

}  // namespace ccom
