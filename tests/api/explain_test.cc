// SPDX-License-Identifier: Apache-2.0
//
// ccomTopoExplain: an answer for machines that are not here, of one ring or of thousands of ranks; what is counted, and
// what is not with a reason; wrong arguments; and that ccomExplain says the same of an imposed topology.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/harness/folder.h"
#include "tests/harness/german_locale.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

using nlohmann::json;

std::string text_of(const std::string& topology, const std::string& collective, size_t count, int root = -1) {
  size_t length = 0;
  EXPECT_OK(ccomTopoExplain(topology.c_str(), collective.c_str(), count, ccomFloat32, root, nullptr, &length));
  std::string text(length, '?');
  EXPECT_OK(ccomTopoExplain(topology.c_str(), collective.c_str(), count, ccomFloat32, root, text.data(), &length));
  return text.substr(0, text.size() - 1);
}

json explained(const std::string& topology, const std::string& collective, size_t count, int root = -1) {
  const json object = json::parse(text_of(topology, collective, count, root), nullptr, false);
  EXPECT_TRUE(object.is_object());
  return object;
}

json candidate(const json& object, const std::string& name) {
  for (const json& each : object["candidates"]) {
    if (each["algorithm"] == name) return each;
  }
  ADD_FAILURE() << "no candidate " << name;
  return {};
}

json links(const json& object, const std::string& kind) {
  for (const json& each : object["links"]) {
    if (each["kind"] == kind) return each;
  }
  ADD_FAILURE() << "no wires of kind " << kind;
  return {};
}

TEST(TopoExplain, U14IsTheSameInEveryLocale) {
  const std::string text = text_of("torus:4x4", "allreduce", 1 << 20);
  EXPECT_TRUE(json::parse(text, nullptr, false).is_object());
  const GermanLocale german;
  EXPECT_EQ(text_of("torus:4x4", "allreduce", 1 << 20), text);
}

// Of a communicator that is made in that locale, with the costs that it has measured.
TEST(Explain, U14IsJsonInEveryLocale) {
  const GermanLocale german;
  with_ranks(2, [](int, ccomComm_t& comm) {
    for (const auto kind : {"allreduce", "allgather"}) {
      size_t length = 0;
      ASSERT_OK(ccomExplain(comm, kind, 1 << 18, ccomFloat32, -1, nullptr, &length));
      std::string text(length, '?');
      ASSERT_OK(ccomExplain(comm, kind, 1 << 18, ccomFloat32, -1, text.data(), &length));
      EXPECT_TRUE(json::parse(text.substr(0, text.size() - 1), nullptr, false).is_object()) << text;
    }
  });
}

TEST(TopoExplain, TellsTheChoiceTheBoundAndEveryLinkOfATorus) {
  const json object = explained("torus:4x4", "allreduce", 1 << 24);
  EXPECT_EQ(object["ranks"], 16);
  EXPECT_EQ(object["bytes"], 1 << 26);
  EXPECT_EQ(object["bound"]["narrowest"], "devices' links");
  const json links_used = links(object, "link");
  EXPECT_EQ(links_used["there"], 64);
  EXPECT_EQ(links_used["used"], 64);
  // 2 * 15/16 of the vector leaves each device over 4 links.
  EXPECT_NEAR(links_used["most"].get<double>(), (1 << 26) * 1.875 / 4, (1 << 26) * 0.02);
  EXPECT_GT(object["rounds"], 0);
  EXPECT_THAT(object["busiest"]["name"].get<std::string>(), HasSubstr("host 0 link"));
  const json chosen = candidate(object, object["algorithm"]);
  EXPECT_GE(chosen["times_bound"], 1.0);
  EXPECT_LT(chosen["times_bound"], 1.5);
  EXPECT_THAT(chosen["why"].get<std::string>(), HasSubstr("least expected time: "));
}

TEST(TopoExplain, SaysWhyTheOthersLost) {
  const json large = explained("torus:4x4", "allreduce", 1 << 24);
  EXPECT_THAT(candidate(large, "ring")["why"].get<std::string>(), HasSubstr(" x: uses 16 of 64 links, the choice 64"));
  EXPECT_THAT(candidate(large, "one_shot")["why"].get<std::string>(), HasSubstr("lacks links"));
  const json tiny = explained("torus:4x4", "allreduce", 2);
  EXPECT_THAT(candidate(tiny, "ring")["why"].get<std::string>(), HasSubstr(" x: 30 steps instead of "));
  for (const json& each : large["candidates"]) EXPECT_NE(each["why"], "");
}

