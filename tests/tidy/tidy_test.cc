// SPDX-License-Identifier: Apache-2.0
//
// The house rules that a program can check: who includes whom (the map of docs/architecture.md), file heads, lines and
// sizes.
//
// A file may not grow beyond kMostLines.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/folder.h"
#include "tests/harness/paths.h"

namespace {

using ccom::contents_of;
namespace fs = std::filesystem;

const fs::path kRoot = ccom::source_dir();
constexpr size_t kMostLines = 350;
constexpr size_t kMostColumns = 120;

// Room -> the rooms whose headers it may include. "transports" is transports/transport.h alone, "factories" are
// transports/*/factory.h.
const std::map<std::string, std::set<std::string>> kMap = {
    {"base", {}},
    {"control", {"base"}},
    {"memory", {"base"}},
    {"plan", {"base"}},
    {"kernels", {"base"}},
    {"topology", {"base"}},
    {"bootstrap", {"base", "control"}},
    {"observe", {"base"}},
    {"metrics", {"base", "observe"}},
    {"liveness", {"base", "control", "observe"}},
    {"trace", {"base", "observe"}},
    {"shm", {"base", "memory", "transports"}},
    {"tcp", {"base", "transports"}},
    {"ofi", {"base", "memory", "transports"}},
    {"algorithms", {"base", "plan"}},
    {"planner", {"base", "algorithms", "topology", "plan"}},
    {"sim", {"base", "algorithms", "planner", "plan", "topology", "liveness"}},
    {"engine", {"base", "plan", "kernels", "liveness", "transports"}},
    {"messages", {"base", "liveness", "observe", "transports"}},
    {"node", {"base", "memory", "plan", "algorithms", "kernels", "liveness"}},
    {"runner", {"base", "memory", "plan", "algorithms", "kernels", "engine", "node", "transports"}},
    {"setup",
     {"base", "control", "memory", "engine", "messages", "node", "bootstrap", "liveness", "observe", "metrics",
      "topology", "kernels", "transports", "factories"}},
    {"comm",
     {"base", "setup", "planner", "runner", "engine", "node", "bootstrap", "liveness", "topology", "transports", "plan",
      "kernels", "algorithms", "messages", "observe"}},
    {"api", {"base", "memory", "setup", "comm", "bootstrap", "engine", "kernels", "messages", "observe", "public"}},
    // Users of the C API, and nothing else.
    {"bench", {"public", "bench"}},
    {"examples", {"public", "bench"}},
    {"python", {"public"}},
    {"doors", {"public"}},
    // Looks at what a job would use even where no job can start: the machine and its speeds, and the rendezvous.
    {"tools",
     {"public", "bench", "base", "bootstrap", "topology", "planner", "algorithms", "plan", "sim", "node", "observe",
      "liveness", "trace"}},
};

// Benchmarks of one room may include it.
const std::map<std::string, std::set<std::string>> kExtra = {
    {"bench/kernels.cc", {"kernels", "base"}},
};

struct Source {
  fs::path path;  // below the root
  std::string room;
  std::vector<std::string> lines;
};

std::string room_of(const fs::path& path) {
  const std::string text = path.generic_string();
  static const std::regex room("(?:src|transports)/([a-z]+)/.*|(topology|bench|examples|python|tools|doors)/.*");
  std::smatch match;
  if (!std::regex_match(text, match, room)) return "";
  return match[1].matched ? match[1] : match[2];
}

// The contract that lies above the members.
bool is_contract(const fs::path& path) { return path.generic_string() == "transports/transport.h"; }

std::vector<Source> sources() {
  std::vector<Source> found;
  for (const char* folder : {"src", "transports", "topology", "bench", "examples", "python", "tools", "doors"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".c") continue;
      Source source{fs::relative(entry.path(), kRoot), "", {}};
      source.room = room_of(source.path);
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      found.push_back(std::move(source));
    }
  }
  return found;
}

