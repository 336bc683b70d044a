// SPDX-License-Identifier: Apache-2.0
//
// The cases of a program that production proves.
#include <algorithm>

#include "plan/program_verify.h"

namespace ccom {

Result<ProgramReport> verify_program(const Program& program, const StagePlanSource& source) {
  constexpr int kFewRanks = 16;
  constexpr Reach kRead{true, false}, kMapped{true, true};
  std::vector<ProgramCase> cases;
  for (const std::vector<bool>& in_place : {std::vector<bool>{}, {true}, {false, true}}) {
    for (const std::vector<Reach>& reach :
         {std::vector<Reach>{}, {kRead}, {kMapped}, {kMapped, Reach{}}, {kRead, kMapped, Reach{}}}) {
      cases.push_back({.reach = reach, .in_place = in_place});
    }
  }
  // More tiles than may be under way, calls in a row, host stages in tiles of their own.
  const size_t tiles = program.nranks <= kFewRanks ? kTilesUnderWay + 2 : 2;
  cases.push_back({.tiles = tiles, .node_tiles = 3, .calls = 2});
  cases.push_back({.reach = {kMapped, Reach{}}, .in_place = {true}, .tiles = tiles, .node_tiles = 2, .calls = 2});
  ProgramReport report;
  for (const ProgramCase& what : cases) {
    if (program.is_messages() && (!what.reach.empty() || what.tiles > 1)) continue;  // the same plans
    CCOM_TRY_ASSIGN(const ProgramReport found, verify_program(program, source, what));
    report.max_roundings = std::max(report.max_roundings, found.max_roundings);
    report.max_encodings = std::max(report.max_encodings, found.max_encodings);
    report.order = std::min(report.order, found.order);
  }
  return report;
}

}  // namespace ccom
