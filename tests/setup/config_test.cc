// SPDX-License-Identifier: Apache-2.0
//
// What ranks are told whose settings differ.
#include "setup/config.h"

#include <gtest/gtest.h>

namespace ccom {
namespace {

TEST(Fingerprint, DiffersByTheVariablesThatDiffer) {
  CommConfig first;
  CommConfig theirs = first;
  EXPECT_EQ(theirs.fingerprint(), first.fingerprint());
  theirs.tls = true;
  EXPECT_EQ(difference_of_settings(theirs.fingerprint(), first.fingerprint()), "CCOM_TLS (1 against 0)");
  theirs.transports = {"shm", "tcp"};
  theirs.crossing = InterHostMode::All;
  EXPECT_EQ(difference_of_settings(theirs.fingerprint(), first.fingerprint()),
            "CCOM_TRANSPORT (shm,tcp against unset), CCOM_CROSSING (all against auto), CCOM_TLS (1 against 0)");
}

TEST(Fingerprint, IgnoresTheSeedOfARoundingThatIsNotRandom) {
  CommConfig first;
  CommConfig theirs = first;
  theirs.rounding_seed = 7;
  EXPECT_EQ(theirs.fingerprint(), first.fingerprint());
  first.rounding = theirs.rounding = Rounding::Stochastic;
  EXPECT_EQ(difference_of_settings(theirs.fingerprint(), first.fingerprint()), "CCOM_ROUNDING_SEED (7 against 0)");
}

TEST(Rounding, OnceAndStochasticRoundOnce) {
  CommConfig nearest, once, stochastic;
  EXPECT_TRUE(nearest.set_rounding("nearest").is_ok() && once.set_rounding("once").is_ok() &&
              stochastic.set_rounding("stochastic").is_ok());
  EXPECT_FALSE(nearest.rounds_once);
  EXPECT_TRUE(once.rounds_once && once.rounding == Rounding::NearestEven);
  EXPECT_TRUE(stochastic.rounds_once && stochastic.rounding == Rounding::Stochastic);
  EXPECT_EQ(difference_of_settings(once.fingerprint(), nearest.fingerprint()), "CCOM_ROUNDING (once against nearest)");
  EXPECT_EQ(once.set_rounding("twice").code(), Code::ConfigError);
}

}  // namespace
}  // namespace ccom