// Where a project include leads: a room, "transports", "factories", "public", or "" for third parties.
std::string target_of(const std::string& include) {
  if (include.starts_with("ccom/")) return "public";
  if (include.find('/') == std::string::npos) return "";  // <memory>
  if (include == "transports/transport.h") return "transports";
  static const std::regex factory("transports/[a-z]+/factory\\.h");
  if (std::regex_match(include, factory)) return "factories";
  const std::string first = include.substr(0, include.find('/'));
  if (first == "transports") return include.substr(11, include.find('/', 11) - 11);
  return kMap.contains(first) ? first : "";
}

TEST(Tidy, IncludesFollowTheMap) {
  static const std::regex include(R"re(\s*#include\s+["<]([^">]+)[">].*)re");
  size_t checked = 0;
  for (Source source : sources()) {
    if (is_contract(source.path)) source.room = "base";  // it may include what base may, and base
    ASSERT_NE(source.room, "") << source.path << " is in no room";
    ASSERT_TRUE(kMap.contains(source.room)) << source.path << ": room " << source.room << " is not on the map";
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) continue;
      const std::string target = target_of(match[1]);
      const auto extra = kExtra.find(source.path.generic_string());
      const bool allowed = target.empty() || target == source.room || kMap.at(source.room).contains(target) ||
                           (target == "factories" && match[1].str().starts_with("transports/" + source.room)) ||
                           (extra != kExtra.end() && extra->second.contains(target));
      EXPECT_TRUE(allowed) << source.path << ": room " << source.room << " may not include " << match[1];
      checked += target.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(checked, 200U) << "the test no longer sees the includes";
}

// The fuzz targets are built by Debian 12's clang 14, which cannot compile the views of its libstdc++ 12.
TEST(Tidy, NoFileUsesViewsOfRanges) {
  for (const Source& source : sources())
    for (const std::string& line : source.lines)
      EXPECT_EQ(line.find("#include <ranges>"), std::string::npos) << source.path << ": clang 14 does not compile it";
}

TEST(Tidy, FilesHaveAHeadAndAGuardAndReadableLines) {
  for (const Source& source : sources()) {
    ASSERT_FALSE(source.lines.empty()) << source.path;
    EXPECT_NE(source.lines[0].find("SPDX-License-Identifier: Apache-2.0"), std::string::npos) << source.path;
    if (source.path.extension() == ".h" && source.path.string().find("-inl.h") == std::string::npos) {
      EXPECT_NE(std::ranges::find(source.lines, "#pragma once"), source.lines.end()) << source.path;
    }
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const std::string& line = source.lines[i];
      EXPECT_LE(line.size(), kMostColumns) << source.path << ":" << i + 1;
      EXPECT_EQ(line.find('\t'), std::string::npos) << source.path << ":" << i + 1 << " has a tab";
      EXPECT_EQ(line.find("FIX"
                          "ME"),
                std::string::npos)
          << source.path << ":" << i + 1;
    }
  }
}

TEST(Tidy, EveryVariableIsDocumented) {
  const std::string table = contents_of(kRoot / "src/base/options.cc");
  const std::string page = contents_of(kRoot / "docs/variables.md");
  static const std::regex entry("OptionInfo\\{\"(CCOM_[A-Z0-9_]+)\"");
  int found = 0;
  for (std::sregex_iterator it(table.begin(), table.end(), entry), end; it != end; ++it, ++found) {
    EXPECT_NE(page.find("`" + (*it)[1].str() + "`"), std::string::npos)
        << (*it)[1] << " is missing in docs/variables.md";
  }
  EXPECT_GT(found, 15);
}

// A variable that something here reads from the environment, but that the table of names lacks, would be reported as
// misspelt.
TEST(Tidy, EveryVariableThatIsReadIsKnown) {
  const std::string known =
      contents_of(kRoot / "src/base/options.cc") + contents_of(kRoot / "src/base/variable_names.cc");
  static const std::regex reading("(?:getenv\\(|environ(?:\\.get\\(|\\[)|_wanted\\()\\s*[\"'](CCOM_[A-Z0-9_]+)[\"']");
  int found = 0;
  for (const char* folder :
       {"src", "transports", "topology", "bench", "tools", "doors", "python", "tests", "scripts"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string end = entry.path().extension();
      if (end != ".cc" && end != ".h" && end != ".py") continue;
      const std::string text = contents_of(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), reading), none; it != none; ++it, ++found) {
        const std::string name = (*it)[1];
        if (name.starts_with("CCOM_TEST_")) continue;
        EXPECT_NE(known.find("\"" + name + "\""), std::string::npos) << name << " in " << entry.path();
      }
    }
  }
  EXPECT_GT(found, 15);
}

