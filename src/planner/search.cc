// SPDX-License-Identifier: Apache-2.0
#include "planner/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "algorithms/collectives.h"
#include "algorithms/stage_cost.h"
#include "base/collective.h"
#include "planner/column_trees.h"
#include "planner/fabric_search.h"
#include "planner/forced.h"
#include "planner/hierarchical_search.h"
#include "planner/program_notes.h"
#include "planner/program_pricing.h"
#include "planner/programs.h"
#include "planner/refusals.h"
#include "planner/shapes.h"

namespace ccom {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr size_t kMostChunks = 16;

// Collects the candidates of one question.
class Search {
 public:
  Search(const Topology& topology, const Settings& settings, const Question& question, double flows)
      : topology_(topology),
        settings_(settings),
        question_(question),
        view_(machine_view(topology)),
        pricer_(topology, view_, question, flows),
        n_(topology.nranks()),
        is_stage_(flows > 0),
        torus_asked_for_(asks_for_torus(settings.forced)) {}

  std::vector<Candidate> run() {
    add_node();
    add_hosts();
    switch (question_.collective) {
      case Collective::AllReduce:
      case Collective::ReduceScatter:
      case Collective::AllGather:
      case Collective::Barrier: find_symmetric(); break;
      case Collective::AllToAll: find_alltoall(); break;
      case Collective::SendReceive: add({"direct", MessageAlgorithm::Kind::Pairwise}); break;
      default: find_rooted(); break;
    }
    const bool asks = question_.order != SumOrder::Any || question_.rounds_once;
    if (reduces(question_.collective) && (asks || asks_for_order(settings_.forced))) add_in_order();
    refuse();
    return std::move(candidates_);
  }

 private:
  void add_node() {
    if (question_.collective == Collective::SendReceive) return;
    const char* why_not = topology_.hosts.size() > 1           ? "the ranks are on several hosts"
                          : n_ < 2                             ? "there is one rank"
                          : !uses_memory(topology_, settings_) ? "a fabric or a transport is imposed inside hosts"
                                                               : nullptr;
    if (why_not != nullptr) {
      candidates_.push_back({.program = {.algorithm = "node"}, .legal = false, .note = why_not});
      return;
    }
    Program program = node_program(topology_, question_);
    const Price priced = price_program(topology_, question_, program).whole;
    add_priced(std::move(program), priced, "");  // analyze() says more
  }

  void add_hosts() {
    if (!reaches_hosts(topology_, settings_) || is_stage_) return;
    std::vector<Program> programs = hierarchical_programs(topology_, question_);
    if (question_.order == SumOrder::Canonical || question_.rounds_once || asks_for_direct(settings_.forced)) {
      if (std::optional<Program> direct = direct_program(topology_, question_)) programs.push_back(*std::move(direct));
    }
    for (Program& program : programs) {
      has_hierarchical_ = true;
      const ProgramPrice priced = price_program(topology_, question_, program);
      std::string note = stages_note(program, priced);
      add_priced(std::move(program), priced.whole, std::move(note));
    }
  }

  void add_priced(Program program, const Price& priced, std::string note) {
    candidates_.push_back({.program = std::move(program),
                           .steps = priced.cost.steps,
                           .bytes = priced.cost.bytes,
                           .time_ns = priced.time_ns,
                           .parts = priced.parts,
                           .roundings = priced.roundings,
                           .note = std::move(note)});
  }

  void add(MessageAlgorithm algorithm, std::string why_not = "") {
    const int channels = algorithm.trees.empty() ? channels_of(algorithm.staged) : channels_of(algorithm.trees);
    if (why_not.empty() && view_.follows_fabric && channels > settings_.most_channels) {
      why_not = "needs more channels between two ranks than there are";
    }
    if (why_not.empty()) {
      std::string note;
      Price priced = cheapest_form(view_, settings_, question_, pricer_, algorithm, note);
      Program program = message_program(topology_, settings_, question_, std::move(algorithm));
      if (topology_.bytes_between_racks() > 0 && !is_stage_) wait_for_tiles(program, priced);
      add_priced(std::move(program), priced, std::move(note));
      return;
    }
    Program program = message_program(topology_, settings_, question_, std::move(algorithm));
    candidates_.push_back({.program = std::move(program), .legal = false, .note = std::move(why_not)});
  }

