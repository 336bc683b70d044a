// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ofi_peer.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/checksum.h"
#include "transports/ofi/checksum.h"
#include "transports/ofi/write_tickets.h"

namespace ccom::ofi {
namespace {

constexpr uint64_t kCommunicator = 5;
constexpr uint32_t kFirstTicket = 0;  // of either side's slots

class NoRegistration final : public Registration {
 public:
  void* descriptor() const override { return nullptr; }
  RemotePlace place() const override { return {.address = 4096, .key = 1}; }
};

class LoneEndpoint final : public Endpoint {
 public:
  LoneEndpoint(Air& air, bool is_rail) : air_(air), is_rail_(is_rail) {}
  std::string address() const override { return is_rail_ ? "rail" : "messages"; }
  Limits limits() const override {
    return {.message_bytes = kFuzzMessageBytes, .sends = 64, .receives = 64, .write_bytes = kFuzzSlotBytes};
  }
  Result<uint64_t> insert(std::string_view) override { return uint64_t{1}; }
  Result<Region> allocate(size_t size_bytes) override {
    regions_.emplace_back(size_bytes);
    return Region{.bytes = regions_.back(), .place = {.address = 4096, .key = 1}};
  }
  Result<std::unique_ptr<Registration>> enroll(Bytes, Use) override {
    return std::unique_ptr<Registration>(std::make_unique<NoRegistration>());
  }
  int post_send(uint64_t, Operation& operation) override {
    if (air_.is_cut) return -FI_ENOTCONN;
    air_.sent.emplace_back(operation.data, operation.data + operation.size_bytes);
    air_.arrivals.push_back({.operation = &operation});
    return 0;
  }
  int post_receive(Operation& operation) override {
    air_.receives.push_back(&operation);
    return 0;
  }
  // The address is the peer's, who is not here; but the source must be there.
  int post_write(uint64_t, Operation& operation, RemotePlace, uint32_t) override {
    if (air_.is_cut) return -FI_ENOTCONN;
    static volatile uint32_t read = 0;
    read = crc32c({operation.data, operation.size_bytes}, read);
    air_.wrote.push_back({.operation = &operation});
    return 0;
  }
  Status poll(std::vector<Completion>& completions) override {
    if (!is_rail_ && air_.meanwhile) CCOM_TRY(air_.meanwhile());
    std::vector<Completion>& mine = is_rail_ ? air_.wrote : air_.arrivals;
    completions.insert(completions.end(), mine.begin(), mine.end());
    mine.clear();
    return Status::ok();
  }
  int descriptor() const override { return -1; }
  bool may_sleep() override { return false; }
  void shut() override { (is_rail_ ? air_.wrote : air_.arrivals).clear(); }

