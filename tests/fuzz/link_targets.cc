// SPDX-License-Identifier: Apache-2.0
//
// What arrives from other ranks: control messages, handshakes, rings in shared memory, fragments on TCP.
#include <sys/socket.h>

#include "base/handshake.h"
#include "liveness/control_link.h"
#include "tests/fuzz/target.h"
#include "transports/shm/incoming.h"
#include "transports/tcp/peer_address.h"
#include "transports/tcp/receiver.h"

namespace ccom {
namespace {

using fuzz::Reader;
using fuzz::require;

// The payloads of control messages; what was accepted is encoded to the same bytes.
CCOM_FUZZ_TARGET(control_payload) {
  const auto is_same = [&](const std::vector<std::byte>& bytes) { return std::ranges::equal(bytes, input); };
  if (const auto report = decode_report(input)) require(is_same(encode_report(*report)));
  if (const auto departure = decode_departure(input)) require(is_same(encode_departure(*departure)));
  if (const auto error = decode_error(input)) require(!error->is_ok());
}

// Bytes on a control connection by somebody who holds no key: nothing comes of them.
CCOM_FUZZ_TARGET(control_stream) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Descriptor sender(ends[1]);
  const uint8_t key[Secret::kBytes] = {1};
  ControlLink link(Descriptor(ends[0]), {Secret(key), Secret(key)});
  std::vector<ControlMessage> messages;
  for (Reader reader(input); !reader.is_empty();) {
    const ConstBytes piece = reader.take(1 + reader.below(300));
    if (::send(ends[1], piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    link.receive(messages);
  }
  require(messages.empty());
}

CCOM_FUZZ_TARGET(handshake) {
  const uint8_t bytes[Secret::kBytes] = {1};
  const Secret key(bytes);
  const HandshakeIdentity identity{.protocol = HandshakeProtocol::Tcp, .key = key, .communicator = 7, .self = 1};
  Handshake acceptor = Handshake::acceptor(identity);
  Handshake connector = Handshake::connector(identity, 0);
  (void)connector.next();
  for (Reader reader(input); !reader.is_empty();) {
    const ConstBytes message = reader.take(sizeof(HandshakeMessage));
    require(!acceptor.receive(message) && !connector.receive(message));
  }
}

// A peer of the host that writes anything into the ring and its counter.
CCOM_FUZZ_TARGET(shm_ring) {
  constexpr size_t kRingBytes = 8192;
  static shm::RingLines lines;
  static std::vector<std::byte> ring(kRingBytes);
  lines.head = lines.tail = 0;
  Reader reader(input);
  const bool is_stamped = reader.below(2) == 1;
  shm::Incoming incoming({&lines, ring.data(), kRingBytes}, is_stamped);
  const Envelope envelope{{1, 2, 3, 4, 5}};
  std::vector<std::byte> target(reader.below(3 * kRingBytes));
  const Receive receive{.expected = envelope, .size_bytes = target.size(), .target = target.data()};
  for (int rounds = 0; rounds < 64 && !reader.is_empty(); ++rounds) {
    const auto kind = reader.number<uint8_t>();
    const size_t at = reader.below(kRingBytes);
    const ConstBytes bytes = reader.take(reader.below(128));
    std::memcpy(ring.data() + at, bytes.data(), std::min(bytes.size(), kRingBytes - at));
    if (kind & 1) {  // a frame as it should be where the next one is read
      const shm::Frame frame{envelope, target.size()};
      std::memcpy(ring.data() + (lines.tail & (kRingBytes - shm::kGrainBytes)), &frame, sizeof frame);
    }
    if (kind & 2) {
      lines.head = reader.number<uint64_t>();
    } else {
      lines.head += reader.below(kRingBytes + 200);
    }
    const shm::Progress progress = incoming.advance(receive);
    if (progress == shm::Progress::Broken || progress == shm::Progress::Mismatch) return;
  }
}

CCOM_FUZZ_TARGET(tcp_address) {
  const auto address = tcp::parse_peer_address(std::string(fuzz::text_of(input)));
  if (!address) return;
  const auto again = tcp::parse_peer_address(tcp::to_text(*address));
  require(again && tcp::to_text(*again) == tcp::to_text(*address));
}

// A header with what the input wants in it, and a right checksum more often than not.
tcp::FragmentHeader header_from(Reader& reader, const Envelope& envelope, size_t size) {
  tcp::FragmentHeader header;
  const auto kind = reader.number<uint8_t>();
  header.envelope = envelope;
  header.message = reader.below(4);
  header.size_bytes = kind & 1 ? reader.number<uint64_t>() : size;
  header.offset_bytes = kind & 2 ? reader.number<uint64_t>() : reader.below(3) * tcp::grid_bytes(2);
  header.length_bytes = static_cast<uint32_t>(kind & 4 ? reader.number<uint32_t>() : std::min<size_t>(size, 2000));
  if (kind & 8) header.envelope.words[0] ^= 1;
  if (kind & 16) header.magic = reader.number<uint32_t>();
  tcp::seal(header);
  if (kind & 32) header.header_crc ^= reader.number<uint8_t>();
  return header;
}

CCOM_FUZZ_TARGET(tcp_fragments) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Descriptor sender(ends[1]);
  static boost::asio::io_context context;
  std::vector<std::unique_ptr<tcp::Line>> lines;
  lines.push_back(std::make_unique<tcp::Line>(tcp::Socket(context, boost::asio::ip::tcp::v4(), ends[0])));
  static tcp::BufferPool pool(tcp::kMaxFragmentBytes);
  const tcp::Route route{.self = 0, .peer = 1, .channel = 0, .address = "peer"};
  Reader reader(input);
  tcp::Receiver receiver(route, lines, tcp::grid_bytes(2), reader.below(2) == 1, pool);
  const Envelope envelope{{1, 2, 3, 4, 5}};
  std::vector<std::vector<std::byte>> targets;
  for (Token token = 0; token < 4; ++token) {
    targets.emplace_back(reader.below(4) == 0 ? reader.below(200000) : reader.below(2000));
    receiver.post({.expected = envelope, .size_bytes = targets.back().size(), .target = targets.back().data(), .token = token});
  }
  Events events;
  for (int rounds = 0; rounds < 32 && !reader.is_empty(); ++rounds) {
    const tcp::FragmentHeader header = header_from(reader, envelope, targets[static_cast<size_t>(rounds) % 4].size());
    std::vector<std::byte> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    const ConstBytes payload = reader.take(reader.below(600));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    if (reader.below(2) == 0) bytes.resize(sizeof header + std::min<size_t>(header.length_bytes, 2000));
    if (::send(ends[1], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
    if (!receiver.pump(false, events).is_ok() || events.mismatch) return;
    require(events.completed.size() <= targets.size());
  }
}

}  // namespace
}  // namespace ccom