TEST(TopoExplain, AnswersForEveryCollectiveAndManyMachines) {
  for (const char* topology : {"single", "ring:5", "chain:3", "full:4", "switch:8", "trn1.32xlarge", "2*trn1.2xlarge",
                               "2*trn2.48xlarge/1", "torus:2x3x2", "ring:6+routed"}) {
    for (const char* collective :
         {"allreduce", "allgather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter", "barrier",
          "sendrecv", "allgatherv", "reduce_scatterv", "alltoallv", "gatherv", "scatterv"}) {
      SCOPED_TRACE(std::string(topology) + " " + collective);
      const json object = explained(topology, collective, 1000, 0);
      ASSERT_TRUE(object.contains("candidates"));
      EXPECT_TRUE(object.contains("links") || object.contains("links_note"));
    }
  }
}

TEST(TopoExplain, AsksThePlannerAboutUnitsOfDifferentLengths) {
  for (const std::string plain : {"allgather", "reduce_scatter"}) {
    const json object = explained("2*trn1.2xlarge", plain + "v", 1000);
    EXPECT_EQ(object["collective"], plain + "v");
    EXPECT_EQ(object["bytes"], explained("2*trn1.2xlarge", plain, 1000)["bytes"]) << "as many in all";
    EXPECT_GT(object["candidates"].size(), 1U);
    EXPECT_TRUE(candidate(object, object["algorithm"])["legal"].get<bool>());
    EXPECT_GT(object["agreement"]["time_us"], 0.0);
    EXPECT_EQ(object["agreement"]["bytes"], 16 * object["ranks"].get<int>());
  }
  // A torus has shapes of several levels for equal units alone.
  EXPECT_GT(explained("torus:4x4", "allgather", 1000)["candidates"].size(),
            explained("torus:4x4", "allgatherv", 1000)["candidates"].size());
  EXPECT_FALSE(explained("torus:4x4", "allgather", 1000).contains("agreement"));
}

TEST(TopoExplain, TellsTheMessagesOfVFormsThatThePlannerIsNotAskedAbout) {
  for (const std::string plain : {"alltoall", "gather", "scatter"}) {
    const json object = explained("full:4", plain + "v", 4096, 0);
    EXPECT_EQ(object["collective"], plain + "v");
    EXPECT_THAT(object["reason"].get<std::string>(), HasSubstr("straight"));
    ASSERT_EQ(object["candidates"].size(), 1U);
    const json& only = object["candidates"][0];
    EXPECT_EQ(only["algorithm"], object["algorithm"]);
    EXPECT_EQ(only["steps"], 1);
    EXPECT_GE(only["bytes_sent"], 3 * 4096 * 4);
    EXPECT_EQ(links(object, "link")["used"], plain == "alltoall" ? 12 : 3);
    EXPECT_EQ(links(object, "link")["most"], 4096 * 4);
    EXPECT_EQ(object["messages"], plain == "alltoall" ? 12 : 3);
  }
}

TEST(TopoExplain, TellsTheAllgatherOfVFormsWhereNotAllRanksAreLinked) {
  for (const std::string plain : {"alltoall", "gather", "scatter"}) {
    const json object = explained("ring:4", plain + "v", 1000, 1);
    EXPECT_EQ(object["collective"], plain + "v");
    EXPECT_EQ(object["bytes"], 16000);
    EXPECT_THAT(object["reason"].get<std::string>(), HasSubstr("not all ranks are linked: an allgather of everything"));
    // Of what all ranks send, three quarters pass each rank.
    EXPECT_EQ(candidate(object, object["algorithm"])["bytes_sent"], (plain == "alltoall" ? 4 : 1) * 12000);
    EXPECT_EQ(object["bound"], explained("ring:4", plain, 1000, 1)["bound"]);
  }
}

TEST(TopoExplain, DoesNotCountThousandsOfRanks) {
  const json object = explained("128*trn2.48xlarge/1", "allreduce", 1 << 20);
  EXPECT_EQ(object["ranks"], 2048);
  EXPECT_EQ(object["bound"]["narrowest"], "hosts' uplinks");
  EXPECT_EQ(object["links_note"], "not counted for more than 1024 ranks");
  EXPECT_FALSE(object.contains("links"));
}

