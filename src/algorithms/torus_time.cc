// SPDX-License-Identifier: Apache-2.0
#include "algorithms/torus_time.h"

#include <algorithm>
#include <queue>

#include "algorithms/streams.h"

namespace ccom {
namespace {

// A stream's messages one way round one ring, window after window, each when the one before it has started.
struct Lane {
  size_t lap = 0;
  size_t links = 0;
  TorusCosts::Dimension speed;
  double bytes = 0;    // of a message
  int steps = 0;       // of a window
  int half_step = -1;  // whose message has half of the bytes
  bool reduces = false;
  int window = 0, step = 0;  // of the next message
};

// A lap of a stream.
struct Ring {
  size_t first_lane = 0, lanes = 0;
  bool is_first = false, is_last = false;  // of its stream
  std::vector<size_t> ended;               // lanes, by window
};

class Walk {
 public:
  Walk(const Level& level, int windows, double bytes, const TorusCosts& costs)
      : level_(level), windows_(windows), costs_(costs), free_ns_(2 * level.dims.size()) {
    const std::vector<TorusStream> streams = streams_of(level);
    for (const TorusStream& stream : streams) {
      add(stream, bytes * stream.weight / weight_sum(streams) / windows);
    }
  }

  double run() {
    // What needs no data of others, in the order of the plan: a window of all streams before the next one of any.
    for (int window = 0; window < windows_; ++window) {
      for (const Ring& lap : laps_) {
        if (lap.is_first) begin(lap, window, 0);
      }
    }
    has_begun_ = true;
    double last_ns = 0;
    while (!under_way_.empty()) {
      const Arrival arrival = under_way_.top();
      under_way_.pop();
      last_ns = std::max(last_ns, take_in(arrival));
    }
    return last_ns;
  }

 private:
  struct Arrival {
    double time_ns;
    size_t number;  // of equal times the first posted
    size_t lane;
    int window, step;
    double bytes;
    bool operator<(const Arrival& other) const {
      return time_ns > other.time_ns || (time_ns == other.time_ns && number > other.number);
    }
  };

  void add(const TorusStream& stream, double held) {
    const size_t first = laps_.size();
    for (const uint8_t dim : stream.order) {
      if (level_.dims[dim] == 1) continue;
      held /= level_.dims[dim];
      add_lap(stream, dim, held, true);
    }
    const size_t down = laps_.size() - first;
    for (auto dim = stream.order.rbegin(); dim != stream.order.rend(); ++dim) {
      if (level_.dims[*dim] == 1) continue;
      add_lap(stream, *dim, held, false);
      held *= level_.dims[*dim];
    }
    if (down == 0) return;
    laps_[first].is_first = true;
    laps_.back().is_last = true;
  }

  void add_lap(const TorusStream& stream, uint8_t dim, double message, bool down) {
    const int size = level_.dims[dim];
    const size_t ways = size > 2 && stream.direction == 0 ? 2 : 1;
    Lane lane{.lap = laps_.size(), .speed = costs_.dims[dim], .bytes = message, .reduces = down};
    lane.steps = ways == 2 ? size / 2 : size - 1;
    if (ways == 2 && size % 2 == 0) lane.half_step = down ? 0 : lane.steps - 1;
    laps_.push_back({lanes_.size(), ways, false, false, std::vector<size_t>(static_cast<size_t>(windows_))});
    for (size_t way = 0; way < ways; ++way) {
      lane.links = 2 * size_t{dim} + (ways == 2 ? way : size > 2 && stream.direction < 0 ? 1 : 0);
      lanes_.push_back(lane);
    }
  }

  // The data of a lap's window is there.
  void begin(const Ring& lap, int window, double now_ns) {
    for (size_t lane = lap.first_lane; lane < lap.first_lane + lap.lanes; ++lane) {
      if (lanes_[lane].window == window) start(lane, now_ns);
    }
  }

  void start(size_t index, double now_ns) {
    Lane& lane = lanes_[index];
    processor_ns_ = std::max(processor_ns_, now_ns) + costs_.post_ns;
    const double bytes = lane.step == lane.half_step ? lane.bytes / 2 : lane.bytes;
    double& free_ns = free_ns_[lane.links];
    free_ns = std::max(free_ns, processor_ns_) + bytes * lane.speed.byte_ns;
    under_way_.push({free_ns + lane.speed.latency_ns, posted_++, index, lane.window, lane.step, bytes});
    if (++lane.step < lane.steps) return;
    lane.step = 0;
    if (++lane.window < windows_ && has_begun_ && is_there(lane)) start(index, now_ns);
  }

  bool is_there(const Lane& lane) const {
    if (laps_[lane.lap].is_first) return true;
    const Ring& before = laps_[lane.lap - 1];
    return before.ended[static_cast<size_t>(lane.window)] == before.lanes;
  }

  // Returns when the rank has done what there is to do.
  double take_in(const Arrival& arrival) {
    const Lane& lane = lanes_[arrival.lane];
    const double work_ns = costs_.receive_ns + (lane.reduces ? arrival.bytes * costs_.reduced_ns : 0);
    double now_ns = arrival.time_ns;
    if (work_ns > 0) now_ns = processor_ns_ = std::max(processor_ns_, now_ns) + work_ns;
    if (arrival.step + 1 < lane.steps) {
      start(arrival.lane, now_ns);
      return now_ns;
    }
    Ring& lap = laps_[lane.lap];
    if (++lap.ended[static_cast<size_t>(arrival.window)] == lap.lanes && !lap.is_last) {
      begin(laps_[lane.lap + 1], arrival.window, now_ns);
    }
    return now_ns;
  }

  const Level& level_;
  const int windows_;
  const TorusCosts& costs_;
  std::vector<Ring> laps_;  // of each stream one after another
  std::vector<Lane> lanes_;
  std::vector<double> free_ns_;  // by links: both ways of each dimension
  std::priority_queue<Arrival> under_way_;
  double processor_ns_ = 0;
  size_t posted_ = 0;
  bool has_begun_ = false;
};

}  // namespace

double torus_allreduce_time(const Level& level, int windows, double bytes, const TorusCosts& costs) {
  return Walk(level, windows, bytes, costs).run();
}

}  // namespace ccom
