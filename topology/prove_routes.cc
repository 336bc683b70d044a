// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "topology/rank_routes.h"

namespace ccom {
namespace {

// A lane of a pair of ranks, in one direction: room for pieces of messages at its end.
struct Room {
  Rank from = -1, to = -1;
  int lane = 0;
};

// Which room has to become free for which other one to become free.
class Waits {
 public:
  Waits(int nranks, int lanes) : nranks_(static_cast<uint64_t>(nranks)), lanes_(static_cast<uint64_t>(lanes)) {}

  void add(const Room& room, const Room& behind) {
    const size_t first = index_of(room), second = index_of(behind);
    waits_[first].push_back(second);
  }

  // Takes away rooms that wait for nothing that is left, until none does.
  Status check() {
    std::vector<size_t> left(rooms_.size()), free;
    std::vector<std::vector<size_t>> waiting(rooms_.size());
    for (size_t room = 0; room < rooms_.size(); ++room) {
      left[room] = waits_[room].size();
      if (left[room] == 0) free.push_back(room);
      for (const size_t behind : waits_[room]) waiting[behind].push_back(room);
    }
    for (size_t i = 0; i < free.size(); ++i) {
      for (const size_t room : waiting[free[i]]) {
        if (--left[room] == 0) free.push_back(room);
      }
    }
    return free.size() == rooms_.size() ? Status::ok() : circle(left);
  }

 private:
  size_t index_of(const Room& room) {
    const uint64_t key = (static_cast<uint64_t>(room.from) * nranks_ + static_cast<uint64_t>(room.to)) * lanes_ +
                         static_cast<uint64_t>(room.lane);
    const auto [known, is_new] = index_.try_emplace(key, rooms_.size());
    if (is_new) {
      rooms_.push_back(room);
      waits_.emplace_back();
    }
    return known->second;
  }

  // Every room with waits that are left waits for one of the same kind, so following them leads into a circle.
  Status circle(const std::vector<size_t>& left) const {
    size_t at = 0;
    while (left[at] == 0) ++at;
    std::vector<bool> seen(rooms_.size());
    const auto follow = [&](size_t room) {
      for (const size_t behind : waits_[room]) {
        if (left[behind] > 0) return behind;
      }
      return room;
    };
    for (; !seen[at]; at = follow(at)) seen[at] = true;
    std::string text;
    const size_t start = at;
    do {
      const Room& room = rooms_[at];
      text += (text.empty() ? "" : ", ") + std::to_string(room.from) + "->" + std::to_string(room.to) + " lane " +
              std::to_string(room.lane);
      at = follow(at);
    } while (at != start);
    return error(Code::InternalError, "routes: ranks can wait for room in a circle: %s", text.c_str());
  }

  const uint64_t nranks_, lanes_;
  std::unordered_map<uint64_t, size_t> index_;
  std::vector<Room> rooms_;
  std::vector<std::vector<size_t>> waits_;
};

Status check_hop(const Topology& topology, int lanes, Rank at, Rank to, const Hop& hop) {
  const char* wrong = nullptr;
  if (hop.to < 0 || hop.to >= topology.nranks()) {
    wrong = "leads nowhere";
  } else if (hop.to == at || !topology.linked(at, hop.to)) {
    wrong = "does not go along a link";
  } else if (hop.lane < 0 || hop.lane >= lanes) {
    wrong = "takes a lane that does not exist";
  }
  if (wrong == nullptr) return {};
  return error(Code::InternalError, "routes: the way from rank %d to rank %d %s (next is rank %d on lane %d)", at, to,
               wrong, hop.to, hop.lane);
}

}  // namespace

Status prove_routes(const Topology& topology, int lanes, const NextHop& next) {
  const int nranks = topology.nranks();
  Waits waits(nranks, lanes);
  for (Rank to = 0; to < nranks; ++to) {
    const int host = topology.ranks[static_cast<size_t>(to)].host;
    const std::vector<Rank> mates = topology.ranks_of(host);
    std::vector<Hop> hops(static_cast<size_t>(nranks));
    for (const Rank at : mates) {
      if (at == to) continue;
      hops[static_cast<size_t>(at)] = next(at, to);
      CCOM_TRY(check_hop(topology, lanes, at, to, hops[static_cast<size_t>(at)]));
    }
    for (const Rank from : mates) {
      size_t steps = 0;
      for (Rank at = from; at != to; at = hops[static_cast<size_t>(at)].to) {
        if (++steps <= mates.size()) continue;
        return error(Code::InternalError, "routes: a message from rank %d to rank %d goes round for ever", from, to);
      }
      const Hop& first = hops[static_cast<size_t>(from)];
      if (from == to || first.to == to) continue;
      const Hop& second = hops[static_cast<size_t>(first.to)];
      waits.add({from, first.to, first.lane}, {first.to, second.to, second.lane});
    }
  }
  return waits.check();
}

}  // namespace ccom
