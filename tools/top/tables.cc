// SPDX-License-Identifier: Apache-2.0
//
// The lines that a TopModel shows.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "tools/jobs/report.h"
#include "tools/jobs/words.h"
#include "tools/top/model.h"

namespace ccom {
namespace {

using Style = TopLine::Style;

constexpr size_t kMostFindings = 4;
constexpr std::array kOrders = {"rank", "calls/s", "bytes/s", "in calls", "waited"};

// Columns: to the left of a width, or to the right.
std::string left(const std::string& text, size_t width) {
  std::string fitted = cut(text, width);
  if (fitted.size() < width) fitted.append(width - fitted.size(), ' ');
  return fitted + " ";
}
std::string right(const std::string& text, size_t width) {
  return (text.size() < width ? std::string(width - text.size(), ' ') : "") + text + " ";
}

std::string rate_columns(const std::optional<Rate>& rate) {
  if (!rate) return right("-", 7) + right("-", 8) + right("-", 7) + right("-", 7);
  return right(short_figure(rate->calls), 7) + right(short_figure(rate->bytes) + "B", 8) +
         right(percent(rate->in_calls), 7) + right(percent(rate->waited), 7);
}
std::string rate_heads() { return right("CALLS/S", 7) + right("B/S", 8) + right("IN CALL", 7) + right("WAITED", 7); }

// The lines of a list that are shown, so that `at` is among them.
std::pair<size_t, size_t> window(size_t size, size_t at, size_t most) {
  if (most == 0 || size <= most) return {0, size};
  const size_t first = std::min(at < most / 2 ? 0 : at - most / 2, size - most);
  return {first, first + most};
}

std::string rank_numbers(const std::vector<Rank>& ranks) {
  if (ranks.empty()) return "-";
  const std::string text = name_ranks(ranks);
  return text.substr(text.find(' ') + 1);
}

std::string wait_of(const RankActivity& activity) {
  return is_waiting(activity) ? std::to_string(activity.waits_for) + " " + short_seconds(activity.waited) : "";
}

std::string milliseconds(double seconds) { return printed("%.2f ms", seconds * 1e3); }

bool has_several_hosts(const CommunicatorSeen& communicator) {
  return std::ranges::any_of(communicator.seen,
                             [&](const RankSeen& rank) { return rank.host != communicator.seen.front().host; });
}

const std::array kHelp = {"up, down     select a communicator, or a rank",
                          "enter        ranks of the communicator; history of the rank",
                          "esc          back",
                          "s            sort ranks by rank, calls/s, bytes/s, share in calls, share waited",
                          "p, space     pause and go on",
                          "l            connections of the processes",
                          "q            quit"};

}  // namespace

std::string TopModel::late_in(const CommunicatorSeen& communicator) const {
  std::vector<Rank> late;
  for (const Health::LateRank& each : health_.late)
    if (each.communicator == communicator.number) late.push_back(each.rank);
  std::ranges::sort(late);
  return late.empty() ? "" : rank_numbers(late);
}

TopLine TopModel::title() const {
  size_t ranks = 0;
  std::vector<std::tuple<bool, std::string, int32_t>> processes;
  for (const CommunicatorSeen& communicator : seen_.communicators) {
    ranks += communicator.seen.size();
    for (const RankSeen& rank : communicator.seen)
      processes.emplace_back(rank.is_here(), rank.is_here() ? "" : rank.host, rank.activity.pid);
  }
  std::ranges::sort(processes);
  const auto distinct = static_cast<size_t>(std::unique(processes.begin(), processes.end()) - processes.begin());
  const auto count = [](size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string text = "ccom-top: " + std::string(name_of(health_.verdict)) + ", " +
                     count(seen_.communicators.size(), "communicator") + ", " + std::to_string(distinct) +
                     (distinct == 1 ? " process, " : " processes, ") + count(ranks, "rank");
  if (is_paused_) text += " [paused]";
  const bool is_well = health_.verdict == Health::Verdict::Healthy || health_.verdict == Health::Verdict::Nothing;
  return {std::move(text), is_well ? Style::Title : Style::Warning};
}

TopLine TopModel::footer() const {
  return {"q quit  p pause  s sort: " + std::string(kOrders[static_cast<size_t>(order_)]) +
              "  enter open  esc back  l links  ? help",
          Style::Title};
}

void TopModel::add_communicators(std::vector<TopLine>& lines, size_t most) const {
  lines.push_back({left("COMM", 6) + left("NAME", 12) + right("RANKS", 6) + right("HOSTS", 5) + rate_heads() +
                       right("AGE", 8) + "LATE",
                   Style::Header});
  const CommunicatorSeen* const chosen = selected();
  const size_t at = chosen == nullptr ? 0 : static_cast<size_t>(chosen - seen_.communicators.data());
  const auto [first, last] = window(seen_.communicators.size(), at, most);
  for (size_t i = first; i < last; ++i) {
    const CommunicatorSeen& each = seen_.communicators[i];
    const std::string late = each.error.empty() ? late_in(each) : "failed";
    const bool is_chosen = &each == chosen && most != 0;
    lines.push_back({left(short_number(each.number), 6) + left((each.parent != 0 ? "  " : "") + each.name, 12) +
                         right(std::to_string(each.ranks), 6) + right(std::to_string(each.hosts), 5) +
                         rate_columns(rates_ ? rates_->of(each) : std::nullopt) + right(short_seconds(each.age), 8) +
                         late,
                     is_chosen      ? Style::Selected
                     : late.empty() ? Style::Plain
                                    : Style::Warning});
  }
}

void TopModel::add_ranks(const CommunicatorSeen& communicator, std::vector<TopLine>& lines, size_t most) const {
  const bool names_hosts = has_several_hosts(communicator);
  lines.push_back({right("RANK", 5) + (names_hosts ? left("HOST", 10) : "") + right("PID", 7) + rate_heads() +
                       left("WAITS FOR", 11) + "DOES",
                   Style::Header});
  const std::vector<const RankSeen*> ranks = ranks_of(communicator);
  const auto chosen =
      std::ranges::find(ranks, rank_, [](const RankSeen* each) { return each->activity.rank; }) - ranks.begin();
  const auto [first, last] = window(ranks.size(), view_ == View::Ranks ? static_cast<size_t>(chosen) : 0, most);
  for (size_t i = first; i < last; ++i) {
    const RankActivity& own = ranks[i]->activity;
    const std::optional<Rate> rate = rates_ ? rates_->of(communicator.number, own.rank) : std::nullopt;
    const bool is_late = std::ranges::any_of(health_.late, [&](const Health::LateRank& late) {
      return late.communicator == communicator.number && late.rank == own.rank;
    });
    const bool is_chosen = view_ == View::Ranks && i == static_cast<size_t>(chosen) && most != 0;
    lines.push_back({right(std::to_string(own.rank), 5) + (names_hosts ? left(ranks[i]->host, 10) : "") +
                         right(own.pid == 0 ? "-" : std::to_string(own.pid), 7) + rate_columns(rate) +
                         left(wait_of(own), 11) + does(own),
                     is_chosen                                           ? Style::Selected
                     : is_late || own.state == RankActivity::State::Dead ? Style::Warning
                                                                         : Style::Plain});
  }
  if (!communicator.unknown.empty()) lines.push_back({unknown_ranks(communicator), Style::Warning});
}

void TopModel::add_history(std::vector<TopLine>& lines, size_t most) const {
  const CommunicatorSeen* const communicator = selected();
  const auto samples = history_.find({communicator->number, rank_});
  lines.push_back({title_of(*communicator) + ", rank " + std::to_string(rank_), Style::Header});
  lines.push_back({right("AGO", 8) + rate_heads() + "DID", Style::Header});
  if (samples == history_.end()) return;
  const double now = static_cast<double>(seen_.at_ns) * 1e-9;
  for (const Sample& sample : samples->second) {
    if (most != 0 && lines.size() >= most) break;
    lines.push_back({right(short_seconds(now - sample.at), 8) + rate_columns(sample.rate) + sample.text});
  }
}

void TopModel::add_links(std::vector<TopLine>& lines, size_t most) const {
  lines.push_back({right("PID", 7) + left("RANKS", 5) + left("FROM", 15) + left("TO", 15) + right("N", 2) +
                       right("SENT/S", 7) + right("RECV/S", 7) + right("BUSY", 5) + right("RETR", 5) + right("RTT", 8),
                   Style::Header});
  for (const LinkSeen& link : seen_.links) {
    if (most != 0 && lines.size() >= most) break;
    const std::optional<LinkRate> rate = rates_ ? rates_->of(link) : std::nullopt;
    lines.push_back({right(std::to_string(link.pid), 7) + left(rank_numbers(link.ranks), 5) + left(link.local, 15) +
                         left(link.remote, 15) + right(std::to_string(link.connections), 2) +
                         right(rate ? short_figure(rate->sent) + "B" : "-", 7) +
                         right(rate ? short_figure(rate->received) + "B" : "-", 7) +
                         right(rate ? percent(rate->sending) : "-", 5) + right(std::to_string(link.retransmits), 5) +
                         right(milliseconds(link.rtt), 8),
                     rate && rate->retransmits > 0 ? Style::Warning : Style::Plain});
  }
  if (seen_.links.empty()) lines.push_back({"no TCP connections in this network namespace"});
}

// most: of lines; 0: all, and of everything.
std::vector<TopLine> TopModel::body(size_t most) const {
  std::vector<TopLine> lines;
  const CommunicatorSeen* const communicator = selected();
  if (view_ == View::Help) {
    for (const char* line : kHelp) lines.push_back({line});
  } else if (view_ == View::Links) {
    add_links(lines, most);
  } else if (communicator == nullptr) {
    lines.push_back({"no communicators of this user on this host"});
  } else if (view_ == View::History) {
    add_history(lines, most);
  } else if (most == 0) {
    add_communicators(lines, 0);
    for (const CommunicatorSeen& each : seen_.communicators) {
      lines.push_back({""});
      lines.push_back({title_of(each) + told_before(each)});
      add_ranks(each, lines, 0);
    }
    if (seen_.links.empty()) return lines;
    lines.push_back({""});
    add_links(lines, 0);
  } else {
    const size_t rows = most > 4 ? most - 3 : 1;  // without two heads and the empty line
    const size_t upper = view_ == View::Ranks ? 1 : std::max<size_t>(std::min(seen_.communicators.size(), rows / 2), 1);
    add_communicators(lines, upper);
    lines.push_back({""});
    add_ranks(*communicator, lines, rows > upper ? rows - upper : 1);
  }
  return lines;
}

std::vector<TopLine> TopModel::lines(size_t width, size_t height) const {
  std::vector<TopLine> all{title()};
  std::vector<std::string> sentences = findings(seen_, health_);
  if (height != 0 && sentences.size() > kMostFindings) sentences.resize(kMostFindings);
  if (height != 0 && height < 12) sentences.clear();
  for (std::string& sentence : sentences) all.push_back({std::move(sentence), Style::Warning});
  const size_t used = all.size() + 1;
  for (TopLine& line : body(height == 0 ? 0 : height > used ? height - used : 1)) all.push_back(std::move(line));
  if (height != 0) {
    all.resize(height > 0 ? height - 1 : 0);
    all.push_back(footer());
  }
  if (width != 0)
    for (TopLine& line : all) line.text = cut(line.text, width);
  return all;
}

}  // namespace ccom