TEST(TopoExplain, ReadsFilesOfFabricsAndRefusesThoseInParts) {
  const TemporaryFolder folder;
  const std::string path = folder / "fabric.json";
  const std::string inside = R"("inside_device": {"latency_ns": 700, "bytes_per_second": 2e11})";
  std::ofstream(path) << R"({"name": "pair", "devices": 2, "links": [[0,1,1500,5e10],[1,0,1500,5e10]], )" << inside
                      << "}";
  EXPECT_EQ(explained(path, "allreduce", 1000)["ranks"], 2);
  std::ofstream(path) << R"({"name": "parts", "devices": 2, "links": [], )" << inside << "}";
  size_t length = 0;
  EXPECT_ERROR(ccomTopoExplain(path.c_str(), "allreduce", 1, ccomFloat32, -1, nullptr, &length), ccomConfigError,
               "do not join all of its 2 devices");
}

TEST(TopoExplain, RefusesWrongArguments) {
  char text[8];
  size_t length = sizeof text;
  const auto code = [&](const char* topology, const char* collective, ccomDataType_t type, int root) {
    return ccomTopoExplain(topology, collective, 1, type, root, text, &length);
  };
  EXPECT_EQ(code(nullptr, "allreduce", ccomFloat32, 0), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", nullptr, ccomFloat32, 0), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "allreduces", ccomFloat32, 0), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "allreducev", ccomFloat32, 0), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "gathervv", ccomFloat32, 0), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "gatherv", ccomFloat32, 4), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "broadcast", ccomFloat32, 4), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "broadcast", ccomFloat32, -1), ccomInvalidArgument);
  EXPECT_EQ(code("ring:4", "allreduce", static_cast<ccomDataType_t>(99), 0), ccomInvalidArgument);
  EXPECT_EQ(code("trn9", "allreduce", ccomFloat32, 0), ccomConfigError);
  EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("trn9"));
  EXPECT_EQ(code("0*ring:4", "allreduce", ccomFloat32, 0), ccomConfigError);
  EXPECT_EQ(code("/nowhere/at.json", "allreduce", ccomFloat32, 0), ccomConfigError);
  EXPECT_EQ(code("ring:4", "allreduce", ccomFloat32, 0), ccomInvalidArgument) << "8 bytes are too few";
  EXPECT_GT(length, 100U) << "says what is needed";
  EXPECT_EQ(std::string(text), "{\"colle");
  EXPECT_EQ(ccomTopoExplain("ring:4", "allreduce", 1, ccomFloat32, 0, text, nullptr), ccomInvalidArgument);
}

json explained(ccomComm_t comm, const std::string& collective, size_t count, int root = -1,
               ccomDataType_t type = ccomFloat32) {
  size_t length = 0;
  EXPECT_OK(ccomExplain(comm, collective.c_str(), count, type, root, nullptr, &length)) << collective;
  std::string text(length, '\0');
  EXPECT_OK(ccomExplain(comm, collective.c_str(), count, type, root, text.data(), &length)) << collective;
  const json object = json::parse(text.c_str(), nullptr, false);
  EXPECT_TRUE(object.is_object()) << text;
  return object;
}

TEST(Explain, OfAnImposedTopologySaysAsMuch) {
  with_ranks({.hosts = std::vector<int>(4), .topology = "torus:2x2"}, [](int, ccomComm_t comm) {
    const json object = explained(comm, "allreduce", 1 << 20);
    EXPECT_EQ(object["ranks"], 4);
    EXPECT_EQ(links(object, "link")["there"], 8);
    EXPECT_TRUE(candidate(object, object["algorithm"]).contains("times_bound"));
  });
}

TEST(Explain, KnowsVForms) {
  const auto expect_explained = [](ccomComm_t comm, const std::string& collective, const std::string& algorithm) {
    const json object = explained(comm, collective, 1000, 0);
    EXPECT_EQ(object["collective"], collective);
    EXPECT_EQ(object["algorithm"], algorithm) << collective;
    EXPECT_EQ(object["bytes"], algorithm == "node" ? 16384 : 16000) << "the planner is asked about powers of two";
    EXPECT_EQ(object["ranks"], 4);
    const bool is_in_memory = algorithm == "node";
    EXPECT_EQ(object.contains("host_stages"), is_in_memory) << "calls of it go through memory";
    EXPECT_EQ(object.contains("agreement"), !is_in_memory) << "which compare counts at their barrier";
    if (!is_in_memory) {
      EXPECT_EQ(object["agreement"]["bytes"], 64);
    }
  };
  with_ranks(4, [&](int, ccomComm_t comm) {
    for (const char* collective : {"allgatherv", "reduce_scatterv", "alltoallv"})
      expect_explained(comm, collective, "node");
    for (const char* collective : {"gatherv", "scatterv"}) expect_explained(comm, collective, "star");
    std::vector<float> part(2), all(7);  // calls are as before
    const std::vector<size_t> counts{2, 2, 2, 1};
    const size_t own = counts[static_cast<size_t>(rank_in(comm))];
    ASSERT_OK(ccomAllGatherV(part.data(), own, all.data(), counts.data(), nullptr, ccomFloat32, comm, nullptr));
  });
  with_ranks({.hosts = std::vector<int>(4), .topology = "ring:4"}, [&](int, ccomComm_t comm) {
    const std::string reason = explained(comm, "alltoallv", 1000)["reason"];
    EXPECT_TRUE(reason.starts_with("not all ranks are linked")) << reason;
  });
}

