// SPDX-License-Identifier: Apache-2.0
//
// Pictures: well-formed, everything in them, against one file in tests/golden; look at
// the picture before a new one is committed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

#include "tests/golden.h"
#include "tests/topology/fake_machine.h"
#include "tools/topo/svg.h"

namespace ccom {
namespace {

using testing::HasSubstr;
using testing::Not;

// Is every element closed in its turn, every attribute quoted, and is there no bare < or & in between? Enough of XML
// for what is written here.
std::string wrong_with(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const size_t end = text.find(';', at);
      const std::string entity = text.substr(at, end - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;") return "entity " + entity;
    }
    if (text[at] != '<') {
      if (open.empty() && text[at] != '\n') return "text outside";
      ++at;
      continue;
    }
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return "open tag";
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.find('<') != std::string::npos || std::ranges::count(tag, '"') % 2 != 0) return "tag " + tag;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + tag;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

int count(const std::string& text, const std::string& piece) {
  int found = 0;
  for (size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += piece.size()) ++found;
  return found;
}

TEST(Svg, CheckSeesWhatIsWrong) {
  EXPECT_EQ(wrong_with("<svg a=\"1\"><b/>x &amp; y</svg>\n"), "");
  for (const char* text : {"<svg>", "<svg></b></svg>", "<svg>&</svg>", "<svg a=\"></svg>", "<svg>a<b</svg>", "x"}) {
    EXPECT_NE(wrong_with(text), "") << text;
  }
}

TEST(Svg, OfEveryPresetAndShapeIsWellFormedAndShowsEveryDeviceAndLink) {
  std::vector<std::string> names = preset_names();
  for (const char* name : {"single", "chain:20", "ring:5", "ring:2", "full:6", "switch:4", "torus:1x5", "torus:2x2",
                           "torus:3x5", "torus:2x3x4", "ring:4+routed"}) {
    names.push_back(name);
  }
  for (const std::string& name : names) {
    const Fabric fabric = *make_fabric(name);
    const std::string svg = to_svg(fabric);
    EXPECT_EQ(wrong_with(svg), "") << name;
    EXPECT_EQ(count(svg, "<rect x="), fabric.devices) << name;
    EXPECT_EQ(count(svg, "<circle "), fabric.switches) << name;
    EXPECT_EQ(count(svg, "<title>"), static_cast<int>(fabric.links.size() / 2)) << name;
    EXPECT_THAT(svg, HasSubstr(">" + name + "</text>"));
  }
}

TEST(Svg, OfAMachineWithRanksPrintsAsRecorded) {
  Host host;
  host.id = host.name = "left";
  host.imposed = *make_fabric("trn1.32xlarge");
  const std::string svg = to_svg(*merge(std::vector<RankView>(24, {host})));
  EXPECT_THAT(svg, HasSubstr(">ranks 22-23</text>"));
  expect_golden("topology_trn1.32xlarge.svg", svg);
}

TEST(Svg, OfSeveralHostsJoinsThemByTheNetwork) {
  const auto hosts = [](int count) {
    std::vector<RankView> ranks;
    for (int index = 0; index < count; ++index) {
      Host host;
      host.id = host.name = "h" + std::to_string(index);
      host.imposed = *make_fabric("trn1.32xlarge");
      ranks.insert(ranks.end(), 2, {host});
    }
    return to_svg(*merge(ranks));
  };
  EXPECT_EQ(wrong_with(hosts(6)), "");
  EXPECT_THAT(hosts(2), HasSubstr("class=\"network\">"));
  EXPECT_THAT(hosts(2), HasSubstr(">network, 100 GB/s each way at each host</text>"));
  EXPECT_THAT(hosts(1), Not(HasSubstr("class=\"network\"")));
}

TEST(Svg, TellsLinksOfDifferentSpeedApart) {
  const std::string svg = to_svg(*make_fabric("trn2-ultraserver"));
  EXPECT_THAT(svg, HasSubstr("128 GB/s each way"));
  EXPECT_THAT(svg, HasSubstr("64 GB/s each way"));
  EXPECT_EQ(count(svg, "stroke=\"#2a9d8f\""), 64 + 1);  // those between instances, and the legend
}

TEST(Svg, ShowsWhatTheInstanceTypeHasAndTheHostLacks) {
  FakeMachine machine = fake_machine("trn1.32xlarge");
  std::erase_if(machine.devices, [](const FakeDevice& device) { return device.number == 5; });
  machine.devices[0].connected = "3, 4, 1";  // no longer 12
  FakeTree tree;
  write_machine(machine, tree);
  const std::string svg = to_svg(*discover(tree.root(), ""));
  EXPECT_EQ(wrong_with(svg), "");
  EXPECT_EQ(count(svg, "class=\"missing\""), 1);
  EXPECT_EQ(count(svg, "class=\"broken\"><title>"), 4 + 1);
  EXPECT_THAT(svg, HasSubstr("<title>0 - 12: missing</title>"));
  EXPECT_THAT(svg, HasSubstr(">rdmap10s24 rdmap10s25</text>"));
  EXPECT_THAT(svg, HasSubstr("missing: 5."));
}

TEST(Svg, OfARenumberedTorusNamesTheDriversNumbers) {
  FakeMachine machine = fake_machine("inf2.48xlarge");
  for (FakeDevice& device : machine.devices) {  // every fifth is the next in the ring
    device.connected = std::to_string((device.number + 5) % 12) + ", " + std::to_string((device.number + 7) % 12);
  }
  FakeTree tree;
  write_machine(machine, tree);
  const std::string svg = to_svg(*discover(tree.root(), ""));
  EXPECT_THAT(svg, HasSubstr(">1 neuron5</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("broken\">")));
}

TEST(Svg, OfAHostWithoutAFabricIsOneBoxAndNamesAreEscaped) {
  Host host;
  host.id = host.name = "a <b> & \"c\" \x01";
  host.nics = {{.name = "eth0", .kind = "ethernet"}, {.name = "<&>", .kind = "ethernet"}};
  const std::string svg = to_svg(*merge({{host}, {host}, {host}}));
  EXPECT_EQ(wrong_with(svg), "");
  EXPECT_EQ(count(svg, "<rect x="), 1);
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; &quot;c&quot; ?"));
  EXPECT_THAT(svg, HasSubstr(">ranks 0-2</text>"));
  EXPECT_THAT(svg, HasSubstr(">eth0 &lt;&amp;&gt;</text>"));
}

TEST(Svg, OfAHostOfAnyInstanceTypeIsDrawn) {
  Host host;
  host.id = "host";
  host.neuron = *make_fabric("ring:4");
  host.neuron_devices = {{.number = 7}, {.number = 8}, {.number = 9}, {.number = 10}};
  for (const char* type : {"", "trn9", "trn2-ultraserver:zz", "trn3-us-gen1", "generic", "torus4x4", "p5.48xlarge"}) {
    host.instance_type = type;
    EXPECT_EQ(wrong_with(to_svg(host)), "") << type;
    EXPECT_EQ(count(to_svg(host), "<rect x="), 4) << type;
  }
}

TEST(Svg, OfManyHostsShowsTheFirst) {
  const std::string svg = to_svg(*make_topology("9*ring:4"));
  EXPECT_EQ(wrong_with(svg), "");
  EXPECT_EQ(count(svg, "<rect x="), 4 * 4);
  EXPECT_THAT(svg, HasSubstr("and 5 hosts more"));
  EXPECT_LT(to_svg(*make_fabric("torus:64x64")).size(), 4000u);
}

}  // namespace
}  // namespace ccom