 private:
  Air& air_;
  const bool is_rail_;
  std::deque<std::vector<std::byte>> regions_;
};

// Fields that the input changes, by the bits of `changes`; what they are otherwise is right.
template <typename... Fields>
void change_some(uint32_t changes, fuzz::Reader& reader, Fields&... fields) {
  const auto change = [&]<typename T>(T& field) {
    if ((std::exchange(changes, changes >> 1) & 1) != 0) field = reader.number<T>();
  };
  (change(fields), ...);
}

}  // namespace

bool Air::deliver(ConstBytes message) {
  if (receives.empty()) return false;
  Operation& operation = *receives.front();
  receives.pop_front();
  const size_t bytes = std::min(message.size(), operation.size_bytes);
  std::copy_n(message.begin(), bytes, operation.data);
  arrivals.push_back(
      {.operation = &operation, .received_bytes = bytes, .error = bytes < message.size() ? FI_ETRUNC : 0});
  return true;
}

std::unique_ptr<Endpoint> open_endpoint(Air& air, bool is_rail) { return std::make_unique<LoneEndpoint>(air, is_rail); }

FuzzPeer::FuzzPeer(Air& air, const Secret& key, Rank self, bool checksum)
    : air_(air), key_(key), self_(self), checksum_(checksum), conversations_{start(self == 1)} {}

Handshake FuzzPeer::start(bool connects) const {
  const HandshakeIdentity identity{HandshakeProtocol::Ofi, key_, kCommunicator, self_};
  return connects ? Handshake::connector(identity, 1 - self_) : Handshake::acceptor(identity);
}

// Reads what the transport has sent, and counts what it would have to be thanked for.
void FuzzPeer::listen() {
  for (const std::vector<std::byte>& bytes : std::exchange(air_.sent, {})) {
    if (bytes.size() == sizeof(HandshakeMessage) && read_as<uint32_t>(bytes) == kHandshakeMagic) {
      said_.push_back(read_as<HandshakeMessage>(bytes));
      for (Handshake& conversation : conversations_) {
        if (conversation.receive(said_.back())) find_session(conversation);
      }
      continue;
    }
    fuzz::require(bytes.size() >= sizeof(Header));
    const auto header = read_as<Header>(bytes);
    fuzz::require(header.prefix.channel < kFuzzChannels && header.prefix.to == self_);
    const bool is_data = header.prefix.kind == Kind::Data;
    heard_fragments_ += is_data ? 1 : 0;
    if (is_data || header.prefix.kind == Kind::Target) ++consumed_[header.prefix.channel];
    const uint32_t ticket = kFirstTicket + header.prefix.channel;
    if (is_data && header.immediate != kInline && ticket_of(header.immediate) == ticket)
      ++freed_[header.prefix.channel];
  }
}

void FuzzPeer::find_session(const Handshake& conversation) {
  if (session_ != 0 || conversation.step() != HandshakeStep::Confirm) return;
  const char* const direction = self_ == 1 ? "connector to acceptor" : "acceptor to connector";
  session_ = read_as<uint64_t>(std::as_bytes(conversation.session().derive(direction).bytes()));
}

void FuzzPeer::deliver(const HandshakeMessage& message) {
  said_.push_back(message);
  (void)air_.deliver(message.bytes());
}

LinkTerms FuzzPeer::terms(uint16_t changes, fuzz::Reader* reader) const {
  LinkTerms terms{.channels = kFuzzChannels,
                  .credits = 8,
                  .fragment_bytes = kFuzzFragmentBytes,
                  .checksummed = checksum_ ? 1U : 0U,
                  .slots = {.address = 4096,
                            .keys = {1},
                            .rails = 1,
                            .window = 8,
                            .slots = 4,
                            .slot_bytes = kFuzzSlotBytes,
                            .first_ticket = kFirstTicket}};
  if (reader == nullptr) return terms;
  SlotTerms& slots = terms.slots;
  change_some(changes, *reader, terms.channels, terms.credits, terms.fragment_bytes, terms.checksummed, slots.address,
              slots.rails, slots.window, slots.slots, slots.slot_bytes, slots.first_ticket);
  return terms;
}

void FuzzPeer::greet() {
  listen();
  if (!conversations_.front().is_our_turn()) return;
  deliver(conversations_.front().next(terms(0, nullptr)));
  find_session(conversations_.front());
}

void FuzzPeer::greet(fuzz::Reader& reader) {
  listen();
  const auto kind = reader.number<uint8_t>();
  const auto changes = reader.number<uint16_t>();
  switch (kind % 8) {
    case 0:
      if (conversations_.size() < 8) conversations_.push_back(start((changes & 1) != 0));
      break;
    case 1: {  // again, as it was or altered
      if (said_.empty()) break;
      HandshakeMessage again = said_[reader.below(said_.size())];
      if ((changes & 1) != 0) again.writable_bytes()[reader.below(sizeof again)] ^= reader.number<std::byte>();
      (void)air_.deliver(again.bytes());
      break;
    }
    case 2: (void)air_.deliver(reader.take(reader.below(2 * kFuzzMessageBytes))); break;
    case 3: return say(reader, {});
    default: {
      const size_t which = (kind & 8) != 0 ? reader.below(conversations_.size()) : 0;
      if (!conversations_[which].is_our_turn()) break;
      deliver(conversations_[which].next(terms((kind & 16) != 0 ? changes : 0, &reader)));
      find_session(conversations_[which]);
    }
  }
}

void FuzzPeer::say(fuzz::Reader& reader, const std::vector<size_t> (&sizes)[kFuzzChannels]) {
  constexpr Kind kKinds[] = {Kind::Data,    Kind::Data,        Kind::Data,   Kind::Data,
                             Kind::Goodbye, Kind::Acknowledge, Kind::Target, Kind::Grant};
  static const std::vector<std::byte> zeroes(kFuzzSlotBytes);
  listen();
  const auto shape = reader.number<uint16_t>();
  const uint32_t changes = (shape & 1) != 0 ? reader.number<uint32_t>() : 0;
  const auto channel = static_cast<uint8_t>((shape >> 1) % kFuzzChannels);
  const size_t number = reader.below(8);
  const size_t size = number < sizes[channel].size() ? sizes[channel][number] : reader.below(3000);
  Header header;
  header.prefix = {.kind = kKinds[(shape >> 2) % 8],
                   .channel = channel,
                   .communicator = kCommunicator,
                   .from = self_,
                   .to = 1 - self_};
  if (header.prefix.kind == Kind::Goodbye && (shape & 256) != 0) header.prefix.kind = Kind::Stopped;
  header.session = header.session_again = session_;
  header.consumed = consumed_[channel];
  header.arrived = heard_fragments_;
  header.slots_freed = freed_[channel];
  const bool is_last = header.prefix.kind == Kind::Goodbye || header.prefix.kind == Kind::Stopped;
  header.message = is_last ? said_fragments_ : number;
  header.message_bytes = size;
  const bool is_written = header.prefix.kind == Kind::Data && (shape & 32) != 0;
  const size_t piece = is_written ? kFuzzSlotBytes : kFuzzFragmentBytes;
  header.offset_bytes = reader.below(1 + size / piece) * piece;
  std::vector<std::byte> payload;
  if (header.prefix.kind == Kind::Data) {
    header.payload_bytes = static_cast<uint32_t>(std::min(piece, size - header.offset_bytes));
    if (is_written)
      header.immediate = immediate_of(static_cast<uint32_t>(reader.below(6)), static_cast<uint32_t>(reader.below(6)));
    header.payload_checksum = is_written ? crc32c(ConstBytes(zeroes).first(header.payload_bytes), 0) : 0;
    ++said_fragments_;
  } else if (header.prefix.kind == Kind::Target) {
    header.payload_bytes = sizeof(TargetPlace);
  }
  Prefix& prefix = header.prefix;
  change_some(changes, reader, header.message, header.message_bytes, header.offset_bytes, header.payload_bytes,
              header.payload_checksum, header.immediate, header.consumed, header.arrived, header.slots_freed,
              header.envelope.words[1], prefix.channel, prefix.from, prefix.to, prefix.version, header.session,
              header.session_again);
  payload.resize(is_written ? 0 : std::min<size_t>(header.payload_bytes, 2 * kFuzzMessageBytes));
  if (header.prefix.kind == Kind::Target) {
    const TargetPlace place{.address = 4096, .keys = {1}, .ticket = 8 + static_cast<uint32_t>(number)};
    std::ranges::copy(std::as_bytes(std::span(&place, 1)).first(std::min(payload.size(), sizeof place)),
                      payload.begin());
  }
  if ((changes & 0x10000) != 0) payload.resize(reader.below(2 * kFuzzMessageBytes));
  std::vector<std::byte> message(sizeof header);
  std::memcpy(message.data(), &header, sizeof header);
  message.insert(message.end(), payload.begin(), payload.end());
  if (checksum_) {
    const uint32_t checksum = checksum_of(message.data(), message.size());
    std::memcpy(message.data() + offsetof(Header, checksum), &checksum, sizeof checksum);
  }
  if ((changes & 0x20000) != 0) message.resize(reader.below(message.size()));
  const bool is_delivered = air_.deliver(message);
  // The write comes before or after its header, or not at all.
  if (is_delivered && is_written && (shape & 64) != 0) air_.wrote.push_back({.immediate = header.immediate});
  if ((shape & 128) != 0)
    air_.wrote.push_back(
        {.immediate = immediate_of(static_cast<uint32_t>(reader.below(6)), static_cast<uint32_t>(reader.below(6)))});
}

}  // namespace ccom::ofi
