// SPDX-License-Identifier: Apache-2.0
//
// How the ranks that are left go on: revoke, agree, shrink. They agree in shared memory (liveness/consensus.h), or
// between hosts by messages (liveness/agreement.h), whatever state the communicator is in.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "bootstrap/rendezvous_servers.h"
#include "comm/communicator.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

enum class Purpose : uint64_t { Agree = 1, Membership, Meeting, Confirmation };
// Beyond its own timeout, within which a start ends.
constexpr int64_t kAfterStartMs = 10000;
constexpr uint64_t kHasStarted = 1;

ConsensusTerms terms_of(Purpose purpose, uint64_t arguments, uint64_t flags = 0) {
  return {.call = mix(arguments ^ mix(static_cast<uint64_t>(purpose))), .flags = flags, .payload = {}};
}

uint64_t hash_of(const std::vector<Rank>& excluded, const CommConfig& config) {
  uint64_t hash = std::hash<std::string>()(config.fingerprint());
  for (const Rank rank : excluded) hash = mix(hash ^ static_cast<uint64_t>(rank));
  return hash;
}

}  // namespace

void Communicator::revoke() {
  report(error(Code::Revoked, "rank %d revoked the communicator", membership_.rank).with_peers({membership_.rank}));
}

WaitLimit Communicator::within_ms(int64_t time_ms) const { return {Deadline::after_ms(time_ms), config_.interrupted}; }

// Behind the calls before it, or at once where those are not made any more.
template <typename Fn>
Status Communicator::in_turn_or_after_failure(Ticket ticket, Fn fn) {
  Turns::Ticket place = ticket.use();
  if (is_finalized()) return leave(place);
  const bool has_turn = wait_for_turn(place);
  if (!has_turn) turns_.leave(place);
  const Lock lock(consensus_mutex_);  // without turns calls of several threads may meet here
  return has_turn ? in_turn(place, fn) : fn();
}

Result<Communicator::Agreed> Communicator::agree_on(Ticket ticket, uint64_t flags) {
  Agreed agreed;
  CCOM_TRY(in_turn_or_after_failure(std::move(ticket), [&]() -> Status {
    CCOM_TRY_ASSIGN(const Consensus found,
                    links_->monitor().agree(terms_of(Purpose::Agree, 0, flags), {}, within_ms(timeout_ms())));
    agreed = {found.flags, found.out};
    return {};
  }));
  return agreed;
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(Ticket ticket, std::vector<Rank> excluded,
                                                           const CommConfig& config) {
  std::ranges::sort(excluded);
  std::unique_ptr<Communicator> smaller;
  Status failed;
  CCOM_TRY(in_turn_or_after_failure(std::move(ticket), [&]() -> Status {
    Result<std::unique_ptr<Communicator>> made = start_survivors(excluded, config);
    if (!made) failed = std::move(made).error();
    if (made) smaller = *std::move(made);
    return {};
  }));
  if (!failed.is_ok()) return failed;
  return smaller;
}

// Three rounds of agreement: who is left, where they meet, and whether all of them have started. A rank that dies
// meanwhile is left out by another three; all ranks that live take part in the same rounds, so that either all of them
// have the new communicator or none.
Result<std::unique_ptr<Communicator>> Communicator::start_survivors(const std::vector<Rank>& excluded,
                                                                    const CommConfig& config) {
  const uint64_t arguments = hash_of(excluded, config);
  Monitor& monitor = links_->monitor();
  int64_t wait_ms = timeout_ms();
  std::vector<Rank> lost = excluded;
  for (;;) {
    CCOM_TRY_ASSIGN(const Consensus left,
                    monitor.agree(terms_of(Purpose::Membership, arguments), lost, within_ms(wait_ms)));
    wait_ms = config.init_timeout_ms + kAfterStartMs;
    lost = left.out;  // for good: who was silent and comes back is told so
    Result<std::unique_ptr<Communicator>> smaller = meet_survivors(left.in, lost, arguments, config);
    CCOM_TRY_ASSIGN(
        const Consensus confirmed,
        monitor.agree(terms_of(Purpose::Confirmation, arguments, smaller ? kHasStarted : 0), lost, within_ms(wait_ms)));
    if (confirmed.in != left.in) continue;  // the one that they have started, if any, is lost with who has died
    if (confirmed.flags == kHasStarted) return smaller;
    if (!smaller) return std::move(smaller).error();
    return error(Code::RemoteError, "another rank could not start the smaller communicator")
        .with_cure("see the error of the other ranks");
  }
}

// The first of them makes an id, which reaches the others by a round of agreement.
Result<std::unique_ptr<Communicator>> Communicator::meet_survivors(const std::vector<Rank>& ranks,
                                                                   const std::vector<Rank>& lost, uint64_t arguments,
                                                                   const CommConfig& config) {
  const Deadline deadline = Deadline::after_ms(config.init_timeout_ms);
  ConsensusTerms terms = terms_of(Purpose::Meeting, arguments);
  Status made;
  if (ranks.front() == membership_.rank) {
    Result<UniqueId::Packed> id = [&]() -> Result<UniqueId::Packed> {
      const std::string interface = machine().hosts.size() > 1 ? config.ifname : "lo";
      CCOM_TRY_ASSIGN(const UniqueId fresh, create_unique_id(interface, config.ports, deadline));
      return pack(fresh);
    }();
    static_assert(sizeof *id == sizeof terms.payload);
    if (id) std::memcpy(terms.payload.data(), id->data(), id->size());
    if (!id) made = std::move(id).error();
  }
  CCOM_TRY_ASSIGN(const Consensus met, links_->monitor().agree(terms, lost, WaitLimit(deadline, config_.interrupted)));
  CCOM_TRY(std::move(made));
  if (met.in != ranks) return error(Code::RemoteError, "%s died", name_ranks(met.out).c_str());
  UniqueId::Packed packed;
  std::memcpy(packed.data(), met.payload.data(), packed.size());
  CCOM_TRY_ASSIGN(const UniqueId id, unpack(packed));
  const auto nranks = static_cast<int>(ranks.size());
  const auto rank = static_cast<Rank>(std::ranges::find(ranks, membership_.rank) - ranks.begin());
  // Nobody waits for a server, or in an exchange, of a rank that has died. Local ranks are those of the whole here.
  const Interrupted given_up = [&] {
    const auto has_ended = [&](Rank other) { return links_->monitor().has_rank_ended(other); };
    return (config.interrupted && config.interrupted()) || std::ranges::any_of(ranks, has_ended);
  };
  return made_from(ranks, join(id, nranks, rank, config, deadline, given_up));
}

}  // namespace ccom
