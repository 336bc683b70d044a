// SPDX-License-Identifier: Apache-2.0
//
// What arrives at the ofi transport from a peer that holds the key: words of the handshake in any order and with any
// terms, then authentic messages with any fields, and immediates of writes.
#include "tests/fuzz/ofi_peer.h"
#include "transports/ofi/addresses.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

using fuzz::Reader;
using fuzz::require;

constexpr size_t kMostPosted = 24;

// A posted operation with memory of its own size.
struct Posted final : Sink {
  void consume(size_t offset_bytes, ConstBytes bytes) override {
    require(offset_bytes <= size_bytes && bytes.size() <= size_bytes - offset_bytes);
    consumed_bytes += bytes.size();
    for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
  }
  void reserve(size_t size) {
    size_bytes = size;
    memory.reset(static_cast<std::byte*>(std::calloc(1, size + 1)));
  }
  size_t size_bytes = 0, consumed_bytes = 0;
  unsigned sum = 0;
  bool is_sink = false, may_end = false, is_over = false;
  std::unique_ptr<std::byte, decltype(&std::free)> memory{nullptr, &std::free};
};

class Run {
 public:
  explicit Run(Reader& reader)
      : reader_(reader), traits_(reader.number<uint8_t>()), peer_(air_, key_, self() == 0 ? 1 : 0, has_checksum()) {
    const OfiConfig config{.rank = self(),
                           .communicator = 5,
                           .key = key_,
                           .provider = "memory",
                           .bind_address = "",
                           .checksum = has_checksum()};
    std::vector<std::unique_ptr<Endpoint>> rails;
    if ((traits_ & 4) == 0) rails.push_back(open_endpoint(air_, true));
    transport_ = *OfiTransport::create(config, open_endpoint(air_, false), std::move(rails));
  }
  ~Run() {
    air_.is_cut = true;  // nobody to take leave of
    transport_.reset();
  }

  // `greets` makes the peer say something; connecting ends with an error when it returns false.
  bool connect(const std::function<bool(FuzzPeer&)>& greets) {
    air_.meanwhile = [this, &greets]() -> Status {
      return greets(peer_) ? Status::ok() : error(Code::SystemError, "the input is over");
    };
    const Peer peer{1 - self(), join_addresses({"messages", "rail"}), kFuzzChannels};
    const Status status = transport_->connect({&peer, 1}, Deadline::after(std::chrono::seconds(20)));
    air_.meanwhile = nullptr;
    require(!status.is_ok() || peer_.has_session());
    require(status.code() != Code::Timeout);
    return status.is_ok();
  }

  void talk() {
    while (!reader_.is_empty()) {
      const auto kind = reader_.number<uint8_t>();
      if (kind % 4 == 0) {
        if (!post_receive(kind)) return;
      } else if (kind % 4 == 1) {
        if (!post_send(kind)) return;
      } else {
        peer_.say(reader_, sizes_);
      }
      if (kind % 16 >= 4 && !progress()) return;  // several things may have happened since the last time
    }
    progress();
  }

 private:
  Rank self() const { return traits_ & 1; }
  bool has_checksum() const { return (traits_ & 2) != 0; }

  size_t choose_size(uint8_t kind) {
    return (kind & 32) == 0 ? reader_.below(3000) : (kind & 64) == 0 ? reader_.below(20'000) : reader_.below(200'000);
  }
  Posted& new_posted(uint8_t kind) {
    Posted& made = posted_.emplace_back();
    made.reserve(choose_size(kind));
    return made;
  }
  Channel& channel(int index) { return **transport_->channel(1 - self(), index); }

  // False if the run is over.
  bool post_receive(uint8_t kind) {
    if (posted_.size() >= kMostPosted) return true;
    const int index = (kind >> 2) % kFuzzChannels;
    const Token token = posted_.size();
    Posted& made = new_posted(kind);
    made.is_sink = (kind & 16) != 0;
    made.may_end = may_end_[index] |= (kind & 128) != 0;  // later ones may as well
    sizes_[index].push_back(made.size_bytes);
    std::byte* const target = made.is_sink ? nullptr : made.memory.get();
    return channel(index)
        .post_receive({{}, made.size_bytes, target, made.is_sink ? &made : nullptr, token, made.may_end})
        .is_ok();
  }
  bool post_send(uint8_t kind) {
    if (posted_.size() >= kMostPosted) return true;
    const Token token = posted_.size();
    const Posted& made = new_posted(kind);
    return channel((kind >> 2) % kFuzzChannels).post_send({{}, {made.memory.get(), made.size_bytes}, token}).is_ok();
  }

  // Each operation ends once; after an error, which stays, none does. False after an error.
  bool progress() {
    Events events;
    const Status status = transport_->progress(events);
    for (const Token token : events.completed) {
      end(token);
      if (posted_[token].is_sink) require(posted_[token].consumed_bytes == posted_[token].size_bytes);
    }
    for (const Token token : events.ended) {
      end(token);
      require(posted_[token].may_end);
    }
    if (status.is_ok() && !events.mismatch) return true;
    Events later;
    require(!transport_->progress(later).is_ok());
    require(later.completed.empty() && later.ended.empty());
    transport_->stop();
    return false;
  }
  void end(Token token) {
    require(token < posted_.size() && !posted_[token].is_over);
    posted_[token].is_over = true;
  }

  static constexpr uint8_t kKey[Secret::kBytes] = {1};
  Reader& reader_;
  const uint8_t traits_;
  const Secret key_{kKey};
  Air air_;
  FuzzPeer peer_;
  std::vector<size_t> sizes_[kFuzzChannels];
  bool may_end_[kFuzzChannels] = {};
  std::deque<Posted> posted_;
  std::unique_ptr<OfiTransport> transport_;
};

CCOM_FUZZ_TARGET(ofi_handshake) {
  Reader reader(input);
  Run run(reader);
  const auto greets = [&reader](FuzzPeer& peer) {
    if (reader.is_empty()) return false;
    peer.greet(reader);
    return true;
  };
  if (run.connect(greets)) run.talk();
}

CCOM_FUZZ_TARGET(ofi_messages) {
  Reader reader(input);
  Run run(reader);
  const auto greets = [](FuzzPeer& peer) {
    peer.greet();
    return true;
  };
  require(run.connect(greets));
  run.talk();
}

CCOM_FUZZ_TARGET(ofi_address) {
  const std::vector<std::string> addresses = split_addresses(fuzz::text_of(input));
  if (!addresses.empty()) require(join_addresses(addresses) == fuzz::text_of(input));
}

}  // namespace
}  // namespace ccom::ofi
