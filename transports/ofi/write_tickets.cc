// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/write_tickets.h"

#include "base/assert.h"

namespace ccom::ofi {

std::optional<uint32_t> WriteTickets::open(OfiChannel& channel, std::optional<uint64_t> message, size_t spots) {
  if (spots > size_t{1} << kIndexBits) return std::nullopt;
  if (free_.empty()) {
    if (tickets_.size() >= kMaxTickets) return std::nullopt;
    tickets_.emplace_back();
    free_.reserve(tickets_.capacity());  // close() must not need memory
    free_.push_back(static_cast<uint32_t>(tickets_.size() - 1));
  }
  const uint32_t ticket = free_.back();
  free_.pop_back();
  tickets_[ticket] = {&channel, message, std::vector<Spot>(spots)};
  return ticket;
}

void WriteTickets::close(uint32_t ticket) noexcept {
  CCOM_ASSERT(ticket < tickets_.size() && tickets_[ticket].channel != nullptr);
  for (const Spot& spot : tickets_[ticket].spots) awaited_ -= spot.header ? 1 : 0;
  tickets_[ticket] = {};
  free_.push_back(ticket);
}

WriteTickets::Spot* WriteTickets::find(uint32_t immediate) {
  const uint32_t ticket = ticket_of(immediate), index = index_of(immediate);
  if (ticket >= tickets_.size() || index >= tickets_[ticket].spots.size()) return nullptr;
  return &tickets_[ticket].spots[index];
}

WriteTickets::Match WriteTickets::take(const Ticket& ticket, Spot& spot) {
  const Match match{ticket.channel, !ticket.message.has_value(), *spot.header};
  spot = {.last = std::pair(match.header.message, match.header.offset_bytes)};
  return match;
}

bool WriteTickets::has_arrived(const OfiChannel& channel, const Header& header) const {
  const uint32_t number = ticket_of(header.immediate), index = index_of(header.immediate);
  if (number >= tickets_.size() || index >= tickets_[number].spots.size()) return true;
  const Ticket& ticket = tickets_[number];
  if (ticket.channel != &channel || ticket.message.value_or(header.message) != header.message) return true;
  const Spot& spot = ticket.spots[index];
  const std::pair asked(header.message, header.offset_bytes);
  if (spot.last && *spot.last >= asked) return true;
  if (spot.header) return std::pair(spot.header->message, spot.header->offset_bytes) > asked;
  return spot.is_written;
}

std::optional<WriteTickets::Match> WriteTickets::on_written(uint32_t immediate) {
  Spot* spot = find(immediate);
  if (spot == nullptr || spot->is_written) return std::nullopt;
  spot->is_written = true;
  if (!spot->header) return Match{};
  --awaited_;
  return take(tickets_[ticket_of(immediate)], *spot);
}

Result<WriteTickets::Match> WriteTickets::on_header(OfiChannel& channel, const Header& header) {
  Spot* spot = find(header.immediate);
  const Ticket* ticket = spot != nullptr ? &tickets_[ticket_of(header.immediate)] : nullptr;
  if (ticket == nullptr || ticket->channel != &channel || ticket->message.value_or(header.message) != header.message ||
      spot->header) {
    return error(Code::TransportError, "rank %d announced a write without a ticket", header.prefix.from)
        .with_peers({header.prefix.from});
  }
  spot->header = header;
  if (spot->is_written) return take(*ticket, *spot);
  ++awaited_;
  return Match{};
}

}  // namespace ccom::ofi
