// SPDX-License-Identifier: Apache-2.0
//
// What arrives from other ranks: control messages, handshakes, rings in shared memory, fragments on TCP. By strangers,
// and by peers that hold the key.
#include <sys/socket.h>

#include <algorithm>

#include "base/handshake.h"
#include "liveness/board.h"
#include "liveness/control_link.h"
#include "liveness/state.h"
#include "tests/fuzz/target.h"
#include "transports/shm/incoming.h"
#include "transports/tcp/line_terms.h"
#include "transports/tcp/peer_address.h"
#include "transports/tcp/receiver.h"

namespace ccom {
namespace {

using fuzz::Reader;
using fuzz::require;

// The payloads of control messages; what was accepted is encoded to the same bytes.
CCOM_FUZZ_TARGET(control_payload) {
  const auto is_same = [&](const std::vector<std::byte>& bytes) { return std::ranges::equal(bytes, input); };
  if (const auto report = decode_report(input, 0)) require(is_same(encode_report(*report, 0)));
  if (const auto table = decode_table(input, 0)) require(is_same(encode_table(*table, 0)));
  if (const auto departure = decode_departure(input)) require(is_same(encode_departure(*departure)));
  if (const auto error = decode_error(input)) require(!error->is_ok());
}

// Bytes on a control connection by somebody who holds no key: nothing comes of them.
CCOM_FUZZ_TARGET(control_stream) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Descriptor sender(ends[1]);
  const uint8_t key[Secret::kBytes] = {1};
  const auto connection = std::make_shared<ControlConnection>(ControlSocket(Descriptor(ends[0])),
                                                              ConnectionTerms{Secret(key), Secret(key), 1});
  ControlLink link(connection, {}, nullptr);
  std::vector<ControlMessage> messages;
  for (Reader reader(input); !reader.is_empty();) {
    const ConstBytes piece = reader.take(1 + reader.below(300));
    if (::send(ends[1], piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    connection->receive();
    link.receive(messages);
  }
  require(messages.empty());
}

// A frame with the code that makes it genuine.
std::vector<std::byte> seal_frame(const Secret& key, uint64_t counter, uint8_t type, const StreamId& stream,
                                  ConstBytes payload) {
  std::vector<std::byte> frame(16);
  const auto size = static_cast<uint32_t>(payload.size());
  frame[0] = std::byte{type};
  frame[1] = std::byte{stream.tree};
  std::memcpy(frame.data() + 4, &size, sizeof size);
  std::memcpy(frame.data() + 8, &stream.communicator, sizeof stream.communicator);
  frame.insert(frame.end(), payload.begin(), payload.end());
  std::vector<std::byte> text(sizeof counter);
  std::memcpy(text.data(), &counter, sizeof counter);
  text.insert(text.end(), frame.begin(), frame.end());
  const Mac mac = hmac_sha256(key, text);
  const auto code = std::as_bytes(std::span(mac)).first(16);
  frame.insert(frame.end(), code.begin(), code.end());
  return frame;
}

// What a host does with messages of its tree; it has a parent and children, whose messages these are.
struct TreeHostUnderTest {
  TreeHostUnderTest() : tree(config()), memory(Board::bytes(2) / sizeof(Line) + 1), board(*Board::over(bytes(), 2)) {
    board.initialise();
    for (const int host : neighbours) tree.attach(host, now_ns, outputs);
  }
  static TreeConfig config() {
    TreeConfig config{.hosts = {}, .self = 1, .dead_ns = 3'000'000'000, .settle_ns = kSettleNs};
    for (Rank rank = 0; rank < 40; rank += 2)
      config.hosts.push_back({.name = "host", .member = rank, .ranks = {rank, rank + 1}});
    return config;
  }
  Bytes bytes() { return std::as_writable_bytes(std::span(memory)); }
  void apply() {
    for (const TreeOutput& output : std::exchange(outputs, {})) {
      const ControlMessage& message = output.message;
      if (output.kind == TreeOutput::Kind::Send) require(std::ranges::count(neighbours, output.host) == 1);
      if (output.kind == TreeOutput::Kind::Report) board.publish(0, message.error);
      if (output.kind == TreeOutput::Kind::Depart) board.note_departure(message.departure);
      if (output.kind != TreeOutput::Kind::Lose) continue;
      for (const Rank rank : message.error.peers()) board.note_lost(rank);
      require(!board.lost().empty());
    }
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  int64_t now_ns = 1;
  const std::vector<int> neighbours = tree_neighbours(1, 20);
  TreeOutputs outputs;
  TreeState tree;
  std::vector<Line> memory;
  Board board;
};

// Genuine frames with anything in them, of four streams, of which some are open: what is wrong with one ends it alone.
CCOM_FUZZ_TARGET(control_frames) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Descriptor sender(ends[1]);
  const uint8_t bytes[Secret::kBytes] = {1};
  const Secret key(bytes);
  const auto connection =
      std::make_shared<ControlConnection>(ControlSocket(Descriptor(ends[0])), ConnectionTerms{key, key, 1});
  const auto stream_of = [](size_t number) { return StreamId{number / 2, static_cast<uint8_t>(number % 2)}; };
  std::vector<std::unique_ptr<ControlLink>> links(4);
  TreeHostUnderTest host;
  uint64_t counter = 0;
  for (Reader reader(input); !reader.is_empty();) {
    const auto kind = reader.number<uint8_t>();
    const size_t number = reader.below(links.size());
    std::unique_ptr<ControlLink>& link = links[number];
    const int from = host.neighbours[reader.below(host.neighbours.size())];
    if ((kind & 32) != 0 && link == nullptr)
      link = std::make_unique<ControlLink>(connection, stream_of(number), nullptr);
    const auto type = static_cast<uint8_t>(kind % 16);
    const ConstBytes payload = reader.take(reader.below(400));
    const std::vector<std::byte> frame = seal_frame(key, counter++, type, stream_of(number), payload);
    if (::send(ends[1], frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    connection->receive();
    require(!connection->has_ended());
    for (const auto& other : links) require(other == link || other == nullptr || !other->has_news());
    if (link == nullptr) continue;
    std::vector<ControlMessage> messages;
    link->receive(messages);
    for (const ControlMessage& message : messages) host.tree.receive(from, message, host.now_ns, host.outputs);
    if (link->ended()) host.tree.lose(from, *link->ended(), host.now_ns, host.outputs);
    if (link->ended()) link.reset();
    if ((kind & 64) != 0) host.now_ns += 1'000'000 * static_cast<int64_t>(reader.below(5000));
    if ((kind & 64) != 0) host.tree.tick(host.now_ns, host.outputs);
    if ((kind & 128) != 0)
      host.tree.poll_stragglers({.calls = reader.below(4), .ranks = {2, 3}}, (kind & 64) != 0, host.outputs);
    host.apply();
  }
}

// A peer that holds the key says words of several conversations, in either role, in any order, with any terms.
CCOM_FUZZ_TARGET(handshake_with_key) {
  const uint8_t bytes[Secret::kBytes] = {1};
  const Secret key(bytes);
  Reader reader(input);
  const auto traits = reader.number<uint8_t>();
  const HandshakeProtocol protocols[] = {HandshakeProtocol::Control, HandshakeProtocol::Tcp, HandshakeProtocol::Ofi,
                                         HandshakeProtocol::Segment};
  const auto identity = [&](Rank self, uint8_t protocol) {
    return HandshakeIdentity{.protocol = protocols[protocol % 4], .key = key, .communicator = 7, .self = self};
  };
  const HandshakeIdentity own = identity(0, traits >> 1);
  Handshake tested = (traits & 1) != 0 ? Handshake::connector(own, 1) : Handshake::acceptor(own);
  std::vector<Handshake> peers;
  std::vector<HandshakeMessage> said;
  const tcp::LineTerms mine{.channels = 2, .streams = 2, .crc = 1};
  for (int rounds = 0; rounds < 100 && !reader.is_empty(); ++rounds) {
    const auto kind = reader.number<uint8_t>();
    if (tested.is_our_turn()) said.push_back(tested.next(mine));
    if (kind % 4 == 0 && peers.size() < 8) {
      const HandshakeIdentity other = identity((kind & 32) != 0 ? 0 : 1, (kind & 16) != 0 ? kind >> 6 : traits >> 1);
      peers.push_back((kind & 8) != 0 ? Handshake::connector(other, 1 - other.self) : Handshake::acceptor(other));
    } else if (kind % 4 == 1 && !said.empty()) {  // again, perhaps altered
      HandshakeMessage again = said[reader.below(said.size())];
      const auto change = reader.number<std::byte>();
      const bool was_our_turn = tested.is_our_turn();
      again.writable_bytes()[reader.below(sizeof again)] ^= change;
      const bool is_taken = tested.receive(again);
      require(!is_taken || (change == std::byte{} && !was_our_turn));
    } else if (!peers.empty()) {
      Handshake& peer = peers[reader.below(peers.size())];
      for (size_t i = 0; i < said.size() && !peer.is_our_turn(); ++i) (void)peer.receive(said[i]);
      if (!peer.is_our_turn()) continue;
      tcp::LineTerms terms = mine;
      if ((kind & 8) != 0) terms = {reader.number<uint16_t>(), reader.number<uint16_t>(), reader.number<uint16_t>()};
      said.push_back(peer.next(terms));
      if ((kind & 16) != 0 || !tested.receive(said.back())) continue;
      require(tested.peer() == 1);
      const auto heard = said.back().terms_as<tcp::LineTerms>();
      require(tcp::compare_settings(mine, heard, 1).is_ok() ==
              (heard.channels == 2 && heard.streams == 2 && heard.crc == 1));
    }
  }
  if (!tested.is_complete()) return;
  // The two sides of this conversation agree on a key.
  require(std::ranges::any_of(peers, [&tested](const Handshake& peer) {
    return peer.step() >= HandshakeStep::Confirm &&
           std::ranges::equal(peer.session().bytes(), tested.session().bytes());
  }));
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
  tcp::Socket socket(context);
  require(!socket.assign(boost::asio::ip::tcp::v4(), Descriptor(ends[0])));
  lines.push_back(std::make_unique<tcp::Line>(std::move(socket)));
  tcp::Readiness readiness;
  lines.back()->establish(readiness);
  static tcp::BufferPool pool(tcp::kMaxFragmentBytes);
  const tcp::Route route{.self = 0, .peer = 1, .channel = 0, .address = "peer"};
  Reader reader(input);
  tcp::Rails rails(route, lines, std::chrono::milliseconds(reader.below(2)));
  tcp::Receiver receiver(route, lines, rails, tcp::grid_bytes(2), reader.below(2) == 1, pool);
  const Envelope envelope{{1, 2, 3, 4, 5}};
  std::vector<std::vector<std::byte>> targets;
  for (Token token = 0; token < 4; ++token) {
    targets.emplace_back(reader.below(4) == 0 ? reader.below(200000) : reader.below(2000));
    receiver.post(
        {.expected = envelope, .size_bytes = targets.back().size(), .target = targets.back().data(), .token = token});
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
