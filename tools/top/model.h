// SPDX-License-Identifier: Apache-2.0
//
// What ccom-top shows: from looks at the host and keys that were pressed to lines of text. Pure: knows no terminal.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/jobs/health.h"
#include "tools/jobs/rates.h"
#include "tools/jobs/seen.h"

namespace ccom {

struct TopLine {
  enum class Style : uint8_t { Plain, Title, Header, Selected, Warning };
  std::string text;
  Style style = Style::Plain;
};

class TopModel {
 public:
  enum class Key : uint8_t { Up, Down, Enter, Back, Sort, Pause, Links, Help };
  enum class View : uint8_t { Communicators, Ranks, History, Links, Help };
  enum class Order : uint8_t { ByRank, ByCalls, ByBytes, ByShare, ByWait };

  explicit TopModel(double late_seconds) : late_seconds_(late_seconds) {}

  // A new look, unless the display is paused.
  void add(HostSeen seen);
  void press(Key key);

  // At most `height` lines of at most `width` columns; as many as there are at height 0, of any width at width 0.
  std::vector<TopLine> lines(size_t width, size_t height) const;

  const HostSeen& seen() const { return seen_; }
  const Health& health() const { return health_; }
  const Rates* rates() const { return rates_ ? &*rates_ : nullptr; }
  View view() const { return view_; }
  bool is_paused() const { return is_paused_; }

 private:
  struct Sample {
    double at = 0;  // seconds, of the looks' clock
    Rate rate;
    std::string text;
  };
  using Place = std::pair<uint64_t, Rank>;

  void remember();
  void move(int by);
  const CommunicatorSeen* selected() const;
  std::vector<const RankSeen*> ranks_of(const CommunicatorSeen& communicator) const;
  std::string late_in(const CommunicatorSeen& communicator) const;

  TopLine title() const;
  TopLine footer() const;
  void add_communicators(std::vector<TopLine>& lines, size_t most) const;
  void add_ranks(const CommunicatorSeen& communicator, std::vector<TopLine>& lines, size_t most) const;
  void add_history(std::vector<TopLine>& lines, size_t most) const;
  void add_links(std::vector<TopLine>& lines, size_t most) const;
  std::vector<TopLine> body(size_t most) const;

  const double late_seconds_;
  HostSeen seen_;
  Health health_;
  std::optional<Rates> rates_;
  std::map<Place, std::deque<Sample>> history_{};
  uint64_t communicator_ = 0;  // that is selected, if it is there
  Rank rank_ = -1;
  View view_ = View::Communicators;
  View before_help_ = View::Communicators;
  Order order_ = Order::ByRank;
  bool is_paused_ = false;
};

}  // namespace ccom
