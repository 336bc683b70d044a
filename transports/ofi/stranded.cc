// SPDX-License-Identifier: Apache-2.0
//
// A write has failed because its rail, or the peer, does not answer any more. If the peer has another rail, the write
// is made again there. Whether the first attempt has arrived all the same the provider cannot tell, and a second one
// must not land where the first has been consumed and something else lies by now. So the peer is asked over the message
// endpoint, once no packet of the first can be under way any more (OfiConfig::flight_time). It answers after it has
// looked at what has arrived: if the fragment is still awaited, its place is still its own, and stays so.
//
// If the question cannot be sent, the peer is dead; likewise if no rail is left. Writes that fail for another reason
// (memory, the device) are errors at once. A peer that has received everything and makes no progress answers in its
// next call, and one that leaves has answered.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {

// Whether it is done for now; its operation stays busy.
bool OfiTransport::strand(WriteOperation& operation, const Completion& completion) {
  Link& link = *operation.link;
  if (!blames_peer(completion.error) || board_.stopped || link.is_dead || link.goodbye_count) return false;
  if (!lose_rail(link, operation.rail)) return false;
  link.stranded.push_back({&operation, Clock::now() + config_.flight_time, completion.reason});
  ++stranded_;
  return true;
}

bool OfiTransport::lose_rail(Link& link, size_t rail) {
  link.rails.resize(link.rail_addresses.size());
  if (link.rails[rail] == Link::Rail::InUse) {
    if (std::ranges::count(link.rails, Link::Rail::InUse) < 2) return false;
    link.rails[rail] = Link::Rail::Lost;
  }
  return true;
}

Status OfiTransport::look_after_stranded() {
  if (stranded_ == 0) return Status::ok();
  const auto now = Clock::now();
  for (const auto& link : links_) {
    const bool is_due = !link->stranded.empty() && now >= link->stranded.front().ask_at;
    if (is_due && !link->is_asking && !link->ask.is_busy) CCOM_TRY(ask(*link));
  }
  return Status::ok();
}

Status OfiTransport::ask(Link& link) {
  const WriteOperation& write = *link.stranded.front().write;
  Header header = make_header(link, Kind::Ask, write.channel);
  header.message = write.message;
  header.offset_bytes = write.offset_bytes;
  header.immediate = write.immediate;
  link.is_asking = true;
  return seal_and_post(link.ask, header, {});
}

Status OfiTransport::answer(Link& link) {
  if (link.is_dead || !link.question) return Status::ok();
  if (link.answer.is_busy) {
    asked_.push_back(&link);
    return Status::ok();
  }
  const Header question = *std::exchange(link.question, std::nullopt);
  OfiChannel& channel = *link.channels[question.prefix.channel];
  Header header = make_header(link, Kind::Answer, &channel);
  header.message = question.message;
  header.offset_bytes = question.offset_bytes;
  header.immediate = question.immediate;
  header.message_bytes = board_.tickets.has_arrived(channel, question) ? 1 : 0;
  return seal_and_post(link.answer, header, {});
}

void OfiTransport::on_answer(Link& link, const Header& header) {
  if (!link.is_asking || link.stranded.empty()) return;
  WriteOperation& write = *link.stranded.front().write;
  if (header.message != write.message || header.offset_bytes != write.offset_bytes) return;
  if (std::exchange(link.rails[write.rail], Link::Rail::Told) != Link::Rail::Told) {
    log_rarely(LogTopic::Rail, LogLevel::Warn, "rank %d: degraded: rail %zu to rank %d is lost: %s; %td of %zu go on",
               config_.rank, write.rail, link.rank, link.stranded.front().reason.c_str(),
               std::ranges::count(link.rails, Link::Rail::InUse), link.rails.size());
  }
  link.stranded.pop_front();
  link.is_asking = false;
  --stranded_;
  if (header.message_bytes == 0) return rails_->post(write);
  finish(write);
}

void OfiTransport::finish(WriteOperation& write) {
  write.is_busy = false;
  --write.link->unfinished;
  write.channel->free_writes.push_back(&write);
  write.channel->part_is_out(write.message);
  write.channel->schedule();
}

// The peer is leaving: it awaits nothing, and answers no more.
void OfiTransport::finish_stranded(Link& link) {
  for (const Link::Stranded& each : std::exchange(link.stranded, {})) {
    --stranded_;
    finish(*each.write);
  }
  link.is_asking = false;
}

// Nobody waits for them any more.
void OfiTransport::drop_stranded(Link& link) {
  for (const Link::Stranded& each : link.stranded) each.write->is_busy = false;
  link.unfinished -= link.stranded.size();
  stranded_ -= link.stranded.size();
  link.stranded.clear();
}

}  // namespace ccom::ofi
