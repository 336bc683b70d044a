// SPDX-License-Identifier: Apache-2.0
//
// The verifier's power: of every family of algorithms, each step of some ranks is changed in every way that a plan can
// be changed in one place, and the verdict is compared with what an exact reference says the mutant means. A mutant
// that differs in meaning must be rejected, and one that survives must be shown to be the same program (equal normal
// forms) or to give the same results; there are no others.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "plan/verify.h"
#include "tests/plan/families.h"
#include "tests/plan/mutants.h"
#include "tests/plan/reference.h"

namespace ccom {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSizes[] = {3, 4};
#else
constexpr int kSizes[] = {2, 3, 4, 5, 8};
#endif

struct Count {
  int mutants = 0;
  int rejected = 0;
  int same_program = 0;
  int same_results = 0;
};

bool is_same_program(const std::vector<Plan>& a, const std::vector<Plan>& b) {
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r].steps != b[r].steps && normal_form(a[r]) != normal_form(b[r])) return false;
  }
  return true;
}

void judge(const std::vector<Plan>& good, const Mutation& mutation, const std::vector<Plan>& mutant, bool ask_again,
           Count& count) {
  ++count.mutants;
  if (!verify(mutant, count.mutants)) {
    ++count.rejected;
    if (ask_again) {
      EXPECT_NE(reference_verdict(mutant), "")
          << "rejected without reason: " << mutation.operation << " " << mutation.what;
    }
    return;
  }
  if (is_same_program(good, mutant)) {
    ++count.same_program;
    return;
  }
  ++count.same_results;
  EXPECT_EQ(reference_verdict(mutant), "") << "survived: " << mutation.operation << " " << mutation.what;
}

TEST(Reference, AcceptsEveryFamily) {
  for (const Family& family : families()) {
    for (const int n : {1, 2, 3, 4, 5, 6, 8, 9}) {
      if (!family.exists(n)) continue;
      for (const bool in_place : {false, true}) {
        EXPECT_EQ(reference_verdict(family.plans(n, in_place)), "") << family.name << ", " << n << " ranks";
      }
    }
  }
}

TEST(Mutation, EveryMutantThatDiffersInMeaningIsRejected) {
  std::map<std::string, Count> by_operation;
  std::mt19937_64 random(20261122);
  for (const Family& family : families()) {
    for (const int n : kSizes) {
      if (!family.exists(n)) continue;
      const std::vector<Plan> good = family.plans(n, random() % 2 == 0);
      ASSERT_TRUE(verify(good));
      for (const Rank rank : std::set<Rank>{0, n / 2, n - 1}) {
        for_each_mutant(good, rank, random, [&](const Mutation& mutation, const std::vector<Plan>& mutant) {
          SCOPED_TRACE(family.name + " of " + std::to_string(n));
          judge(good, mutation, mutant, random() % 16 == 0, by_operation[mutation.operation]);
        });
      }
    }
  }
  Count all;
  for (const auto& [operation, count] : by_operation) {
    std::cout << operation << ": " << count.mutants << " mutants, " << count.rejected << " rejected, "
              << count.same_program << " the same program, " << count.same_results << " the same results\n";
    EXPECT_EQ(count.mutants, count.rejected + count.same_program + count.same_results);
    // A message on another channel at both ends is the same message.
    EXPECT_EQ(count.rejected > 0, operation != "channel of message") << operation;
    all.mutants += count.mutants;
    all.same_results += count.same_results;
  }
  EXPECT_GT(all.mutants, 10000);
  EXPECT_LT(all.same_results, all.mutants / 10);
}

}  // namespace
}  // namespace ccom
