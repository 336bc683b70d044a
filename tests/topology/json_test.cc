// SPDX-License-Identifier: Apache-2.0
//
// The JSON form: every value comes back as it was; every text that is not quite right is an error that says where; no
// text whatever crashes the reader or yields a value that breaks a promise of topology.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/harness/results.h"
#include "tools/topo/text.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::HasSubstr;

Host named(const std::string& id) {
  Host host;
  host.id = id;
  return host;
}

// A host with something of everything.
Host furnished(const std::string& imposed) {
  Host host = named("i");
  host.caches = {{2, 4096, 1}};
  host.nics = {{"eth0", "ethernet", 1e9, 0}};
  host.imposed = *make_fabric(imposed);
  return host;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(engine_); }
  std::string text() {
    static const std::vector<std::string> kPieces = {"a", "Z", "0", " ", "\"", "\\", "/", "é", "☃", "{", ",", "ring"};
    std::string text = "x";
    for (int left = up_to(8); left > 0; --left) text += kPieces[static_cast<size_t>(up_to(11))];
    return text;
  }
  LinkSpeed speed() { return {.latency_ns = up_to(3) == 0 ? 0 : real(0, 1e6), .bytes_per_second = real(1, 1e12)}; }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }

  // A shape with links of random speeds, or any graph.
  Fabric fabric() {
    static const std::vector<std::string> kNames = {"single",      "ring:5",       "chain:4",  "torus:3x4",
                                                    "full:4",      "torus:2x3x2",  "switch:4", "trn2.48xlarge",
                                                    "p5.48xlarge", "ring:4+routed"};
    Fabric fabric = *make_fabric(kNames[static_cast<size_t>(up_to(9))]);
    fabric.name = text();
    for (Link& link : fabric.links) link.speed = speed();
    fabric.inside_device = speed();
    if (up_to(2) == 0) {
      const auto is_dropped = [](const Link& link) { return (link.from + link.to) % 3 == 0; };  // both directions
      std::erase_if(fabric.links, is_dropped);
      fabric.shape = Fabric::Shape::Other;
      fabric.dims.clear();
    }
    fabric.cores_per_device = 1 + up_to(7);
    return fabric;
  }
  Host host() {
    Host host = named(text());
    host.name = up_to(1) ? text() : "";
    host.instance_type = up_to(1) ? text() : "";
    host.cpu_model = text();
    host.cpus = 1 + up_to(300);
    host.numa_nodes = 1 + up_to(7);
    host.memory_bytes = static_cast<uint64_t>(real(0, 1e15));
    for (int left = up_to(3); left > 0; --left) {
      host.caches.push_back({1 + up_to(3), static_cast<uint64_t>(up_to(1 << 30)), 1 + up_to(100)});
      host.nics.push_back({text(), text(), up_to(1) ? real(0, 1e11) : 0, up_to(8) - 1});
    }
    if (up_to(1)) host.neuron = fabric();
    if (up_to(1)) host.imposed = fabric();
    return host;
  }
  Topology topology() {
    std::vector<Host> hosts;
    for (int left = 1 + up_to(3); left > 0; --left) {
      hosts.push_back(host());
      hosts.back().id += std::to_string(left);
    }
    std::vector<RankView> views;
    for (const Host& each : hosts) {
      const int cores = each.imposed ? each.imposed->devices * each.imposed->cores_per_device : 5;
      for (int left = 1 + up_to(cores - 1); left > 0; --left) {
        views.push_back({each, {{}, 0, up_to(4) - 1, up_to(4) - 1}});
      }
    }
    std::shuffle(views.begin(), views.end(), engine_);
    Topology topology = *merge(views);
    topology.memory = speed();
    topology.network = speed();
    return topology;
  }

 private:
  std::mt19937 engine_;
};

// What a reader may rely on, checked here once more and more slowly.
void expect_promises(const Fabric& fabric) {
  for (const Link& link : fabric.links) {
    ASSERT_TRUE(link.from >= 0 && link.from < fabric.devices && link.to >= 0 && link.to < fabric.devices);
    ASSERT_TRUE(link.from != link.to && fabric.linked(link.to, link.from));
    ASSERT_TRUE(link.speed.bytes_per_second > 0 && link.speed.latency_ns >= 0);
  }
}

