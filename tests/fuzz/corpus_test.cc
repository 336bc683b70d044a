// SPDX-License-Identifier: Apache-2.0
//
// Every fuzz target of this program with the kept corpus (corpus/TARGET/*), and with mutations of it that
// CCOM_TEST_SEED draws, for at most ten seconds a target. CCOM_TEST_LONG=1 makes a hundred times as many, for at most
// half an hour.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "tests/fuzz/target.h"
#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/paths.h"

namespace ccom::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kMutations = 2000;
constexpr std::chrono::seconds kUsualTime{10}, kLongTime{1800};
constexpr size_t kMostBytes = 4096;

std::vector<Bytes> corpus_of(const std::string& target) {
  std::vector<Bytes> all;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/fuzz/corpus" / target)) {
    const std::string text = contents_of(entry.path());
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    all.emplace_back(bytes, bytes + text.size());
  }
  return all;
}

// A few edits: other bytes, pieces that are doubled, dropped, or taken from another input.
Bytes mutated(const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  const auto below = [&random](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  Bytes made = corpus[below(corpus.size())];
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    const auto at = static_cast<std::ptrdiff_t>(below(made.size() + 1));
    const auto most = static_cast<std::ptrdiff_t>(made.size()) - at;
    const auto length = static_cast<std::ptrdiff_t>(below(static_cast<size_t>(std::min<std::ptrdiff_t>(most, 64)) + 1));
    switch (random() % 4) {
      case 0:
        if (most > 0) made[static_cast<size_t>(at)] = static_cast<std::byte>(random());
        break;
      case 1: made.erase(made.begin() + at, made.begin() + at + length); break;
      case 2: {
        const Bytes piece(made.begin() + at, made.begin() + at + length);
        made.insert(made.begin() + at, piece.begin(), piece.end());
        break;
      }
      default: {
        const Bytes& other = corpus[below(corpus.size())];
        const size_t from = below(other.size() + 1);
        const size_t count = std::min<size_t>(other.size() - from, below(64));
        made.insert(made.begin() + at, other.begin() + static_cast<std::ptrdiff_t>(from),
                    other.begin() + static_cast<std::ptrdiff_t>(from + count));
      }
    }
  }
  if (made.size() > kMostBytes) made.resize(kMostBytes);
  return made;
}

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, IsSurvived) {
  const std::vector<Bytes> corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const Bytes& input : corpus) GetParam().run(input);
}

TEST_P(Corpus, IsSurvivedWithMutations) {
  const std::vector<Bytes> corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  const uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  const int count = is_long() ? 100 * kMutations : kMutations;
  // Inputs of ofi open an endpoint each, which takes 20 ms.
  const auto until = std::chrono::steady_clock::now() + (is_long() ? kLongTime : kUsualTime);
  for (int i = 0; i < count && std::chrono::steady_clock::now() < until; ++i) {
    SCOPED_TRACE(::testing::Message() << "CCOM_TEST_SEED=" << seed << ", mutation " << i);
    GetParam().run(mutated(corpus, random));
  }
}

std::string name_of(const ::testing::TestParamInfo<Target>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, ::testing::ValuesIn(targets()), name_of);

}  // namespace
}  // namespace ccom::fuzz
