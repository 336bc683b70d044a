// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_tree.h"

#include <algorithm>

#include "base/log.h"

namespace ccom {

void ControlTree::attach(int host, std::unique_ptr<ControlLink> link, int64_t now_ns) {
  ControlLink& added = *link;
  links_[host] = std::move(link);
  state_.attach(host, now_ns, outputs_);
  added.readable.has_news = &has_news_;
  if (const Status watched = thread_.watch(added.fd(), &added.readable); !watched.is_ok()) {
    log(LogLevel::Error, "%s", watched.message().c_str());
    state_.lose(host, watched.message(), now_ns, outputs_);
  }
  added.readable.set();
  apply_outputs();
}

int64_t ControlTree::poll(int64_t now_ns) {
  for (auto& [host, link] : links_)
    if (link->readable.now) receive(host, *link, now_ns);
  apply_outputs();
  drop_ended();
  if (now_ns >= state_.next_tick_ns()) state_.tick(now_ns, outputs_);
  apply_outputs();
  bool unsent = false;
  for (auto& [host, link] : links_) {
    link->flush();
    unsent = unsent || link->has_unsent();
  }
  if (links_.empty() && !state_.is_settling()) return INT64_MAX;
  return unsent ? std::min(state_.next_tick_ns(), now_ns + 5'000'000) : state_.next_tick_ns();
}

void ControlTree::receive(int host, ControlLink& link, int64_t now_ns) {
  std::vector<ControlMessage> messages;
  link.receive(messages);
  for (const ControlMessage& message : messages) state_.receive(host, message, now_ns, outputs_);
  if (link.ended()) state_.lose(host, *link.ended(), now_ns, outputs_);
}

void ControlTree::drop_ended() {
  std::erase_if(links_, [this](const auto& entry) {
    if (!entry.second->ended()) return false;
    thread_.unwatch(entry.second->fd());
    return true;
  });
}

void ControlTree::apply_outputs() {
  TreeOutputs outputs;
  outputs.swap(outputs_);
  for (const TreeOutput& output : outputs) {
    switch (output.kind) {
      case TreeOutput::Kind::Send:
        if (const auto link = links_.find(output.host); link != links_.end()) link->second->send(output.message);
        break;
      case TreeOutput::Kind::Report:
        (state_.is_self(output.host) ? hooks_.found : hooks_.report)(output.message.error);
        break;
      case TreeOutput::Kind::Depart: hooks_.departed(output.message.departure); break;
      case TreeOutput::Kind::Lose: hooks_.lost(output.message.error); break;
      case TreeOutput::Kind::Leave: hooks_.left(state_.member_of(output.host), output.message.rounds); break;
      case TreeOutput::Kind::Suspect: log(LogLevel::Warn, "%s", output.message.error.message().c_str()); break;
    }
  }
}

void ControlTree::fail(const Status& error) {
  state_.fail(error, outputs_);
  apply_outputs();
}

void ControlTree::find_lost(const Status& loss, int64_t now_ns) {
  state_.find_lost(loss, now_ns, outputs_);
  apply_outputs();
}

void ControlTree::depart(const Departure& departure) {
  state_.depart(departure, outputs_);
  apply_outputs();
}

void ControlTree::poll_stragglers(StragglerReport own, bool tells_activities) {
  state_.poll_stragglers(std::move(own), tells_activities, outputs_);
  apply_outputs();
}

void ControlTree::leave(uint64_t rounds) {
  state_.leave(rounds, outputs_);
  apply_outputs();
  for (auto& [host, link] : links_) {
    link->finish();
    thread_.unwatch(link->fd());
  }
  links_.clear();
}

}  // namespace ccom