TEST(Json, OfEveryPresetComesBack) {
  std::vector<std::string> names = preset_names();
  names.insert(names.end(), {"single", "ring:1", "ring:2", "chain:7", "torus:1x1", "torus:2x5", "torus:8x8", "full:9"});
  for (const std::string& name : names) {
    const Fabric fabric = *make_fabric(name);
    const Result<Fabric> back = fabric_from_json(to_json(fabric));
    ASSERT_TRUE(back.has_value()) << name << ": " << back.error().message();
    EXPECT_EQ(*back, fabric) << name;
  }
}

TEST(Json, OfRandomValuesComesBackAndIsStable) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Topology topology = random.topology();
    const std::string text = to_json(topology);
    const Result<Topology> back = topology_from_json(text);
    ASSERT_TRUE(back.has_value()) << back.error().message() << "\n" << text;
    ASSERT_EQ(*back, topology);
    ASSERT_EQ(to_json(*back), text);
    const Host host = random.host();
    ASSERT_EQ(*host_from_json(to_json(host)), host);
  }
}

TEST(Json, OfEqualValuesIsEqualText) {
  Fabric a = *make_fabric("ring:3");
  Fabric b = a;
  a.links[0].speed.latency_ns = 0.0;
  b.links[0].speed.latency_ns = -0.0;
  ASSERT_EQ(a, b);
  EXPECT_EQ(to_json(a), to_json(b));
}

TEST(Json, OfTextThatIsNotUtf8IsStillJson) {
  const Host host = value_of(host_from_json(to_json(named("a\xff\xfe"))));
  EXPECT_THAT(host.id, HasSubstr("a"));
}

struct Slip {
  const char* from;  // part of a good text
  const char* to;    // what stands there instead
  const char* error;
};

template <typename T>
void expect_errors(const std::string& good, Result<T> (*read)(std::string_view), const std::vector<Slip>& slips) {
  ASSERT_TRUE(read(good).has_value()) << read(good).error().message();
  for (const Slip& slip : slips) {
    std::string bad = good;
    const size_t at = bad.find(slip.from);
    ASSERT_NE(at, std::string::npos) << slip.from;
    bad.replace(at, std::string(slip.from).size(), slip.to);
    const Status failure = error_of(read(bad));
    EXPECT_EQ(failure.code(), Code::ConfigError) << bad;
    EXPECT_THAT(failure.message(), HasSubstr(slip.error)) << bad;
  }
}