TEST(Tidy, EveryVariableOfTorchIsDocumented) {
  const std::string names = contents_of(kRoot / "src/base/variable_names.cc");
  const std::string page = contents_of(kRoot / "docs/pytorch.md");
  static const std::regex entry("\"(CCOM_TORCH_[A-Z0-9_]+)\"");
  for (std::sregex_iterator it(names.begin(), names.end(), entry), end; it != end; ++it)
    EXPECT_NE(page.find("`" + (*it)[1].str() + "`"), std::string::npos) << (*it)[1] << " is missing in docs/pytorch.md";
}

// Rooms that make, prove and run programs decide nothing by a number of bytes or ranks: that is src/planner's.
// Constants that look like such a threshold are listed here with what they are instead.
const std::map<std::string, std::string> kNoThresholds = {
    {"kMostPairs", "bound of a search for streams"},
    {"kMostChannels", "capacity: channels are numbered in a byte"},
    {"kMostVisits", "bound of a search for cycles"},
    {"kMostDims", "dimensions of a grid"},
    {"kMostFactors", "bits of a number"},
    {"kFewRanks", "arrays on the stack; how many tiles a proof follows"},
    {"kMostRanks", "whose subsets an error text can try"},
    {"kLineBytes", "of a cache line"},
    {"kRoundFromLines", "alignment of parts: moves the border between two ranks' work"},
    {"kLinePayloadBytes", "capacity of a flag line"},
    {"kMailBytes", "capacity of a mail"},
    {"kMostPassesNs", "time that a start may take to measure"},
    {"kAheadMailBytes", "the same"},
    {"kLongMails", "room in a ring of mails, of which one that wraps needs four"},
    {"kNodePageBytes", "of a page"},
    {"kStrideBytes", "between two looks at the communicator's error"},
    {"kClaimBytes", "piece of a copy that fits a first cache"},
    {"kMostPlans", "size of a cache"},
    {"kMostCompiled", "size of a cache"},
    {"kKeptBytes", "size of a cache"},
    {"kMostCalls", "size of a cache"},
    {"kMostKinds", "size of a table"},
    {"kMostBuffers", "size of a table"},
    {"kMostExpected", "size of a table"},
    {"kMostCharged", "share of a call"},
    {"kMostStarted", "slots of the engine"},
};

TEST(Tidy, OnlyThePlannerDecides) {
  static const std::set<std::string> rooms = {"plan", "algorithms", "node", "runner", "comm", "engine"};
  static const std::regex constant(
      "constexpr [a-z_0-9:<>]+ (k[A-Za-z]*(Bytes|Ranks|Hosts|Elements|Lines|UpTo|Above|Below)|"
      "k(Most|Few|Least|Good|Short|Long)[A-Za-z]*)\\b");
  static const std::regex comparison(
      "(bytes|count|ranks|hosts|elements|size\\(\\))\\)* *[<>]=? *(size_t\\{)?[0-9]{2,}");
  std::set<std::string> found;
  for (const Source& source : sources()) {
    if (!rooms.contains(source.room)) continue;
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (std::regex_search(line, match, constant)) {
        found.insert(match[1]);
        EXPECT_TRUE(kNoThresholds.contains(match[1]))
            << source.path << ": " << line << "\ndecides src/planner about this?";
      }
      EXPECT_FALSE(std::regex_search(line, comparison)) << source.path << ": a threshold: " << line;
    }
  }
  for (const auto& [name, what] : kNoThresholds)
    EXPECT_TRUE(found.contains(name)) << name << " (" << what << ") is gone";
}

TEST(Tidy, FilesStaySmall) {
  for (const Source& source : sources()) {
    EXPECT_LE(source.lines.size(), kMostLines) << source.path << " wants to be cut in two";
  }
}

}  // namespace