  // Between racks that are far apart: each tile of a program of messages begins when the one before it has ended.
  void wait_for_tiles(const Program& program, Price& priced) const {
    if (program.tile_bytes == 0) return;
    const double tiles = std::ceil(static_cast<double>(question_.bytes) / static_cast<double>(program.tile_bytes));
    const double waits_ns = std::max(tiles - 1, 0.0) * priced.parts.waits_ns;
    priced.time_ns += waits_ns;
    priced.parts.across_ns += waits_ns;
    priced.parts.waits_ns += waits_ns;
  }

  void add_staged(const char* name, Staged shape, bool needs_all_links, bool by_owner, std::string why_not = "") {
    if (needs_all_links && !view_.all_linked) why_not = kNoLinks;
    if (why_not.empty() && by_owner && !divides_evenly(shape, n_))
      why_not = "the hosts have different numbers of ranks";
    add({name, MessageAlgorithm::Kind::Staged, std::move(shape)}, why_not);
  }

  void add_tree(const char* name, Tree tree, bool needs_all_links) {
    if (!is_per_rank(question_.collective)) {
      tree.chunks = static_cast<int>(std::clamp<size_t>(question_.bytes / kChunkBytes, 1, kMostChunks));
    }
    add({name, MessageAlgorithm::Kind::Tree, {}, std::move(tree)},
        needs_all_links && !view_.all_linked ? kNoLinks : "");
  }

  // Over all ranks, whose neighbours in the list are near where hosts are in racks.
  Level over_all(Pattern pattern) const {
    return {.pattern = pattern, .owners = n_, .groups = {ranks_by_rack(topology_)}};
  }
  Staged flat(Pattern pattern) const { return {{over_all(pattern)}, {}}; }
  Staged flat_core(Pattern pattern) const { return {{}, {over_all(pattern)}}; }
  const char* why_not_bine() const {
    return std::has_single_bit(static_cast<unsigned>(n_)) ? "" : "needs a power of two of ranks";
  }

  // Shapes that follow the machine: the fabric's torus or ring, hosts inside and across.
  void add_machine(bool by_owner) {
    const bool fabric = topology_.hosts[0].imposed.has_value();
    const bool hosts = topology_.hosts.size() > 1;
    const char* name = has_hierarchical_ ? "hierarchical_messages" : "hierarchical";
    if (const auto shape = machine_levels(view_, Pattern::Circulant)) {
      const bool torus = std::ranges::any_of(shape->levels, [](const Level& l) { return l.pattern == Pattern::Torus; });
      if (torus) name = "torus";
      if (fabric || (hosts && shape->levels.size() > 1)) add_staged(name, *shape, false, by_owner);
      if (!by_owner && hosts && !shape->levels.empty()) {
        const auto core = machine_levels(view_, Pattern::RecursiveDoubling);
        if (core && !core->levels.empty()) add_staged("hierarchical_doubling", *core, false, false);
      }
      if (torus) return;
    }
    add_staged(
        "torus", {{square_torus(n_)}, {}}, true, by_owner,
        torus_asked_for_ ? "" : "there is no torus here; four channels per pair are opened only if it is asked for");
  }

  // Between sites: what crosses does so once, from each host to its counterparts; at once, if they are few.
  void add_racks(bool by_owner) {
    std::optional<Staged> shape = rack_levels(view_);
    if (!shape || topology_.bytes_between_racks() == 0) return;
    add_staged("racks", *shape, false, by_owner);
    if (by_owner) return;
    shape->core.push_back(std::move(shape->levels.back()));
    shape->levels.pop_back();
    shape->core[0].pattern = Pattern::OneShot;
    add_staged("racks_one_shot", *std::move(shape), false, false);
  }