TEST(Json, OfAFabricThatIsWrongSaysWhere) {
  expect_errors<Fabric>(
      R"({"name":"c","shape":"chain","dims":[2],"devices":2,"cores_per_device":1,"links":[[0,1,5,9],[1,0,5,9]],)"
      R"("inside_device":{"latency_ns":1,"bytes_per_second":2}})",
      fabric_from_json,
      {
          {"\"name\":\"c\"", "\"name\":\"\"", "fabric.name: expected a text of 1 to"},
          {"\"name\":\"c\"", "\"name\":7", "fabric.name: expected a text, found 7"},
          {"\"name\":\"c\",", "", "fabric.name: missing"},
          {"\"name\":\"c\"", "\"name\":\"c\\n\"", "fabric.name: control character"},
          {"\"name\":\"c\"", "\"name\":\"c\",\"nmae\":1", "fabric.nmae: unknown key"},
          {"\"name\":\"c\"", "\"name\":\"c\",\"name\":\"d\"", "\"name\" is there twice"},
          {"chain", "star", "fabric.shape: expected single"},
          {"[2]", "[3]", "fabric.dims: the dims give 3 devices, not 2"},
          {"[2]", "[]", "fabric.dims: a chain has 1 dims, not 0"},
          {"[2]", "[2,1]", "fabric.dims: a chain has 1 dims, not 2"},
          {"[2]", "[1,1,1,1]", "fabric.dims: expected a list of 0 to 3 elements"},
          {"\"devices\":2", "\"devices\":2.0", "fabric.devices: expected an integer from 1 to 16384, found 2.0"},
          {"\"devices\":2", "\"devices\":0", "fabric.devices: expected an integer"},
          {"\"devices\":2", "\"devices\":18446744073709551615", "fabric.devices: expected an integer"},
          {"\"cores_per_device\":1", "\"cores_per_device\":0", "fabric.cores_per_device: expected"},
          {"[1,0,5,9]", "[1,2,5,9]", "fabric.links[1][1]: expected an integer from 0 to 1, found 2"},
          {"[1,0,5,9]", "[1,0,5]", "fabric.links[1]: expected a list of 4 elements"},
          {"[1,0,5,9]", "[1,0,-5,9]", "fabric.links[1][2]: expected a number"},
          {"[1,0,5,9]", "[1,0,5,0]", "fabric.links[1][3]: expected a number"},
          {"[1,0,5,9]", "[1,0,5,null]", "fabric.links[1][3]: expected a number"},
          {"[1,0,5,9]", "[1,1,5,9]", "fabric.links[1]: a link from a device to itself"},
          {"[1,0,5,9]", "[0,1,5,9]", "fabric.links[1]: links must be sorted"},
          {",[1,0,5,9]", "", "fabric.links: there is 0 -> 1 but no way back"},
          {"[0,1,5,9],[1,0,5,9]", "", "fabric.links: link 0 -> 1 is missing in shape chain"},
          {"\"latency_ns\":1", "\"latency\":1", "fabric.inside_device.latency_ns: missing"},
          {"\"latency_ns\":1", "\"latency_ns\":1e999", "JSON: "},
      });
}

TEST(Json, OfLinksThatAreNoTorusIsAnErrorUnlessTheShapeIsOther) {
  Fabric fabric = *make_fabric("torus:2x3");
  fabric.dims = {3, 2};
  EXPECT_THAT(fabric_from_json(to_json(fabric)).error().message(), HasSubstr("shape torus; use shape \"other\""));
  fabric.shape = Fabric::Shape::Other;
  fabric.dims = {};
  EXPECT_TRUE(fabric_from_json(to_json(fabric)).has_value());
}

TEST(Json, OfAHostThatIsWrongSaysWhere) {
  const Host host = furnished("ring:3");
  expect_errors<Host>(to_json(host), host_from_json,
                      {
                          {"\"id\":\"i\"", "\"id\":\"\"", "host.id: expected a text of 1"},
                          {"\"cpus\":1", "\"cpus\":0", "host.cpus: expected an integer from 1"},
                          {"\"cpus\":1", "\"cpus\":\"1\"", "host.cpus: expected an integer"},
                          {"\"cpus\":1,", "", "host.cpus: missing"},
                          {"\"memory_bytes\":0", "\"memory_bytes\":-1", "host.memory_bytes: expected"},
                          {"\"level\":2", "\"level\":0", "host.caches[0].level: expected"},
                          {"\"numa_node\":0", "\"numa_node\":-2", "host.nics[0].numa_node: expected"},
                          {"\"kind\":\"ethernet\",", "", "host.nics[0].kind: missing"},
                          {"[0,1,", "[0,9,", "host.imposed.links[0][1]: expected an integer from 0 to 2"},
                          {"\"devices\":3", "\"devices\":3,\"x\":[1]", "host.imposed.x: unknown key"},
                      });
}

