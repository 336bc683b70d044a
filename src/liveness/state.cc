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
  other.heard_ns = now_ns;
  if (failed()) out.push_back({TreeOutput::Kind::Send, host, {MessageType::Error, error_}});
  if (left_) out.push_back({TreeOutput::Kind::Send, host, {MessageType::Goodbye}});
  next_tick_ns_ = std::min(next_tick_ns_, now_ns);
}

void TreeState::receive(int host, const ControlMessage& message, int64_t now_ns, TreeOutputs& out) {
  Neighbour& other = neighbour(host);
  if (other.link != Link::Up) return;
  other.heard_ns = now_ns;
  other.suspected = other.pardoned = false;
  if (message.type == MessageType::Goodbye) other.link = Link::Gone;
  if (message.type == MessageType::Error && !failed()) spread(message.error, host, out);
  if (message.type == MessageType::StragglerReport) {
    straggler_poll_.hear(static_cast<size_t>(&other - neighbours_.data()), message.behind);
    pass_news_on(out);
  }
}

void TreeState::poll_stragglers(StragglerReport own, TreeOutputs& out) {
  straggler_poll_.set_own(std::move(own));
  pass_news_on(out);
}

void TreeState::pass_news_on(TreeOutputs& out) {
  if (failed() || left_) return;
  for (size_t i = 0; i < neighbours_.size(); ++i) {
    if (neighbours_[i].link != Link::Up) continue;
    if (auto news = straggler_poll_.news_for(i))
      out.push_back({TreeOutput::Kind::Send, neighbours_[i].host, {MessageType::StragglerReport, {}, *std::move(news)}});
  }
}

void TreeState::lose(int host, std::string_view reason, TreeOutputs& out) {
  Neighbour& other = neighbour(host);
  if (other.link != Link::Up) return;
  other.link = Link::Gone;
  if (!failed() && !left_) spread(died(host, reason), host, out);
}

void TreeState::fail(const Status& error, TreeOutputs& out) {
  if (failed() || left_) return;
  error_ = error;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up) out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Error, error}});
}

// The others are told before our own ranks, who may react by exiting at once.
void TreeState::spread(const Status& error, int except, TreeOutputs& out) {
  error_ = error;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up && other.host != except)
      out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Error, error}});
  out.push_back({TreeOutput::Kind::Report, config_.self, {MessageType::Error, error}});
}

void TreeState::leave(TreeOutputs& out) {
  if (left_) return;
  left_ = true;
  for (const Neighbour& other : neighbours_)
    if (other.link == Link::Up) out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Goodbye}});
}

void TreeState::tick(int64_t now_ns, TreeOutputs& out) {
  if (now_ns >= next_beat_ns_) {
    next_beat_ns_ = now_ns + config_.dead_ns / 12;
    for (const Neighbour& other : neighbours_)
      if (other.link == Link::Up && !failed() && !left_)
        out.push_back({TreeOutput::Kind::Send, other.host, {MessageType::Heartbeat}});
  }
  // A host that has itself stood still (stopped, paused with its machine) cannot tell who was silent: each neighbour
  // gets half the time again, once, to be heard.
  const bool stood_still = last_tick_ns_ >= 0 && now_ns - last_tick_ns_ > config_.dead_ns / 4;
  last_tick_ns_ = now_ns;
  for (Neighbour& other : neighbours_) {
    if (stood_still && !other.pardoned && now_ns - other.heard_ns > config_.dead_ns / 2) {
      other.heard_ns = now_ns - config_.dead_ns / 2;
      other.pardoned = true;
    }
    judge(other, now_ns, out);
  }
  plan_next_tick();
}

void TreeState::judge(Neighbour& other, int64_t now_ns, TreeOutputs& out) {
  if (other.link != Link::Up || failed() || left_) return;
  const int64_t silence_ns = now_ns - other.heard_ns;
  if (silence_ns >= config_.dead_ns) {
    // Told as well, in case it wakes up: it is out.
    spread(fell_silent(other.host, silence_ns), -1, out);
  } else if (silence_ns >= config_.dead_ns / 6 && !other.suspected) {
    other.suspected = true;
    out.push_back({TreeOutput::Kind::Suspect, other.host, {MessageType::Error, fell_silent(other.host, silence_ns)}});
  }
}

void TreeState::plan_next_tick() {
  next_tick_ns_ = next_beat_ns_;
  if (failed() || left_) return;
  for (const Neighbour& other : neighbours_) {
    if (other.link != Link::Up) continue;
    const int64_t patience_ns = other.suspected ? config_.dead_ns : config_.dead_ns / 6;
    next_tick_ns_ = std::min(next_tick_ns_, other.heard_ns + patience_ns);
  }
}

Status TreeState::died(int host, std::string_view reason) const {
  const TreeHost& other = config_.hosts[static_cast<size_t>(host)];
  return error(Code::RemoteError, "rank %d on host %s died: its control connection to rank %d on host %s ended (%.*s)",
               other.member, other.name.c_str(), config_.hosts[static_cast<size_t>(config_.self)].member,
               config_.hosts[static_cast<size_t>(config_.self)].name.c_str(), static_cast<int>(reason.size()),
               reason.data())
      .with_peers({other.member})
      .with_host(other.name)
      .with_cure(
          "look at that rank's output and at the kernel log of its host; restart the job, or shrink the "
          "communicator to the survivors");
}

Status TreeState::fell_silent(int host, int64_t silence_ns) const {
  const TreeHost& other = config_.hosts[static_cast<size_t>(host)];
  return error(Code::RemoteError, "host %s with %s has been silent for %.1f s: it has stopped, or its network is down",
               other.name.c_str(), name_ranks(other.ranks).c_str(), static_cast<double>(silence_ns) * 1e-9)
      .with_peers({other.ranks.begin(), other.ranks.end()})
      .with_host(other.name)
      .with_cure("see whether the host answers; a longer CCOM_DEAD_MS forgives longer pauses");
}

}  // namespace ccom
