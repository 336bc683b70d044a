// SPDX-License-Identifier: Apache-2.0
//
// How parts of a communicator become communicators. The ranks of a part know one another, from an allgather of colors
// or from the caller; they meet over the links of the whole, and what its start has found out is inherited.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "comm/communicator.h"
#include "setup/group_terms.h"

namespace ccom {

struct Communicator::Color {
  int32_t color = 0;
  int32_t key = 0;
  uint64_t settings = 0;  // a hash
  uint64_t nonce = 0;
};

namespace {

constexpr int kNoColor = -1;

// Number and secret of a part.
void name_part(const Membership& parent, uint64_t nonce, Membership& part) {
  const Secret number = parent.secret.derive("ccom part " + std::to_string(nonce));
  std::memcpy(&part.communicator, number.bytes().data(), sizeof part.communicator);
  part.secret = parent.secret.derive("ccom part session " + std::to_string(nonce));
}

}  // namespace

// fn: makes the part, in the turn of this call. Its errors are those of the part alone, unless this communicator has
// failed meanwhile.
template <typename Fn>
Result<std::unique_ptr<Communicator>> Communicator::make_part(Ticket ticket, Fn fn) {
  std::unique_ptr<Communicator> part;
  Status failed;
  Turns::Ticket place = ticket.use();
  if (!wait_for_turn(place)) return leave(place);
  CCOM_TRY(in_turn(place, [&]() -> Status {
    if (is_finalized()) return refuse_finalized();
    Result<std::unique_ptr<Communicator>> made = fn();
    if (made) {
      part = *std::move(made);
    } else {
      failed = std::move(made).error();
    }
    return {};
  }));
  if (!failed.is_ok()) return failed;
  return part;
}

Result<std::unique_ptr<Communicator>> Communicator::split(Ticket ticket, const SplitRequest& request) {
  return make_part(std::move(ticket), [&]() -> Result<std::unique_ptr<Communicator>> {
    const uint64_t settings = std::hash<std::string>()(request.config.fingerprint());
    CCOM_TRY_ASSIGN(const std::vector<Color> colors,
                    gather_colors({request.color, request.key, settings, random_u64()}));
    if (request.color == kNoColor) return std::unique_ptr<Communicator>();
    const auto of = [&](Rank rank) -> const Color& { return colors[static_cast<size_t>(rank)]; };
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < membership_.nranks; ++rank)
      if (of(rank).color == request.color) ranks.push_back(rank);
    std::ranges::stable_sort(ranks, {}, [&](Rank rank) { return of(rank).key; });
    for (const Rank rank : ranks) {
      if (of(rank).settings == of(ranks[0]).settings) continue;
      return error(ErrorKey::SettingsDiffer, "rank %d splits with another config than rank %d", rank, ranks[0])
          .with_peers({rank})
          .with_cure("give all ranks of a color the same config");
    }
    CCOM_TRY(check_links(ranks));
    const uint64_t nonce = of(ranks[0]).nonce;
    return start_part(std::move(ranks), nonce, request.config);
  });
}

Result<std::unique_ptr<Communicator>> Communicator::create_group(Ticket ticket, const std::vector<Rank>& ranks,
                                                                 const CommConfig& config) {
  return make_part(std::move(ticket), [&]() -> Result<std::unique_ptr<Communicator>> {
    CCOM_TRY(check_links(ranks));
    GroupRendezvous rendezvous = meet(ranks);
    const Deadline deadline = Deadline::after_ms(config.init_timeout_ms);
    CCOM_TRY_ASSIGN(const uint64_t nonce, agree_on_group(ranks, config, rendezvous, deadline));
    return start_part(ranks, nonce, config);
  });
}

// origins: of the ranks from 0 on; those behind them are new.
Result<std::unique_ptr<Communicator>> Communicator::made_from(std::vector<Rank> origins,
                                                              Result<std::unique_ptr<Communicator>> made) {
  if (made) std::ranges::copy(origins, (*made)->origins_.begin());
  return made;
}

// Equal on all of them, so that none waits for another one.
Status Communicator::check_links(const std::vector<Rank>& ranks) const {
  for (const Rank a : ranks) {
    for (const Rank b : ranks) {
      if (topology_.linked(a, b)) continue;
      return error(Code::NotSupported, "rank %d and rank %d share no link of the imposed topology %s", a, b,
                   config_.topology.c_str())
          .with_peers({a, b})
          .with_cure("form groups of ranks that are linked to one another, or start them by an id of their own");
    }
  }
  return {};
}

Result<std::vector<Communicator::Color>> Communicator::gather_colors(const Color& mine) {
  std::vector<Color> all(static_cast<size_t>(membership_.nranks));
  CCOM_TRY(run_in_turn(gathering(&mine, sizeof mine, all.data())));
  return all;
}

// Of these ranks, by sends and receives in the turn of a call.
GroupRendezvous Communicator::meet(const std::vector<Rank>& ranks) {
  const auto self = static_cast<int>(std::ranges::find(ranks, membership_.rank) - ranks.begin());
  return {self,
          static_cast<int>(ranks.size()),
          {.swap =
               [this, ranks](int to, ConstBytes sent, int from, Bytes received, Deadline deadline) {
                 return swap(ranks[static_cast<size_t>(to)], sent, ranks[static_cast<size_t>(from)], received,
                             deadline);
               },
           .has_failed = [this] { return !links_->monitor().check().is_ok(); }}};
}