TEST(Explain, SaysWhatDeterminismRulesOut) {
  with_ranks({.hosts = std::vector<int>(3), .transport = "tcp", .determinism = "full"}, [](int, ccomComm_t comm) {
    const json object = explained(comm, "allreduce", 1 << 20);
    EXPECT_EQ(object["order"], "canonical");
    EXPECT_EQ(object["algorithm"], "two_shot");
    EXPECT_EQ(candidate(object, "ring")["legal"], false);
    EXPECT_THAT(candidate(object, "ring")["note"].get<std::string>(), HasSubstr("determinism=full"));
    EXPECT_FALSE(explained(comm, "allreduce", 1 << 20, -1, ccomInt32).contains("order"));
  });
}

TEST(Explain, ListsTheWaysOfACallThatWasNotMade) {
  with_ranks(2, [](int, ccomComm_t comm) {
    EXPECT_EQ(explained(comm, "broadcast", 8, 0)["host_stages"][0]["small"], true);
    const json stages = explained(comm, "allreduce", 1 << 18)["host_stages"];
    EXPECT_EQ(stages[0]["small"], false);
    ASSERT_EQ(stages.size(), 1U);
    EXPECT_EQ(stages[0]["stage"], 0);
    EXPECT_EQ(stages[0]["collective"], "allreduce");
    EXPECT_EQ(stages[0]["unit_bytes"], 1 << 20);
    EXPECT_GT(stages[0]["ways"].size(), 2U);
    EXPECT_THAT(stages[0]["ways"][0].get<std::string>(), HasSubstr("two_shot"));
    EXPECT_TRUE(stages[0]["found"].empty());
  });
}

TEST(Explain, TellsWhatCallsHaveFoundOutAboutTheirWays) {
  constexpr int kCalls = 400;
  constexpr size_t kCount = 1 << 14;
  std::vector<json> said(2);
  with_ranks(2, [&](int rank, ccomComm_t comm) {
    std::vector<float> input(kCount, 1), output(kCount);
    for (const ccomRedOp_t op : {ccomSum, ccomMax}) {
      for (int i = 0; i < (op == ccomSum ? kCalls : 2); ++i)
        ASSERT_OK(ccomAllReduce(input.data(), output.data(), kCount, ccomFloat32, op, comm, nullptr));
    }
    said[static_cast<size_t>(rank)] = explained(comm, "allreduce", kCount)["host_stages"];
    const json other = explained(comm, "allreduce", 2 * kCount)["host_stages"];
    EXPECT_TRUE(other[0]["found"].empty()) << "no such call was made";
  });
  EXPECT_EQ(said[0], said[1]) << "all ranks know the same";
  const json ways = said[0][0]["ways"], found = said[0][0]["found"];
  ASSERT_EQ(found.size(), 2U) << said[0];
  const json& sums = found[found[0]["op"] == "sum" ? 0 : 1];
  EXPECT_EQ(sums["op"], "sum");
  EXPECT_THAT(sums["buffers"].get<std::string>(), testing::StartsWith("mapped ")) << "of one process";
  EXPECT_EQ(sums["calls"], kCalls - 1) << "all but the first, which did not know its buffers";
  ASSERT_EQ(sums["median_us"].size(), ways.size());
  ASSERT_LT(sums["in_use"].get<size_t>(), ways.size());
  EXPECT_LT(sums["chosen_at"], kCalls);
  EXPECT_LT(sums["lost_calls"].get<double>(), kCalls / 2);
  EXPECT_GE(std::ranges::count_if(sums["median_us"], &json::is_number), 2) << "another way was tried: " << sums;
}

}  // namespace
}  // namespace ccom
