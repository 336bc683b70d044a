// SPDX-License-Identifier: Apache-2.0
#include "liveness/state.h"

#include <algorithm>

namespace ccom {

std::vector<int> tree_neighbours(int host, int hosts) {
  std::vector<int> neighbours;
  if (host > 0) neighbours.push_back(tree_parent(host));
  for (int child = kTreeDegree * host + 1; child <= kTreeDegree * host + kTreeDegree && child < hosts; ++child)
    neighbours.push_back(child);
  return neighbours;
}

int tree_member_index(int host, int tree) {
  bool is_even = true;
  for (; host > 0; host = tree_parent(host)) is_even = !is_even;
  return is_even ? tree % kTreeMembers : tree / kTreeMembers;
}

TreeState::TreeState(TreeConfig config)
    : config_(std::move(config)),
      straggler_poll_(tree_neighbours(config_.self, static_cast<int>(config_.hosts.size())).size()) {
  CCOM_ASSERT(config_.dead_ns > 0);
  for (int host : tree_neighbours(config_.self, static_cast<int>(config_.hosts.size())))
    neighbours_.push_back(Neighbour{.host = host});
}

TreeState::Neighbour& TreeState::neighbour(int host) {
  const auto found = std::ranges::find(neighbours_, host, &Neighbour::host);
  CCOM_ASSERT(found != neighbours_.end());
  return *found;
}

void TreeState::attach(int host, int64_t now_ns, TreeOutputs& out) {
  Neighbour& other = neighbour(host);
  CCOM_ASSERT(other.link == Link::Absent);
  other.link = Link::Up;
  other.last_heard_ns = now_ns;
  if (last_tick_ns_ < 0) last_tick_ns_ = now_ns;  // a suspension before the first tick is one, too
  if (failed()) out.push_back({TreeOutput::Kind::Send, host, {MessageType::Error, error_}});
  if (is_settling())
    for (const Status& loss : losses_.all()) out.push_back({TreeOutput::Kind::Send, host, {MessageType::Loss, loss}});
  if (departure_) out.push_back({TreeOutput::Kind::Send, host, {MessageType::Departure, {}, {}, *departure_}});
  if (left_) out.push_back({TreeOutput::Kind::Send, host, {.type = MessageType::Goodbye, .rounds = rounds_}});
  next_tick_ns_ = std::min(next_tick_ns_, now_ns);
}

void TreeState::receive(int host, const ControlMessage& message, int64_t now_ns, TreeOutputs& out) {
  Neighbour& other = neighbour(host);
  if (other.link != Link::Up) return;
  other.last_heard_ns = now_ns;
  other.suspected = other.grace_given = false;
  if (message.type == MessageType::Goodbye) {
    other.link = Link::Gone;
    straggler_poll_.receive(static_cast<size_t>(&other - neighbours_.data()), {});
    out.push_back({TreeOutput::Kind::Leave, host, message});
  }
  if (message.type == MessageType::Error) {
    other.has_error = true;
    if (!failed()) out.push_back({TreeOutput::Kind::Report, host, {MessageType::Error, message.error}});
  }
  if (message.type == MessageType::Loss) {
    out.push_back({TreeOutput::Kind::Send, host, {MessageType::Heartbeat}});  // for reaches_all_hosts()
    add_loss(message.error, host, now_ns, out);
  }
  if (is_settling()) next_tick_ns_ = std::min(next_tick_ns_, settled_at_ns());
  if (message.type == MessageType::Departure) {
    tell_departure(message.departure, host, out);
    out.push_back({TreeOutput::Kind::Depart, config_.self, message});
  }
  if (message.type == MessageType::StragglerReport) {
    straggler_poll_.receive(static_cast<size_t>(&other - neighbours_.data()), message.stragglers);
    send_straggler_updates(false, out);
  }
}

void TreeState::poll_stragglers(StragglerReport own, bool tells_activities, TreeOutputs& out) {
  straggler_poll_.set_own(std::move(own));
  send_straggler_updates(tells_activities, out);
}

void TreeState::send_straggler_updates(bool tells_activities, TreeOutputs& out) {
  if (failed() || left_) return;
  for (size_t i = 0; i < neighbours_.size(); ++i) {
    if (neighbours_[i].link != Link::Up) continue;
    if (auto update = straggler_poll_.update_for(i, tells_activities))
      out.push_back(
          {TreeOutput::Kind::Send, neighbours_[i].host, {MessageType::StragglerReport, {}, *std::move(update)}});
  }
}

void TreeState::lose(int host, std::string_view reason, int64_t now_ns, TreeOutputs& out) {
  Neighbour& other = neighbour(host);
  if (other.link != Link::Up) return;
  other.link = Link::Gone;
  add_loss(death_error(host, reason), host, now_ns, out);
}

void TreeState::add_loss(const Status& loss, int except, int64_t now_ns, TreeOutputs& out) {
  if (failed() || left_ || !losses_.add(loss, now_ns)) return;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up && other.host != except)
      out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Loss, loss}});
  out.push_back({TreeOutput::Kind::Lose, config_.self, {MessageType::Loss, loss}});
  settle(now_ns, out);
  next_tick_ns_ = std::min(next_tick_ns_, settled_at_ns());
}

// Whether all neighbours have answered since they were told: a dead one's connection may end late. Beyond a lost one
// there may be others, but not beyond the only rank of a host without children.
bool TreeState::reaches_all_hosts() const {
  const auto hosts = static_cast<int>(config_.hosts.size());
  return std::ranges::all_of(neighbours_, [&](const Neighbour& other) {
    const bool is_leaf = kTreeDegree * other.host + 1 >= hosts;
    const bool has_one_rank = config_.hosts[static_cast<size_t>(other.host)].ranks.size() == 1;
    const bool has_answered = other.link == Link::Up && other.last_heard_ns >= losses_.first_ns();
    return has_answered || (other.link == Link::Gone && is_leaf && has_one_rank);
  });
}