  // Shapes of several levels, which move runs of units and cut them into blocks.
  void add_levels(bool by_owner) {
    if (!view_.follows_fabric) return add_machine(by_owner);
    for (MessageAlgorithm& algorithm : fabric_algorithms(view_, question_.collective)) {
      const bool lacks = algorithm.kind == MessageAlgorithm::Kind::Radix && view_.dims.empty() && !view_.all_linked;
      add(std::move(algorithm), lacks ? kNoLinks : "");
    }
  }

  // A ring over all ranks goes along the fabric's links.
  void add_ring(bool by_owner) {
    Staged ring = flat(Pattern::Ring);
    if (!view_.follows_fabric) return add_staged("ring", std::move(ring), true, by_owner);
    std::vector<Rank> order = ring_order(view_);
    const bool is_closed = !order.empty();
    if (is_closed) ring.levels[0].groups[0] = std::move(order);
    add_staged("ring", std::move(ring), false, by_owner, is_closed ? "" : kNoLinks);
  }

  // Two trees halve what inner ranks carry, but need a channel each.
  void add_double_tree() {
    if (!view_.follows_fabric || n_ < 3 || is_per_rank(question_.collective)) return;
    MessageAlgorithm algorithm{"double_tree", MessageAlgorithm::Kind::Trees};
    algorithm.trees = double_tree(n_, question_.root, 1);
    add(std::move(algorithm), view_.all_linked ? "" : kNoLinks);
  }

  void find_symmetric() {
    const bool by_owner = question_.collective != Collective::AllReduce;
    if (n_ > 1 || !view_.follows_fabric) {
      if (!by_owner) add_staged("one_shot", flat_core(Pattern::OneShot), true, false);
      add_staged(by_owner ? "direct" : "two_shot", flat(Pattern::Direct), true, by_owner);
      if (!by_owner) add_staged("recursive_doubling", flat_core(Pattern::RecursiveDoubling), true, false);
      add_staged("circulant", flat(Pattern::Circulant), true, by_owner);
      add_staged("bine", flat(Pattern::Bine), true, by_owner, why_not_bine());
      if (!by_owner) add_staged("bine_latency", flat_core(Pattern::BineLatency), true, false);
      add_ring(by_owner);
      if (!question_.is_v) add_levels(by_owner);
      if (!question_.is_v) add_racks(by_owner);
      add_double_tree();
    }
    add_tree("tree", machine_tree(topology_, 0), false);
  }

  void find_rooted() {
    add_tree("star", knomial_tree(n_, question_.root, std::max(2, n_)), true);
    add_tree("binomial", knomial_tree(n_, question_.root, 2), true);
    add_tree("knomial4", knomial_tree(n_, question_.root, 4), true);
    add_tree("knomial8", knomial_tree(n_, question_.root, 8), true);
    add_tree("bine", bine_tree(ranks_by_rack(topology_), question_.root), true);
    add_double_tree();
    add_columns();
    add_tree("tree", machine_tree(topology_, question_.root), false);
  }

  // Every device's way to the other hosts at work, and all links.
  void add_columns() {
    if (!view_.follows_fabric) return;
    if (!is_per_rank(question_.collective)) {
      MessageAlgorithm algorithm{"columns", MessageAlgorithm::Kind::Trees};
      algorithm.trees = column_trees(view_, question_.root, question_.collective);
      if (!algorithm.trees.empty()) add(std::move(algorithm));
    } else if (!question_.is_v) {
      for (Tree& tree : column_gather_tree(view_, question_.root)) {
        add({"columns", MessageAlgorithm::Kind::Tree, {}, std::move(tree)});
      }
    }
  }

  // What keeps contributions in rank order: for any root, and anywhere.
  void add_in_order() {
    const Rank root = std::max(question_.root, 0);
    if (is_rooted(question_.collective)) add_tree("in_order", in_order_tree(n_, root), true);
    Tree tree = machine_tree(topology_, root);
    tree.gathers = true;
    add({"gather_tree", MessageAlgorithm::Kind::Tree, {}, std::move(tree)});
  }

