// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_tree.h"

#include <algorithm>

#include "base/log.h"

namespace ccom {

void ControlTree::attach(int host, std::unique_ptr<ControlLink> link, int64_t now_ns) {
  links_[host] = std::move(link);
  state_.attach(host, now_ns, outputs_);
  apply_outputs();
}

int64_t ControlTree::poll(int64_t now_ns) {
  for (auto& [host, link] : links_)
    if (link->has_news()) receive(host, *link, now_ns);
  apply_outputs();
  std::erase_if(links_, [](const auto& entry) { return entry.second->ended().has_value(); });
  if (now_ns >= state_.next_tick_ns()) state_.tick(now_ns, outputs_);
  apply_outputs();
  return links_.empty() && !state_.is_settling() ? INT64_MAX : state_.next_tick_ns();
}

void ControlTree::receive(int host, ControlLink& link, int64_t now_ns) {
  std::vector<ControlMessage> messages;
  link.receive(messages);
  for (const ControlMessage& message : messages) state_.receive(host, message, now_ns, outputs_);
  if (link.ended()) state_.lose(host, *link.ended(), now_ns, outputs_);
}

// Heartbeats wait for those of other trees; of anything else the process may end as soon as it was said.
void ControlTree::apply_outputs() {
  TreeOutputs outputs;
  outputs.swap(outputs_);
  const auto is_urgent = [](const TreeOutput& output) {
    return output.kind == TreeOutput::Kind::Send && output.message.type != MessageType::Heartbeat;
  };
  const bool flushes = std::ranges::any_of(outputs, is_urgent);
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
  if (!flushes) return;
  for (auto& [host, link] : links_) link->flush();
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
  links_.clear();
}

}  // namespace ccom