// In all trees.
bool TreeState::has_lost_its_parent() const {
  const std::vector<Rank>& ranks = config_.hosts[static_cast<size_t>(tree_parent(config_.self))].ranks;
  const auto end = ranks.begin() + std::min<std::ptrdiff_t>(std::ssize(ranks), kTreeMembers);
  return std::all_of(ranks.begin(), end, [this](Rank rank) { return losses_.names(rank); });
}

int64_t TreeState::settled_at_ns() const {
  if (config_.self == 0) return losses_.first_ns() + (reaches_all_hosts() ? 1 : 3) * config_.settle_ns;
  return losses_.first_ns() + (has_lost_its_parent() ? 3 * config_.settle_ns : config_.decision_ns);
}

void TreeState::settle(int64_t now_ns, TreeOutputs& out) {
  if (is_settling() && now_ns >= settled_at_ns())
    out.push_back({TreeOutput::Kind::Report, config_.self, {MessageType::Error, losses_.error()}});
}

void TreeState::depart(const Departure& departure, TreeOutputs& out) { tell_departure(departure, -1, out); }

// To all neighbours but one, if it is the first of those known.
void TreeState::tell_departure(const Departure& departure, int except, TreeOutputs& out) {
  if (failed() || left_ || (departure_ && *departure_ <= departure)) return;
  departure_ = departure;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up && other.host != except)
      out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Departure, {}, {}, departure}});
}

void TreeState::fail(const Status& error, TreeOutputs& out) {
  if (failed() || left_) return;
  error_ = error;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up && !other.has_error)
      out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Error, error}});
}

void TreeState::leave(uint64_t rounds, TreeOutputs& out) {
  if (left_) return;
  left_ = true;
  rounds_ = rounds;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up)
      out.push_back({TreeOutput::Kind::Send, other.host, {.type = MessageType::Goodbye, .rounds = rounds}});
}

void TreeState::tick(int64_t now_ns, TreeOutputs& out) {
  if (now_ns >= next_beat_ns_) {
    next_beat_ns_ = next_beat_ns(now_ns, config_.dead_ns / 12, config_.beat_phase_ns);
    for (const Neighbour& other : neighbours_)
      if (other.link == Link::Up && !failed() && !left_)
        out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Heartbeat}});
  }
  // A host that was itself suspended cannot tell who was silent: each neighbour gets another half of the timeout, once.
  const bool was_suspended = now_ns - last_tick_ns_ > config_.dead_ns / 4;
  last_tick_ns_ = now_ns;
  for (Neighbour& other : neighbours_) {
    if (was_suspended && !other.grace_given && now_ns - other.last_heard_ns > config_.dead_ns / 2) {
      other.last_heard_ns = now_ns - config_.dead_ns / 2;
      other.grace_given = true;
    }
    check_silence(other, now_ns, out);
  }
  settle(now_ns, out);
  schedule_next_tick();
}

void TreeState::check_silence(Neighbour& other, int64_t now_ns, TreeOutputs& out) {
  if (other.link != Link::Up || failed() || left_) return;
  const int64_t silence_ns = now_ns - other.last_heard_ns;
  if (silence_ns >= config_.dead_ns) {
    // The silent host is notified as well, in case it resumes: it is out of the communicator.
    add_loss(silence_error(other.host, silence_ns), -1, now_ns, out);
  } else if (silence_ns >= config_.dead_ns / 6 && !other.suspected) {
    other.suspected = true;
    out.push_back({TreeOutput::Kind::Suspect, other.host, {MessageType::Error, silence_error(other.host, silence_ns)}});
  }
}

void TreeState::schedule_next_tick() {
  next_tick_ns_ = next_beat_ns_;
  if (failed() || left_) return;
  if (is_settling()) next_tick_ns_ = std::min(next_tick_ns_, settled_at_ns());
  for (const Neighbour& other : neighbours_) {
    if (other.link != Link::Up || !losses_.empty()) continue;
    const int64_t timeout_ns = other.suspected ? config_.dead_ns : config_.dead_ns / 6;
    next_tick_ns_ = std::min(next_tick_ns_, other.last_heard_ns + timeout_ns);
  }
}

Status TreeState::death_error(int host, std::string_view reason) const {
  const TreeHost& other = config_.hosts[static_cast<size_t>(host)];
  return error(ErrorKey::RankDied, "rank %d on host %s died: its control connection to rank %d on host %s ended (%.*s)",
               other.member, other.name.c_str(), config_.hosts[static_cast<size_t>(config_.self)].member,
               config_.hosts[static_cast<size_t>(config_.self)].name.c_str(), static_cast<int>(reason.size()),
               reason.data())
      .with_peers({other.member})
      .with_host(other.name)
      .with_cure(
          "check that rank's output and the kernel log of its host; restart the job, or shrink the "
          "communicator to the survivors");
}

Status TreeState::silence_error(int host, int64_t silence_ns) const {
  const TreeHost& other = config_.hosts[static_cast<size_t>(host)];
  return error(ErrorKey::RankSilent, "host %s with %s has been silent for %.1f s: it is stopped or unreachable",
               other.name.c_str(), name_ranks(other.ranks).c_str(), static_cast<double>(silence_ns) * 1e-9)
      .with_peers({other.ranks.begin(), other.ranks.end()})
      .with_host(other.name)
      .with_cure("check that the host is up and reachable; a larger CCOM_DEAD_MS tolerates longer pauses");
}

}  // namespace ccom
