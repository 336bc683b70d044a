// SPDX-License-Identifier: Apache-2.0
//
// Headers of messages by a peer that says anything.
#include "messages/peer_protocol.h"
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
      MessageRequest request{.sends = true, .data = data, .bytes = reader.below(sizeof data), .peer = 1, .timeout_ms = 1000, .done = {}};
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
    std::memcpy(headers.posted.target, &header, sizeof header);
    if (!protocol.accept_header().is_ok()) return;
    if (header.kind == HeaderKind::Eager) {
      require(protocol.header().bytes <= kInlineBytes);
      if (kind & 32) protocol.acknowledge();
    }
    require(protocol.next_header().is_ok());
  }
}

}  // namespace
}  // namespace ccom
