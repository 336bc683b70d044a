// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_link.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ccom {

ControlLink::ControlLink(std::shared_ptr<ControlConnection> connection, const StreamId& id, LivenessTask* reader)
    : connection_(std::move(connection)), id_(id), reader_(reader) {
  connection_->open(id_, this);
}

ControlLink::~ControlLink() { connection_->close(id_, !end_ && !has_said_goodbye_); }

void ControlLink::send(const ControlMessage& message) {
  if (end_ || has_said_goodbye_ || (message.type == MessageType::Heartbeat && connection_->is_blocked())) return;
  connection_->append(id_, message);
  has_said_goodbye_ = message.type == MessageType::Goodbye;
}

bool ControlLink::has_news() const { return !received_.empty() || (end_ && !ended_); }

void ControlLink::receive(std::vector<ControlMessage>& messages) {
  std::ranges::move(received_, std::back_inserter(messages));
  received_.clear();
  ended_ = end_;
}

// A goodbye is the last that a peer says. A heartbeat adds nothing to another one.
void ControlLink::accept(ControlMessage message) {
  if (end_) return;
  if (message.type == MessageType::End) return end("closed by the peer", true);
  const bool is_beat = message.type == MessageType::Heartbeat;
  if (is_beat && !received_.empty() && received_.back().type == MessageType::Heartbeat) return;
  if (received_.size() == kMostWaiting) return end("sent more than this end keeps", false);
  const bool is_goodbye = message.type == MessageType::Goodbye;
  received_.push_back(std::move(message));
  if (is_goodbye) end("closed by the peer", true);
  tell_reader();
}

void ControlLink::end(const std::string& reason, bool by_peer) {
  if (end_) return;
  end_ = reason;
  is_closed_by_peer_ = by_peer;
  tell_reader();
}

void ControlLink::tell_reader() const {
  if (reader_ != nullptr && connection_->thread_ != nullptr) connection_->thread_->enqueue(reader_);
}

}  // namespace ccom
