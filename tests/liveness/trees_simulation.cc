// SPDX-License-Identifier: Apache-2.0
#include "trees_simulation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "liveness/state.h"

namespace ccom {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStepNs = kMs / 4;
constexpr int64_t kDeadNs = 3000 * kMs;
constexpr int64_t kOutcomeNs = 300 * kMs;

class TreesSimulation {
 public:
  explicit TreesSimulation(uint64_t seed) : random_(seed), latest_ns_(below(4) * 4 * kMs) {
    make_hosts(2 + below(11));
    connect();
  }

  History run() {
    run_until(10 * kMs);
    kill_some();
    run_until(now_ + kOutcomeNs);
    expect_one_error();
    return {history_, broken_};
  }

 private:
  struct Board {
    Status error{};
    std::vector<Status> lost{};
    std::set<Rank> lost_ranks{};
  };
  // One rank, with its place in the trees: of none, one or both.
  struct Process {
    Rank rank = -1;
    int host = -1;
    std::map<int, TreeState> trees{};
    size_t taken = 0;  // of the board's losses
    bool has_told = false;
    int64_t wakes_ns = 0;
    int64_t died_ns = INT64_MAX;
  };
  struct Parcel {
    int64_t arrival_ns;
    std::optional<ControlMessage> message;  // none: the connection ends
  };
  struct Edge {
    int tree, from, to;
    auto operator<=>(const Edge&) const = default;
  };

  int64_t below(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }
  size_t hosts() const { return boards_.size(); }
  bool is_dead(const Process& process) const { return now_ >= process.died_ns; }
  void breaks(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }

  void make_hosts(int64_t count) {
    boards_.resize(static_cast<size_t>(count));
    std::vector<TreeHost> all;
    Rank rank = 0;
    for (int host = 0; host < count; ++host) {
      const bool has_children = kTreeDegree * host + 1 < count;
      all.push_back({.name = "host" + std::to_string(host), .ranks = {}});
      for (int64_t left = has_children ? 2 + below(2) : 1 + below(3); left > 0; --left) {
        all.back().ranks.push_back(rank);
        processes_.push_back({.rank = rank++, .host = host});
      }
    }
    for (int tree = 0; tree < kTrees; ++tree) {
      TreeConfig config{.hosts = all, .dead_ns = kDeadNs, .settle_ns = kSettleNs, .decision_ns = kDecisionNs};
      for (int host = 0; host < count; ++host) {
        TreeHost& own = config.hosts[static_cast<size_t>(host)];
        own.member = own.ranks[std::min(static_cast<size_t>(tree_member_index(host, tree)), own.ranks.size() - 1)];
      }
      for (Process& process : processes_) {
        config.self = process.host;
        if (config.hosts[static_cast<size_t>(process.host)].member == process.rank) process.trees.emplace(tree, config);
      }
    }
    history_ = std::to_string(count) + " hosts, " + std::to_string(rank) + " ranks, late by up to " +
               std::to_string(latest_ns_ / kMs) + " ms:";
  }

  void connect() {
    for (Process& process : processes_)
      for (auto& [tree, state] : process.trees)
        for (const int other : tree_neighbours(process.host, static_cast<int>(hosts())))
          drive(process, tree, [&](TreeOutputs& out) { state.attach(other, now_, out); });
  }

  void run_until(int64_t end_ns) {
    for (; now_ < end_ns; now_ += kStepNs)
      for (Process& process : processes_) {
        if (is_dead(process) || now_ < process.wakes_ns) continue;
        poll(process);
        process.wakes_ns = now_ + (latest_ns_ > 0 ? below(latest_ns_) : 0);
      }
  }

  // As the liveness thread does (MonitorImpl::poll).
  void poll(Process& process) {
    Board& board = boards_[static_cast<size_t>(process.host)];
    tell_error(process);
    for (auto& [tree, state] : process.trees) {
      deliver(process, tree, state);
      if (now_ >= state.next_tick_ns()) drive(process, tree, [&](TreeOutputs& out) { state.tick(now_, out); });
    }
    find_dead_mates(process, board);
    if (board.error.is_ok())
      for (; process.taken < board.lost.size(); ++process.taken)
        for (auto& [tree, state] : process.trees) {
          const Status loss = board.lost[process.taken];
          drive(process, tree, [&](TreeOutputs& out) { state.find_lost(loss, now_, out); });
        }
    tell_error(process);
  }