Result<std::unique_ptr<Communicator>> Communicator::start_part(std::vector<Rank> ranks, uint64_t nonce,
                                                               const CommConfig& config) {
  GroupRendezvous rendezvous = meet(ranks);
  Agreement agreement;
  agreement.topology = part_of(machine(), ranks);
  agreement.plans = plans_;
  agreement.ways = known_ways_;
  Membership& part = agreement.membership;
  part.nranks = static_cast<int>(ranks.size());
  part.rank = static_cast<Rank>(std::ranges::find(ranks, membership_.rank) - ranks.begin());
  part.parents = ranks;
  name_part(membership_, nonce, part);
  return made_from(std::move(ranks),
                   start(std::move(agreement), config, this, rendezvous, Deadline::after_ms(config.init_timeout_ms)));
}

Result<UniqueId> Communicator::agree_on_id(int nranks, const std::optional<UniqueId>& mine) {
  const auto masked_here = [&](const UniqueId& id) { return masked(id, membership_.secret, "ccom grow"); };
  struct Offer {
    int32_t nranks = 0;
    int32_t has_id = 0;
    UniqueId::Packed id{};
  };
  Offer offer{nranks, mine ? 1 : 0, {}};
  if (mine) {
    CCOM_TRY_ASSIGN(offer.id, pack(masked_here(*mine)));  // links may be in clear
  }
  std::vector<Offer> all(static_cast<size_t>(membership_.nranks));
  CCOM_TRY(run_in_turn(gathering(&offer, sizeof offer, all.data())));
  std::vector<Rank> givers;
  for (Rank rank = 0; rank < membership_.nranks; ++rank) {
    const Offer& other = all[static_cast<size_t>(rank)];
    if (other.has_id != 0) givers.push_back(rank);
    if (other.nranks == all[0].nranks) continue;
    return error(ErrorKey::SettingsDiffer, "rank %d wants to grow to %d ranks, rank 0 to %d", rank, other.nranks,
                 all[0].nranks)
        .with_peers({rank});
  }
  if (givers.size() != 1)
    return error(Code::InvalidArgument, "%zu ranks give an id; one has to", givers.size())
        .with_peers({givers.begin(), givers.end()})
        .with_cure("let one rank make an id (ccomCommGetUniqueId) and give it, the others give NULL");
  CCOM_TRY_ASSIGN(const UniqueId id, unpack(all[static_cast<size_t>(givers[0])].id));
  const UniqueId meeting = masked_here(id);
  std::vector<uint64_t>& used = membership_.used_ids;
  if (std::ranges::find(used, meeting.communicator) != used.end())
    return error(Code::InvalidArgument, "rank %d gives an id by which ranks have met before", givers[0])
        .with_peers({givers[0]})
        .with_cure("make a new id for each ccomCommGrow (ccomCommGetUniqueId)");
  used.push_back(meeting.communicator);
  return meeting;
}

Result<std::unique_ptr<Communicator>> Communicator::grow(Ticket ticket, int nranks, const std::optional<UniqueId>& id,
                                                         const CommConfig& config) {
  return make_part(std::move(ticket), [&]() -> Result<std::unique_ptr<Communicator>> {
    CCOM_TRY_ASSIGN(const UniqueId meeting, agree_on_id(nranks, id));
    const Interrupted given_up = [&] {
      return (config.interrupted && config.interrupted()) || !links_->monitor().check().is_ok();
    };
    std::vector<Rank> old(static_cast<size_t>(membership_.nranks));
    std::iota(old.begin(), old.end(), 0);
    Result<std::unique_ptr<Communicator>> larger =
        join(meeting, nranks, membership_.rank, config, Deadline::after_ms(config.init_timeout_ms), given_up);
    if (!larger) CCOM_TRY(look_for_deaths(larger.error()));
    return made_from(std::move(old), std::move(larger));
  });
}

// The communicator's own error, which names who has died, says more than that a start was given up, or that the server
// of its id is gone, which is noticed sooner.
Status Communicator::look_for_deaths(const Status& of_start) const {
  constexpr std::chrono::milliseconds kNoticed(1000);
  const bool is_loss = of_start.key() == ErrorKey::ServerLost || of_start.key() == ErrorKey::ServerUnreachable;
  const Deadline patience = Deadline::after(is_loss ? kNoticed : std::chrono::milliseconds(0));
  Status known = links_->monitor().check();
  for (; known.is_ok() && !patience.passed(); known = links_->monitor().check())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return known;
}

// For whoever has the turn.
Status Communicator::swap(Rank to, ConstBytes sent, Rank from, Bytes received, Deadline deadline) {
  Request send;
  send.collective = Collective::SendReceive;
  send.type = DataType::Uint8;
  send.timeout_ms = std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count());
  Request receive = send;
  send.sends = true;
  send.peer = to;
  send.input = sent.data();
  send.count = sent.size();
  receive.peer = from;
  receive.output = received.data();
  receive.count = received.size();
  const std::array both{send, receive};
  const size_t first = send.count == 0 ? 1 : 0, end = receive.count == 0 ? 1 : 2;
  return first < end ? run_transfers(both.data() + first, end - first) : Status();
}

}  // namespace ccom