TEST(Json, OfATopologyThatIsWrongSaysWhere) {
  Host a = named("a");
  a.imposed = *make_fabric("ring:2");
  const Topology topology = *merge({{a}, {named("b")}, {a}});
  expect_errors<Topology>(
      to_json(topology), topology_from_json,
      {
          {R"({"host":1,"local":0,"device":-1})", R"({"host":2,"local":0,"device":-1})",
           "topology.ranks[1].host: there is"},
          {R"({"host":1,"local":0,"device":-1})", R"({"host":1,"local":1,"device":-1})",
           "topology.ranks[1].local: must"},
          {R"({"host":1,"local":0,"device":-1})", R"({"host":1,"local":0,"device":0})",
           "topology.ranks[1].device: must"},
          {R"({"host":0,"local":0,"device":0})", R"({"host":0,"local":0,"device":-1})",
           "topology.ranks[0].device: must"},
          {R"({"host":0,"local":0,"device":0})", R"({"host":0,"local":0,"device":2})",
           "topology.ranks[0].device: must"},
          {R"({"host":0,"local":0,"device":0})", R"({"host":0,"local":0,"device":1})",
           "topology.ranks[2].device: has more"},
          {R"({"host":0,"local":0,"device":0},)", "", "topology.ranks[0].host: hosts must be in the order"},
          {R"({"host":1,"local":0,"device":-1},)", "", "topology.hosts: a host without ranks"},
          {R"("id":"b")", R"("id":"a")", "topology.hosts: id \"a\" is there twice"},
          {R"("ranks":)", R"("rank":)", "topology.ranks: missing"},
          {R"("ranks":[)", R"("ranks":[7,)", "topology.ranks[0]: expected an object, found 7"},
      });
}

TEST(Json, ThatIsNoJsonIsAnError) {
  for (const char* text : {"", "{", "nonsense", "null", "[]", "7", "{\"a\":1,}", "{} {}", "\"\xff\""}) {
    EXPECT_EQ(topology_from_json(text).error().code(), Code::ConfigError) << text;
    EXPECT_EQ(host_from_json(text).error().code(), Code::ConfigError) << text;
    EXPECT_EQ(fabric_from_json(text).error().code(), Code::ConfigError) << text;
  }
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_THAT(fabric_from_json(deep).error().message(), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(fabric_from_json(objects).has_value());
}

TEST(Json, ThatIsCutOffIsAnErrorAtEveryLength) {
  Random random(7);
  Topology topology = random.topology();
  const std::string text = to_json(topology);
  const size_t step = std::max<size_t>(1, text.size() / 400);
  for (size_t length = 0; length < text.size(); length += step) {
    ASSERT_FALSE(topology_from_json(std::string_view(text).substr(0, length)).has_value()) << length;
  }
  ASSERT_FALSE(topology_from_json(std::string_view(text).substr(0, text.size() - 1)).has_value());
}

// Bytes changed, removed or doubled at random: an error, or a value that keeps every promise.
TEST(Json, ThatIsDamagedNeverCrashesNorBreaksAPromise) {
  constexpr unsigned kSeed = 4711;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const Host host = furnished("torus:2x3");
  const std::string good = to_json(*merge({{host}, {host}, {named("b")}}));
  const std::string letters = "0123456789-+.eE[]{}:,\"\\ntrfu\xff ";
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = good;
    for (unsigned left = 1 + random() % 3; left > 0; --left) {
      const size_t at = random() % text.size();
      const size_t length = std::min<size_t>(1 + random() % 4, text.size() - at);
      switch (random() % 3) {
        case 0: text[at] = letters[random() % letters.size()]; break;
        case 1: text.erase(at, length); break;
        default: text.insert(at, text.substr(at, length)); break;
      }
    }
    const Result<Topology> topology = topology_from_json(text);
    if (!topology) {
      ASSERT_EQ(topology.error().code(), Code::ConfigError);
      continue;
    }
    ++accepted;
    ASSERT_EQ(*topology_from_json(to_json(*topology)), *topology) << text;
    ASSERT_FALSE(to_text(*topology).empty());
    for (Rank a = 0; a < topology->nranks(); ++a) {
      for (Rank b = 0; b < topology->nranks(); ++b) ASSERT_EQ(topology->linked(a, b), topology->linked(b, a));
    }
    for (const Host& each : topology->hosts) {
      if (each.imposed) expect_promises(*each.imposed);
    }
  }
  EXPECT_GT(accepted, 0);  // a digit of a speed may change; otherwise this test shows little
}

}  // namespace
}  // namespace ccom