  void tell_error(Process& process) {
    const Status& error = boards_[static_cast<size_t>(process.host)].error;
    if (process.has_told || error.is_ok()) return;
    for (auto& [tree, state] : process.trees) drive(process, tree, [&](TreeOutputs& out) { state.fail(error, out); });
    process.has_told = true;
  }

  void find_dead_mates(const Process& process, Board& board) {
    for (const Process& mate : processes_)
      if (mate.host == process.host && is_dead(mate))
        note_lost(board,
                  Status(Code::RemoteError, "rank " + std::to_string(mate.rank) + " died").with_peers({mate.rank}));
  }

  static void note_lost(Board& board, const Status& loss) {
    for (const Rank rank : loss.peers())
      if (board.lost_ranks.insert(rank).second) board.lost.push_back(Status(loss).with_peers({rank}));
  }

  void deliver(Process& process, int tree, TreeState& state) {
    for (const int other : tree_neighbours(process.host, static_cast<int>(hosts()))) {
      std::deque<Parcel>& parcels = parcels_[{tree, other, process.host}];
      for (; !parcels.empty() && parcels.front().arrival_ns <= now_; parcels.pop_front()) {
        const std::optional<ControlMessage>& message = parcels.front().message;
        drive(process, tree, [&](TreeOutputs& out) {
          if (message) state.receive(other, *message, now_, out);
          if (!message) state.lose(other, "closed by the peer", now_, out);
        });
      }
    }
  }

  template <typename Input>
  void drive(Process& process, int tree, Input input) {
    TreeOutputs outputs;
    input(outputs);
    Board& board = boards_[static_cast<size_t>(process.host)];
    for (TreeOutput& output : outputs) {
      if (output.kind == TreeOutput::Kind::Send) post({tree, process.host, output.host}, std::move(output.message));
      if (output.kind == TreeOutput::Kind::Lose) note_lost(board, output.message.error);
      if (output.kind == TreeOutput::Kind::Report && board.error.is_ok()) board.error = output.message.error;
    }
  }

  void post(const Edge& edge, std::optional<ControlMessage> message, int64_t after_ns = 0) {
    std::deque<Parcel>& parcels = parcels_[edge];
    const int64_t arrival_ns = now_ + after_ns + kMs / 10 + below(kMs);
    parcels.push_back(
        {parcels.empty() ? arrival_ns : std::max(arrival_ns, parcels.back().arrival_ns), std::move(message)});
  }

  void kill_some() {
    Process& first = any_process();
    kill(first);
    if (below(3) == 0) return;
    run_until(now_ + below(12 * kMs));
    Process& second = any_process();
    if (second.host != first.host) kill(second);
  }
  Process& any_process() { return processes_[static_cast<size_t>(below(static_cast<int64_t>(processes_.size())))]; }
  void kill(Process& process) {
    history_ += " kill " + std::to_string(process.rank) + " of host " + std::to_string(process.host) + " at " +
                std::to_string(static_cast<double>(now_) / kMs) + " ms";
    process.died_ns = now_;
    victims_.insert(process.rank);
    for (const auto& [tree, state] : process.trees)
      for (const int other : tree_neighbours(process.host, static_cast<int>(hosts())))
        post({tree, process.host, other}, std::nullopt, below(30 * kMs));
  }

  void expect_one_error() {
    std::set<std::vector<Rank>> named;
    for (const Process& process : processes_) {
      if (is_dead(process)) continue;
      const Status& error = boards_[static_cast<size_t>(process.host)].error;
      const std::string where = " at rank " + std::to_string(process.rank) + ": " + error.message();
      if (error.is_ok()) breaks("no error" + where);
      const auto is_victim = [this](Rank rank) { return victims_.contains(rank); };
      if (!error.is_ok() && (error.peers().empty() || !std::ranges::all_of(error.peers(), is_victim)))
        breaks("a wrong victim" + where);
      if (!error.is_ok()) named.insert(error.peers());
    }
    if (named.size() > 1) breaks(std::to_string(named.size()) + " sets of ranks are named");
  }

  std::mt19937_64 random_;
  int64_t latest_ns_;
  int64_t now_ = 0;
  std::vector<Board> boards_;
  std::vector<Process> processes_;
  std::map<Edge, std::deque<Parcel>> parcels_;
  std::set<Rank> victims_;
  std::string history_, broken_;
};

}  // namespace

History simulate_trees(uint64_t seed) { return TreesSimulation(seed).run(); }

}  // namespace ccom
