// SPDX-License-Identifier: Apache-2.0
//
// Memory allocated at connect (and never later): message buffers, and slots for peers' writes.
#include "transports/ofi/buffers.h"

#include <algorithm>

#include "base/log.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

size_t count_channels(std::span<const Peer> peers) {
  size_t channels = 0;
  for (const Peer& peer : peers) channels += static_cast<size_t>(peer.channels);
  return channels;
}

}  // namespace

// No slots if there are too many channels for the memory, the rails' completion queues or the ticket numbers.
void OfiTransport::plan_slots(std::span<const Peer> peers) {
  const size_t channels = count_channels(peers);
  if (rails_->count() == 0 || channels == 0 || channels > kMaxTickets / 2) return;
  const Limits& limits = rails_->limits();
  const size_t window = std::min(fragments_under_way(rails_->count()), limits.receives / channels);
  size_t slot_bytes = kSlotBytes, slots = kSlots;
  while (channels * slots * slot_bytes > kSlotMemoryBytes && slot_bytes > kMinSlotBytes) slot_bytes /= 2;
  while (channels * slots * slot_bytes > kSlotMemoryBytes && slots > 0) slots /= 2;
  slot_bytes = std::min(slot_bytes, limits.write_bytes) / 128 * 128;
  if (window < 2 || slots < 2 || slot_bytes < 2 * size_t{terms_.fragment_bytes}) return;
  slot_plan_.rails = static_cast<uint16_t>(rails_->count());
  slot_plan_.window = static_cast<uint16_t>(window);
  slot_plan_.slots = static_cast<uint32_t>(slots);
  slot_plan_.slot_bytes = static_cast<uint32_t>(slot_bytes);
}

Status OfiTransport::allocate_buffers() {
  if (links_.empty()) return Status::ok();
  size_t channels = 0;
  for (const auto& link : links_) channels += link->channels.size();
  const size_t credits = terms_.credits;
  CCOM_TRY(pool_.fill(channels * (credits + kGrantBuffers) + links_.size() * kHandshakeBuffers, buffer_bytes_));
  const size_t small = channels + links_.size() * kControlSends;
  CCOM_TRY_ASSIGN(const Region region, endpoint_->allocate(channels * credits * buffer_bytes_ + small * kControlBytes));
  send_memory_bytes_ = region.bytes.size();
  place_operations(region.bytes, region.descriptor);
  if (slot_plan_.rails == 0) return Status::ok();
  if (const Status offered = offer_slots(); !offered.is_ok()) {
    // Everything is sent by messages then.
    log(LogLevel::Warn, "ofi: rank %d: remote writes disabled, because their memory is not available: %s", config_.rank,
        offered.message().c_str());
    slot_plan_ = {};
    for (const auto& link : links_) link->slots = {};
  }
  return Status::ok();
}

void OfiTransport::place_operations(Bytes memory, void* descriptor) {
  std::byte* next = memory.data();
  const auto place = [&next, descriptor](SendOperation& operation, Link& link, OfiChannel* channel, size_t size_bytes) {
    operation.operation_kind = OperationKind::Send;
    operation.data = next;
    operation.descriptor = descriptor;
    operation.link = &link;
    operation.channel = channel;
    next += size_bytes;
  };
  const size_t credits = terms_.credits;
  for (const auto& link : links_) {
    link->sends.resize(link->channels.size() * credits);
    for (size_t i = 0; i < link->sends.size(); ++i) {
      OfiChannel* channel = link->channels[i / credits].get();
      place(link->sends[i], *link, channel, buffer_bytes_);
      channel->free_slots.push_back(&link->sends[i]);
    }
  }
  for (const auto& link : links_) {
    for (SendOperation* operation :
         {&link->greeting, &link->confirm, &link->goodbye, &link->acknowledge, &link->ask, &link->answer}) {
      place(*operation, *link, nullptr, kControlBytes);
    }
    for (const auto& channel : link->channels) place(channel->grant, *link, channel.get(), kControlBytes);
  }
}

Status OfiTransport::offer_slots() {
  size_t channels = 0;
  for (const auto& link : links_) channels += link->channels.size();
  const size_t channel_bytes = size_t{slot_plan_.slots} * slot_plan_.slot_bytes;
  CCOM_TRY_ASSIGN(Bytes memory, rails_->allocate(channels * channel_bytes));
  slot_memory_bytes_ = memory.size();
  uint64_t address = rails_->place(0).address;
  for (const auto& link : links_) {
    link->slots = slot_plan_;
    link->slots.address = address;
    for (size_t rail = 0; rail < rails_->count(); ++rail) link->slots.keys[rail] = rails_->place(rail).key;
    link->writes.resize(link->channels.size() * slot_plan_.window);
    for (size_t i = 0; i < link->channels.size(); ++i) {
      OfiChannel& channel = *link->channels[i];
      const auto ticket = board_.tickets.open(channel, std::nullopt, slot_plan_.slots);
      CCOM_ASSERT(ticket.has_value());  // plan_slots() has ensured it
      if (i == 0) link->slots.first_ticket = *ticket;
      channel.offer_slots(memory.first(channel_bytes), slot_plan_.slots, *ticket);
      memory = memory.subspan(channel_bytes);
      address += channel_bytes;
      for (size_t k = 0; k < slot_plan_.window; ++k) {
        WriteOperation& operation = link->writes[i * slot_plan_.window + k];
        operation.operation_kind = OperationKind::Write;
        operation.link = link.get();
        operation.channel = &channel;
        channel.free_writes.push_back(&operation);
      }
    }
  }
  return Status::ok();
}

}  // namespace ccom::ofi
