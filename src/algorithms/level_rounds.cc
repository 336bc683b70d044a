// SPDX-License-Identifier: Apache-2.0
#include "algorithms/level_rounds.h"

#include <bit>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"

namespace ccom {
namespace {

std::function<uint32_t(uint32_t)> ahead(uint32_t distance, uint32_t members) {
  return [distance, members](uint32_t member) { return (member + distance) % members; };
}

std::function<uint32_t(uint32_t)> bine_round(uint32_t members, int round) {
  return [members, round](uint32_t member) { return bine_partner(member, members, round); };
}

std::vector<LevelRound> circulant_rounds(uint32_t members, double n) {
  std::vector<LevelRound> rounds;
  for (uint32_t s = members; s > 1; s = (s + 1) / 2) {
    const uint32_t distance = (s + 1) / 2;
    rounds.push_back({n * (s - distance) / members, ahead(distance, members)});
  }
  return rounds;
}

// Exchanges of everything; excess members fold into those before them first, and are told last.
std::vector<LevelRound> doubling_rounds(uint32_t members, double n, Partners partners) {
  const uint32_t power = std::bit_floor(members), excess = members - power;
  const auto folds = [excess](uint32_t member) { return member < 2 * excess; };
  std::vector<LevelRound> rounds;
  for (uint32_t bit = 1; bit < power; bit *= 2) {
    const auto partner = [=](uint32_t label) {
      return partners == Partners::OfBits ? label ^ bit : bine_partner(label, power, std::countr_zero(bit));
    };
    rounds.push_back({n, [=](uint32_t member) {
                        if (folds(member) && member % 2 == 1) return member;
                        const uint32_t other = partner(folds(member) ? member / 2 : member - excess);
                        return other < excess ? 2 * other : other + excess;
                      }});
  }
  if (excess == 0) return rounds;
  for (const uint32_t odd : {1U, 0U}) {
    rounds.push_back({n, [=](uint32_t member) { return folds(member) && member % 2 == odd ? member ^ 1 : member; }});
  }
  return rounds;
}

}  // namespace

std::vector<LevelRound> level_rounds(const Level& level, uint32_t members, double n) {
  std::vector<LevelRound> rounds;
  switch (level.pattern) {
    case Pattern::Ring:
      rounds.push_back({n * (members - 1) / members, ahead(1, members), static_cast<double>(members) - 1});
      break;
    case Pattern::Circulant: return circulant_rounds(members, n);
    case Pattern::RecursiveDoubling:
      if (level.dims.empty()) return doubling_rounds(members, n, Partners::OfBits);
      break;
    case Pattern::BineLatency: return doubling_rounds(members, n, Partners::OfBine);
    case Pattern::Bine:
      for (int round = 0; 2U << round <= members; ++round)
        rounds.push_back({n / (2U << round), bine_round(members, round)});
      break;
    default: break;
  }
  return rounds;
}

std::vector<LevelRound> bruck_rounds(uint32_t ranks, double n) {
  std::vector<LevelRound> rounds;
  uint32_t bit = 1;
  for (const Cost& cost : bruck_alltoall_costs(ranks, n)) {
    rounds.push_back({cost.bytes, ahead(bit, ranks)});
    bit *= 2;
  }
  return rounds;
}

std::vector<LevelRound> bine_alltoall_rounds(uint32_t ranks, double n) {
  std::vector<LevelRound> rounds;
  for (int round = 0; 2U << round <= ranks; ++round) rounds.push_back({n / 2, bine_round(ranks, round)});
  return rounds;
}

}  // namespace ccom
