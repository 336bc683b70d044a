// SPDX-License-Identifier: Apache-2.0
#include "liveness/agreement_links.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/tcp_socket.h"
#include "base/time.h"
#include "liveness/monitor_config.h"

namespace ccom {
namespace {

// In the place of a control tree's number.
constexpr uint8_t kStream = 255;
constexpr int64_t kProbeNs = 250 * kNsPerMs;
constexpr int64_t kAttemptSliceNs = kNsPerMs;  // between looks at connections that are being made
// A rank that lives hears of a failure within milliseconds, and listens then.
constexpr int64_t kRefusedNs = 250 * kNsPerMs;

}  // namespace

AgreementLinks::AgreementLinks(const MonitorConfig& config, Board board, AgreementPort& port, LivenessThread& thread,
                               LivenessTask& task)
    : config_(config),
      local_ranks_(config.hosts[static_cast<size_t>(config.host_index)].ranks),
      board_(board),
      port_(port),
      thread_(thread),
      task_(task),
      dead_ns_((config.dead_ms + config.dead_ms / 4) * kNsPerMs),
      agreement_(config.rank, count_ranks(config)),
      ended_(static_cast<size_t>(count_ranks(config))) {}

AgreementLinks::~AgreementLinks() {
  if (is_open_ && !thread_.in_forked_child()) port_.close(config_.communicator);
}

// Tried again with the next call.
void AgreementLinks::open() {
  const Status opened = port_.open(
      config_.communicator,
      [this](Rank member, std::shared_ptr<ControlConnection> connection) { arrive(member, std::move(connection)); });
  is_open_ = opened.is_ok();
  if (is_open_ || std::exchange(has_complained_, true)) return;
  log(LogLevel::Error, "connections for agreement: %s", opened.message().c_str());
}

// The error names whom its finder has lost; the kernel tells of deaths on this host.
void AgreementLinks::look_at_board(int64_t now_ns) {
  for (size_t i = 0; i < local_ranks_.size(); ++i) {
    const auto slot = static_cast<int>(i);
    if (board_.has_died(slot)) agreement_.see(local_ranks_[i], PeerView::Dead, outputs_);
    if (board_.has_left(slot)) see_left(local_ranks_[i], board_.slot(slot).rounds.load(std::memory_order_acquire));
  }
  if (failed_ns_ != 0 || board_.abort_word() == 0) return;
  failed_ns_ = now_ns;
  const Status error = board_.error();
  const bool has_died = error.key() == ErrorKey::RankDied;
  if (!has_died && error.key() != ErrorKey::RankSilent && error.key() != ErrorKey::RankUnreachable) return;
  for (const Rank rank : error.peers())
    if (rank >= 0 && rank < std::ssize(ended_))
      agreement_.see(rank, has_died ? PeerView::Dead : PeerView::Silent, outputs_);
}

// A connection tells that itself, after the last that the rank had to say.
void AgreementLinks::see_left(Rank rank, uint64_t rounds) {
  if (std::ranges::find(links_, rank, &Link::rank) == links_.end()) agreement_.see_left(rank, rounds, outputs_);
}

int64_t AgreementLinks::poll(int64_t now_ns) {
  if (addresses_.empty() || (!is_open() && board_.abort_word() == 0)) return INT64_MAX;
  look_at_board(now_ns);
  if (!is_open()) open();
  if (!is_open()) return now_ns + kProbeNs;
  connect(now_ns);
  for (size_t i = 0; i < links_.size(); ++i)
    if (links_[i].link->has_news()) receive(links_[i], now_ns);
  drop_ended();
  beat(now_ns);
  apply();
  int64_t next_ns = std::min(next_beat_ns_, !attempts_.empty() ? now_ns + kAttemptSliceNs : INT64_MAX);
  if (agreement_.is_undecided()) next_ns = std::min(next_ns, next_probe_ns_);
  return next_ns;
}

void AgreementLinks::arrive(Rank member, std::shared_ptr<ControlConnection> connection) {
  const auto known = std::ranges::find(config_.members, member);
  if (known == config_.members.end()) return;
  attach(static_cast<Rank>(known - config_.members.begin()), std::move(connection), monotonic_ns());
  thread_.enqueue(&task_);
}

void AgreementLinks::attach(Rank rank, std::shared_ptr<ControlConnection> connection, int64_t now_ns) {
  enable_keepalive(connection->fd(), std::chrono::milliseconds(2 * config_.dead_ms));
  auto link = std::make_unique<ControlLink>(connection, StreamId{config_.communicator, kStream}, &task_);
  if (const Status run = connection->run_on(thread_); !run.is_ok()) {
    log(LogLevel::Error, "%s", run.message().c_str());
    return;
  }
  attempts_.erase(rank);
  link->send({MessageType::Heartbeat});
  links_.push_back({rank, std::move(link), now_ns});
  agreement_.see(rank, PeerView::Fine, outputs_);
  agreement_.attach(rank, outputs_);
}

void AgreementLinks::receive(Link& link, int64_t now_ns) {
  std::vector<ControlMessage> messages;
  link.link->receive(messages);
  if (!messages.empty()) {
    link.has_spoken = true;
    link.heard_ns = now_ns;
    agreement_.see(link.rank, PeerView::Fine, outputs_);
  }
  for (const ControlMessage& message : messages) {
    if (message.type == MessageType::Goodbye) agreement_.see_left(link.rank, message.rounds, outputs_);
    if (message.type == MessageType::Agreement) agreement_.receive(link.rank, message.agreement, outputs_);
  }
  if (!link.link->ended() || !link.has_spoken) return;
  agreement_.see(link.rank, link.link->is_closed_by_peer() ? PeerView::Dead : PeerView::Silent, outputs_);
}

void AgreementLinks::drop_ended() {
  std::vector<Rank> cut;
  std::erase_if(links_, [&](const Link& link) {
    if (!link.link->ended()) return false;
    cut.push_back(link.rank);
    return true;
  });
  for (const Rank rank : cut)
    if (std::ranges::find(links_, rank, &Link::rank) != links_.end()) agreement_.attach(rank, outputs_);
}

// Who is needed for a round, and is not connected.
void AgreementLinks::connect(int64_t now_ns) {
  if (!agreement_.is_undecided()) attempts_.clear();
  std::vector<Rank> given_up;
  std::vector<std::pair<Rank, std::shared_ptr<ControlConnection>>> connected;
  for (auto& [rank, attempt] : attempts_) {
    if (std::shared_ptr<ControlConnection> connection = attempt.connector.step(port_.identity())) {
      connected.emplace_back(rank, std::move(connection));
      continue;
    }
    const std::optional<PeerView> view = verdict(rank, attempt, now_ns);
    if (view) agreement_.see(rank, *view, outputs_);
    if (view == PeerView::Dead) given_up.push_back(rank);
  }
  for (const Rank rank : given_up) attempts_.erase(rank);
  for (auto& [rank, connection] : connected) attach(rank, std::move(connection), now_ns);
}

// Whether a rank of its host is here, or connected: the kernel tells that one of its end.
bool AgreementLinks::is_watched(Rank rank) const {
  const auto host = std::ranges::find_if(
      config_.hosts, [rank](const HostMembers& each) { return std::ranges::binary_search(each.ranks, rank); });
  const auto is_on_host = [&](Rank other) { return std::ranges::binary_search(host->ranks, other); };
  return is_on_host(config_.rank) || std::ranges::any_of(links_, is_on_host, &Link::rank);
}

std::optional<PeerView> AgreementLinks::verdict(Rank rank, Attempt& attempt, int64_t now_ns) const {
  if (attempt.connector.refusals() == 0) {
    attempt.refused_since_ns = 0;
    return now_ns - attempt.since_ns > dead_ns_ ? std::optional(PeerView::Silent) : std::nullopt;
  }
  if (attempt.refused_since_ns == 0) attempt.refused_since_ns = now_ns;
  attempt.since_ns = now_ns;  // its host answers
  const int64_t refused_ns = now_ns - std::max(failed_ns_, attempt.refused_since_ns);
  if (refused_ns < kRefusedNs) return std::nullopt;
  if (failed_ns_ == 0) return PeerView::Absent;
  if (!is_watched(rank)) return PeerView::Dead;
  return refused_ns > dead_ns_ ? std::optional(PeerView::Silent) : std::nullopt;
}

void AgreementLinks::beat(int64_t now_ns) {
  if (now_ns >= next_beat_ns_) {
    next_beat_ns_ = now_ns + config_.dead_ms * kNsPerMs / 12;
    for (const Link& link : links_) {
      link.link->send({MessageType::Heartbeat});
      if (now_ns - link.heard_ns > dead_ns_) agreement_.see(link.rank, PeerView::Silent, outputs_);
    }
  }
  if (!agreement_.is_undecided() || now_ns < next_probe_ns_) return;
  next_probe_ns_ = now_ns + kProbeNs;
  agreement_.probe(outputs_);
}

// Messages to ranks that are not connected are not kept: attach() repeats what still counts.
void AgreementLinks::apply() {
  while (!outputs_.empty()) {
    AgreementState::Outputs outputs;
    outputs.swap(outputs_);
    for (const auto& [to, message] : outputs) {
      if (to != AgreementState::kAll) send(to, message);
      for (const Link& link : links_)
        if (to == AgreementState::kAll) link.link->send({MessageType::Agreement, {}, {}, {}, message});
    }
  }
  for (size_t rank = 0; rank < ended_.size(); ++rank)
    ended_[rank].store(agreement_.view(static_cast<Rank>(rank)) >= PeerView::Left, std::memory_order_release);
  std::optional<ConsensusOutcome> outcome = agreement_.outcome();
  const Lock lock(mutex_);
  outcome_ = std::move(outcome);
  if (outcome_) changed_.notify_all();
}

void AgreementLinks::send(Rank rank, const AgreementMessage& message) {
  const auto link = std::ranges::find(links_, rank, &Link::rank);
  if (link != links_.end()) {
    link->link->send({MessageType::Agreement, {}, {}, {}, message});
  } else if (agreement_.view(rank) < PeerView::Left) {
    const auto place = static_cast<size_t>(rank);
    attempts_.try_emplace(
        rank,
        Attempt{ControlConnector(config_.members[place], config_.communicator, addresses_[place]), monotonic_ns(), 0});
  }
}

void AgreementLinks::begin(uint64_t round, const ConsensusTerms& terms, const std::vector<Rank>& excluded) {
  if (!is_open()) open();
  {
    const Lock lock(mutex_);
    outcome_.reset();
  }
  next_probe_ns_ = monotonic_ns() + kProbeNs;
  agreement_.begin(round, terms, excluded, outputs_);
  apply();
  thread_.enqueue(&task_);
}

void AgreementLinks::end_wait() {
  agreement_.end_wait(outputs_);
  agreement_.probe(outputs_);
  apply();
  thread_.enqueue(&task_);
}

void AgreementLinks::give_up() {
  agreement_.give_up(outputs_);
  apply();
  thread_.enqueue(&task_);
}

void AgreementLinks::leave(uint64_t rounds) {
  for (const Link& link : links_) {
    link.link->send({.type = MessageType::Goodbye, .rounds = rounds});
    link.link->flush();
  }
  links_.clear();
  attempts_.clear();
}

std::optional<ConsensusOutcome> AgreementLinks::wait_for_outcome(std::chrono::microseconds longest) {
  Lock lock(mutex_);
  lock.wait_for(changed_, longest, [this]() CCOM_REQUIRES(mutex_) { return outcome_.has_value(); });
  return outcome_;
}

}  // namespace ccom
