// SPDX-License-Identifier: Apache-2.0
//
// Headers of messages by a peer that says anything, and records of pieces by neighbours that forward.
#include <deque>
#include <map>

#include "messages/peer_protocol.h"
#include "messages/relay.h"
#include "tests/fuzz/target.h"

namespace ccom {
namespace {

using fuzz::Reader;
using fuzz::require;

// Sends nothing, and lets the target fill what was posted.
class Silent final : public Channel {
 public:
  Status post_send(const Send& send) override {
    sent.push_back(send.token);
    return {};
  }
  Status post_receive(const Receive& receive) override {
    posted = receive;
    return {};
  }
  std::vector<Token> sent;
  Receive posted;
};

CCOM_FUZZ_TARGET(message_headers) {
  Silent headers, payload;
  PeerProtocol protocol(1, {.transport = 0, .headers = &headers, .payload = &payload});
  require(protocol.open().is_ok());
  std::byte data[3000] = {};
  Reader reader(input);
  for (int rounds = 0; rounds < 200 && !reader.is_empty(); ++rounds) {
    const auto kind = reader.number<uint8_t>();
    if (kind % 3 == 0) {  // this rank sends something
      MessageRequest request{
          .sends = true, .data = data, .bytes = reader.below(sizeof data), .peer = 1, .timeout_ms = 1000, .done = {}};
      require(protocol.send(std::make_shared<Message>(std::move(request))).is_ok());
      continue;
    }
    if (kind % 3 == 1 && !headers.sent.empty()) {  // something was sent
      auto* posted = reinterpret_cast<Posted*>(headers.sent.front());
      headers.sent.erase(headers.sent.begin());
      (void)protocol.finish(*posted);
      require(protocol.send_queued().is_ok());
      continue;
    }
    MessageHeader header;
    header.kind = static_cast<HeaderKind>(reader.below(5));
    header.acknowledged = kind & 128 ? reader.number<uint32_t>() : 0;
    header.bytes = kind & 64 ? reader.number<uint64_t>() : reader.below(1200);
    header.id = reader.below(4);
    header.call_type = kind & 16 ? reader.number<uint16_t>() : 0;
    std::memcpy(headers.posted.target, &header, sizeof header);
    if (!protocol.accept_header().is_ok()) return;
    if (header.kind == HeaderKind::Eager) {
      require(protocol.header().bytes <= kInlineBytes);
      if (kind & 32) protocol.acknowledge();
    }
    require(protocol.next_header().is_ok());
  }
}

// Keeps what is posted; the target says what completes.
class Scripted final : public Transport {
 public:
  class Pipe final : public Channel {
   public:
    explicit Pipe(Scripted& its) : its_(its) {}
    Status post_send(const Send& send) override {
      its_.sends.push_back(send.token);
      return {};
    }
    Status post_receive(const Receive& receive) override {
      receives.push_back(receive);
      return {};
    }
    std::deque<Receive> receives;

   private:
    Scripted& its_;
  };
  std::string_view name() const override { return "scripted"; }
  std::string address() const override { return ""; }
  Status connect(std::span<const Peer>, const WaitLimit&) override { return {}; }
  Result<Channel*> channel(Rank peer, int index) override {
    std::unique_ptr<Pipe>& pipe = pipes[{peer, index}];
    if (pipe == nullptr) pipe = std::make_unique<Pipe>(*this);
    return pipe.get();
  }
  Status progress(Events& events) override {
    events.completed.insert(events.completed.end(), done.begin(), done.end());
    done.clear();
    return {};
  }
  void wait(std::chrono::nanoseconds) override {}
  void wake() override {}
  void stop() override {}
  uint64_t memory_bytes() const override { return 0; }

  std::map<std::pair<Rank, int>, std::unique_ptr<Pipe>> pipes;
  std::deque<Token> sends;
  std::vector<Token> done;
};

// Rank 2 in the middle of a chain of five.
CCOM_FUZZ_TARGET(relay_records) {
  constexpr size_t kPiece = 2048;
  Scripted under;
  RelayConfig config{.rank = 2, .nranks = 5, .lanes = 1, .neighbours = {1, 3}, .most_piece_bytes = kPiece};
  config.next = [](Rank to) { return RelayConfig::Next{to < 2 ? 1 : 3, 0}; };
  config.piece_bytes = [](Rank, size_t) { return kPiece; };
  const auto relay = *Relay::create(under, std::move(config));
  std::vector<std::byte> data(8 * kPiece);
  Reader reader(input);
  for (int rounds = 0; rounds < 300 && !reader.is_empty(); ++rounds) {
    const auto what = reader.number<uint8_t>();
    const Rank far = what & 1 ? 0 : 4;
    Channel& channel = **relay->channel(far, what & 2 ? 1 : 0);
    const size_t bytes = reader.below(data.size());
    if (what % 7 == 0) {
      if (!channel.post_receive({.expected = {}, .size_bytes = bytes, .target = data.data(), .token = 8}).is_ok())
        return;
    } else if (what % 7 == 1) {
      if (!channel.post_send({.envelope = {}, .payload = ConstBytes(data).first(bytes), .token = 16}).is_ok()) return;
    } else if (what % 7 == 2 && !under.sends.empty()) {
      under.done.push_back(under.sends.front());
      under.sends.pop_front();
    } else {
      std::deque<Receive>& posted = under.pipes[{what & 4 ? 1 : 3, MessageRoutes::kChannels}]->receives;
      if (posted.empty()) continue;  // its buffers are full
      const Receive receive = posted.front();
      posted.pop_front();
      if (receive.size_bytes == sizeof(RelayRecord)) {
        RelayRecord record;
        record.source = what & 8 ? reader.number<int32_t>() : far;
        record.destination = what & 16 ? reader.number<int32_t>() : 2;
        record.index = what & 32 ? reader.number<uint32_t>() : static_cast<uint32_t>(reader.below(2));
        record.body_bytes = static_cast<uint32_t>(what & 64 ? reader.below(kPiece + 2) : 0);
        record.message_bytes = what & 128 ? reader.number<uint64_t>() : bytes;
        record.offset_bytes = reader.below(3) * kPiece;
        std::memcpy(receive.target, &record, sizeof record);
      } else {
        require(receive.size_bytes <= kPiece);
        std::memset(receive.target, 1, receive.size_bytes);
      }
      under.done.push_back(receive.token);
    }
    Events events;
    if (!relay->progress(events).is_ok() || events.mismatch) return;
    for (const Token token : events.completed) require(token == 8 || token == 16);
  }
}

}  // namespace
}  // namespace ccom
