// SPDX-License-Identifier: Apache-2.0
#include "topology/recognise.h"

#include <algorithm>
#include <numeric>

namespace ccom {
namespace {

constexpr int kMostTrials = 200000;

// Adjacency both as lists and as bits.
class Graph {
 public:
  Graph(int devices, const std::vector<Edge>& edges)
      : n_(static_cast<size_t>(devices)), lists_(n_), bits_(n_ * n_, false) {
    for (const auto& [a, b] : edges) {
      lists_[static_cast<size_t>(a)].push_back(b);
      bits_[static_cast<size_t>(a) * n_ + static_cast<size_t>(b)] = true;
    }
  }
  const std::vector<int>& neighbours(int device) const { return lists_[static_cast<size_t>(device)]; }
  bool joined(int a, int b) const { return bits_[static_cast<size_t>(a) * n_ + static_cast<size_t>(b)]; }
  std::vector<size_t> degrees() const {
    std::vector<size_t> all;
    for (const auto& list : lists_) all.push_back(list.size());
    std::ranges::sort(all);
    return all;
  }
  // Breadth-first order from device 0; then the unreachable devices, in the same way.
  std::vector<int> breadth_first() const {
    std::vector<int> order;
    std::vector<bool> seen(n_, false);
    const auto visit = [&](int device) {
      if (!seen[static_cast<size_t>(device)]) order.push_back(device);
      seen[static_cast<size_t>(device)] = true;
    };
    size_t next = 0;
    for (int device = 0; device < static_cast<int>(n_); ++device) {
      for (visit(device); next < order.size(); ++next) std::ranges::for_each(neighbours(order[next]), visit);
    }
    return order;
  }

 private:
  size_t n_;
  std::vector<std::vector<int>> lists_;
  std::vector<bool> bits_;
};

// Assigns a device to each place so that connected places hold connected devices, by backtracking. Places are filled
// nearest first: each then has the most assigned neighbours, and wrong starts fail early.
class Search {
 public:
  Search(int devices, const Graph& graph, const Graph& shape)
      : graph_(graph),
        shape_(shape),
        places_(shape.breadth_first()),
        device_at_(static_cast<size_t>(devices), -1),
        is_taken_(static_cast<size_t>(devices), false) {}

  std::vector<int> run() { return place(0) ? device_at_ : std::vector<int>(); }

 private:
  bool place(size_t index) {
    if (index == places_.size()) return true;
    const int where = places_[index];
    for (const int device : candidates(index)) {
      if (is_taken_[static_cast<size_t>(device)] || !fits(index, device)) continue;
      set(where, device, true);
      if (place(index + 1)) return true;
      set(where, device, false);
      if (trials_ > kMostTrials) return false;
    }
    return false;
  }
  // Candidates: neighbours of a device whose place is connected to this one; any device if the place is connected to
  // none so far.
  std::vector<int> candidates(size_t index) const {
    for (const int neighbour : shape_.neighbours(places_[index])) {
      if (const int device = device_at_[static_cast<size_t>(neighbour)]; device >= 0) return graph_.neighbours(device);
    }
    std::vector<int> all(device_at_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  bool fits(size_t index, int device) {
    ++trials_;
    const int where = places_[index];
    if (graph_.neighbours(device).size() != shape_.neighbours(where).size()) return false;
    return std::ranges::all_of(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(index), [&](int other) {
      return shape_.joined(where, other) == graph_.joined(device, device_at_[static_cast<size_t>(other)]);
    });
  }
  void set(int where, int device, bool is_set) {
    device_at_[static_cast<size_t>(where)] = is_set ? device : -1;
    is_taken_[static_cast<size_t>(device)] = is_set;
  }

  const Graph& graph_;
  const Graph& shape_;
  std::vector<int> places_;
  std::vector<int> device_at_;
  std::vector<bool> is_taken_;
  int trials_ = 0;
};

std::vector<int> own_order(int devices) {
  std::vector<int> order(static_cast<size_t>(devices));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

struct Candidate {
  Fabric::Shape shape;
  std::vector<int> dims;
};

// Two connected devices are a chain, three a ring, four a ring.
std::vector<Candidate> candidates_of(int n) {
  if (n == 1) return {{Fabric::Shape::Single, {}}};
  std::vector<Candidate> all = {{Fabric::Shape::Chain, {n}}, {Fabric::Shape::Ring, {n}}, {Fabric::Shape::Full, {n}}};
  for (int rows = 2; rows * 2 <= n; ++rows) {
    if (n % rows == 0) all.push_back({Fabric::Shape::Torus, {rows, n / rows}});
  }
  for (int x = 2; x * 4 <= n; ++x) {
    for (int y = 2; x * y * 2 <= n; ++y) {
      if (n % (x * y) == 0) all.push_back({Fabric::Shape::Torus, {x, y, n / (x * y)}});
    }
  }
  std::erase_if(all, [n](const Candidate& one) { return !wrong_with_dims(one.shape, one.dims, n).empty(); });
  return all;
}

}  // namespace

std::vector<int> match(int devices, const std::vector<Edge>& edges, const std::vector<Edge>& shape) {
  if (edges == shape) return own_order(devices);
  if (edges.size() != shape.size()) return {};
  const Graph graph(devices, edges);
  const Graph wanted(devices, shape);
  if (graph.degrees() != wanted.degrees()) return {};
  return Search(devices, graph, wanted).run();
}

Recognised recognise(int devices, const std::vector<Edge>& edges) {
  const std::vector<Candidate> candidates = candidates_of(devices);
  std::vector<std::vector<Edge>> graphs;
  for (const Candidate& candidate : candidates) graphs.push_back(edges_of(candidate.shape, candidate.dims));
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (graphs[i] == edges) return {candidates[i].shape, candidates[i].dims, own_order(devices)};
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (auto order = match(devices, edges, graphs[i]); !order.empty()) {
      return {candidates[i].shape, candidates[i].dims, std::move(order)};
    }
  }
  return {.order = own_order(devices)};
}

bool is_connected(int devices, const std::vector<Edge>& edges) {
  const Graph graph(devices, edges);
  std::vector<int> reached = {0};
  std::vector<bool> seen(static_cast<size_t>(devices), false);
  seen[0] = true;
  for (size_t next = 0; next < reached.size(); ++next) {
    for (const int neighbour : graph.neighbours(reached[next])) {
      if (!seen[static_cast<size_t>(neighbour)]) reached.push_back(neighbour);
      seen[static_cast<size_t>(neighbour)] = true;
    }
  }
  return static_cast<int>(reached.size()) == devices;
}

}  // namespace ccom
