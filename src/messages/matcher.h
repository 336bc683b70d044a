// SPDX-License-Identifier: Apache-2.0
//
// Matches receives and messages: a message goes to the earliest receive posted for its tag and for its peer or any
// peer; a receive gets the earliest message. Unmatched receives and messages are queued. Those of calls (call_type) and
// others never match.
//
// Pure: no clock, no transports. Constant time, except that a receive from any rank scans all ranks.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "messages/message.h"

namespace ccom {

// A message that was received or announced.
struct Arrival {
  Rank peer = -1;
  int64_t tag = 0;
  uint16_t call_type = 0;
  uint64_t bytes = 0;
  bool is_eager = false;
  uint64_t id = 0;                       // announced: the sender's identifier of it
  std::unique_ptr<std::byte[]> payload;  // eager, from another rank: a copy
  std::shared_ptr<Message> own;          // sent by this rank to itself
};

class Matcher {
 public:
  explicit Matcher(int nranks) : nranks_(nranks) {}

  // Takes the earliest receive that matches a message from `peer`, or returns null.
  std::shared_ptr<Message> take_receive(Rank peer, int64_t tag, bool of_call = false);
  void keep_receive(std::shared_ptr<Message> receive);
  // Takes the earliest message that matches a receive from `peer` (or kAnyRank).
  std::optional<Arrival> take_arrival(Rank peer, int64_t tag, bool of_call = false);
  void keep_arrival(Arrival arrival);

  // The earliest queued receive that names this peer, or null.
  std::shared_ptr<Message> awaiting(Rank peer) const;
  void clear();

 private:
  struct Key {
    Rank peer;
    int64_t tag;
    bool of_call = false;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return (static_cast<uint64_t>(key.tag) * 0x9e3779b97f4a7c15U) ^
             (static_cast<uint64_t>(static_cast<uint32_t>(key.peer)) * 0xbf58476d1ce4e5b9U) ^
             (key.of_call ? 0x94d049bb133111ebU : 0);
    }
  };
  template <typename T>
  struct Numbered {
    uint64_t number;  // order of arrival
    T item;
  };
  // Empty queues are kept, because tags are usually reused.
  template <typename T>
  using Table = std::unordered_map<Key, std::deque<Numbered<T>>, Hash>;
  template <typename T>
  static T take_front(Table<T>& table, typename Table<T>::iterator found);

  int nranks_;
  uint64_t receives_kept_ = 0, arrivals_kept_ = 0;  // in total
  Table<std::shared_ptr<Message>> receives_;
  Table<Arrival> arrivals_;
};

}  // namespace ccom