  void refuse() {
    for (Candidate& candidate : candidates_) {
      if (!candidate.legal) continue;
      std::string why = refusal(question_, candidate);
      candidate.legal = why.empty();
      if (!candidate.legal) candidate.note = std::move(why);
    }
  }

  void find_alltoall() {
    add({"pairwise", MessageAlgorithm::Kind::Pairwise}, view_.all_linked ? "" : kNoLinks);
    add({"bruck", MessageAlgorithm::Kind::Bruck}, view_.fabric == nullptr ? "" : "is for ranks without a fabric");
    add({"bine", MessageAlgorithm::Kind::Bine},
        view_.fabric != nullptr ? "is for ranks without a fabric" : why_not_bine());
    if (const std::optional<Staged> dimensions = exchange_levels(view_)) {
      add({"by_dimension", MessageAlgorithm::Kind::Staged, *dimensions},
          ExchangePlans(*dimensions, n_).is_grid() ? "" : "the ranks are no grid");
    }
    const auto shape = machine_levels(view_, Pattern::Circulant);
    if (view_.all_linked) {
      add({"routed", MessageAlgorithm::Kind::Routed, flat(Pattern::Ring)});
    } else if (shape && divides_evenly(*shape, n_)) {
      add({"routed", MessageAlgorithm::Kind::Routed, *shape});
    } else {
      add({"routed", MessageAlgorithm::Kind::Routed, {}, machine_tree(topology_, 0)});
    }
  }

  const Topology& topology_;
  const Settings& settings_;
  const Question& question_;
  const MachineView view_;
  const MessagePricer pricer_;
  int n_;
  bool is_stage_;  // of a program over hosts
  bool torus_asked_for_;
  bool has_hierarchical_ = false;  // memory inside and messages across serve
  std::vector<Candidate> candidates_;
};

// The cheapest that rounds no more often than promised, if there is one.
void pass_over_roundings(Choice& choice, int allowed) {
  const auto rounds_too_often = [&](const Candidate& c) { return c.roundings > allowed; };
  const std::span legal(choice.candidates.begin(), std::ranges::find(choice.candidates, false, &Candidate::legal));
  const auto best = std::ranges::find_if_not(legal, rounds_too_often);
  if (best == legal.end()) return;
  for (Candidate& candidate : legal.first(static_cast<size_t>(best - legal.begin()))) {
    candidate.note =
        "rounds " + std::to_string(candidate.roundings) + " times, " + std::to_string(allowed) + " promised";
  }
  choice.chosen = static_cast<size_t>(best - legal.begin());
  if (choice.chosen > 0)
    choice.reason = "least expected time among those that round at most " + std::to_string(allowed) + " times";
}

}  // namespace

Result<Choice> search(const Topology& topology, const Settings& settings, const Question& asked, double flows) {
  Question question = asked;
  question.wire = crosses_as(topology, settings, asked);
  Choice choice;
  choice.candidates = Search(topology, settings, question, flows).run();
  std::ranges::stable_sort(choice.candidates, [](const Candidate& a, const Candidate& b) {
    return a.legal != b.legal ? a.legal : a.legal && a.time_ns < b.time_ns;
  });
  if (choice.candidates.empty() || !choice.candidates[0].legal) {
    return error(ErrorKey::NoAlgorithmHere, "no algorithm for %s on this topology: %s",
                 std::string(name_of(question.collective)).c_str(),
                 choice.candidates.empty() ? "" : choice.candidates[0].note.c_str());
  }
  choice.reason = "least expected time";
  if (question.narrow_float) pass_over_roundings(choice, allowed_roundings(topology));
  prefer(choice, settings.preferred);
  CCOM_TRY(apply_forced(choice, question, settings.forced));
  return choice;
}

}  // namespace ccom
