// SPDX-License-Identifier: Apache-2.0
//
// Pictures. A scene is a fabric with what is written at its devices; a sheet puts scenes below one another.
#include "tools/topo/svg.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "tools/topo/svg_layout.h"
#include "tools/topo/words.h"
#include "topology/presets.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

constexpr int kMostDevices = 1024;
constexpr size_t kMostHosts = 4;

// Links from the fastest kind to slower ones. Told apart also by those who see no red or green.
constexpr std::array kColours = {"#1b4f8a", "#2a9d8f", "#e9a23b", "#d1495b", "#8d6a9f"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return result;
}

std::string text_at(double x, double y, const char* kind, const std::string& text) {
  return printed("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, kind) + escaped(text) + "</text>\n";
}

struct Scene {
  Fabric fabric;
  std::string title;
  std::vector<std::string> names = {};  // by device: what else it is called
  std::vector<std::string> ranks = {};  // by device
  std::vector<std::string> cards = {};  // by device
  std::set<int> missing = {};           // devices that are not there
  std::set<Edge> broken = {};           // links that are not there, lower device first
  std::vector<std::string> notes = {};
};

// ---- a scene's contents ----

std::string uplink_text(const Uplink& uplink) {
  std::string text = printed("net %.4g GB/s", uplink.speed.bytes_per_second / 1e9);
  if (uplink.devices.size() > 1) text += printed(" for %zu", uplink.devices.size());
  return text;
}

void add_uplinks(Scene& scene) {
  if (scene.fabric.uplinks.empty()) return;
  scene.cards.resize(static_cast<size_t>(scene.fabric.devices));
  for (const Uplink& uplink : scene.fabric.uplinks) {
    for (const int device : uplink.devices) scene.cards[static_cast<size_t>(device)] = uplink_text(uplink);
  }
}

// Names of cards, shortened to what fits below a device.
std::string cards_text(const std::vector<std::string>& names) {
  if (names.size() <= 2) return listed(names, " ");
  return names.front() + printed(" +%zu", names.size() - 1);
}

void add_devices(const std::vector<NeuronDevice>& devices, Scene& scene) {
  const auto count = static_cast<size_t>(scene.fabric.devices);
  scene.names.resize(count);
  scene.cards.resize(count);
  for (size_t place = 0; place < std::min(count, devices.size()); ++place) {
    if (devices[place].number != static_cast<int>(place)) {
      scene.names[place] = printed("neuron%d", devices[place].number);
    }
    scene.cards[place] = cards_text(devices[place].nics);
  }
}

// The devices of a host in the picture of the whole machine, if their numbers are the machine's and their links some of
// its links: then what is missing can be shown.
std::optional<Scene> scene_of_part(const Host& host) {
  if (!host.neuron || !is_preset(host.instance_type)) return std::nullopt;
  const Result<Fabric> preset = make_preset(host.instance_type);
  if (!preset) return std::nullopt;
  const Fabric& whole = *preset;
  const auto& devices = host.neuron_devices;
  const bool is_whole = host.neuron->devices == whole.devices;
  if (devices.empty() || (is_whole && host.neuron->shape == whole.shape) || whole.switches > 0) return std::nullopt;
  Scene scene{.fabric = whole, .title = host.neuron->name};
  add_uplinks(scene);
  scene.names.resize(static_cast<size_t>(whole.devices));
  for (int device = 0; device < whole.devices; ++device) scene.missing.insert(device);
  for (const NeuronDevice& device : devices) {
    if (scene.missing.erase(device.number) == 0) return std::nullopt;
    scene.cards[static_cast<size_t>(device.number)] = cards_text(device.nics);
  }
  const bool from_zero = !is_whole && *scene.missing.begin() == static_cast<int>(devices.size());
  if (from_zero) return std::nullopt;  // perhaps a container's numbers
  for (const Link& link : whole.links) scene.broken.emplace(std::minmax(link.from, link.to));
  for (const Link& link : host.neuron->links) {
    const int a = devices[static_cast<size_t>(link.from)].number;
    const int b = devices[static_cast<size_t>(link.to)].number;
    if (!whole.joined(a, b)) return std::nullopt;
    scene.broken.erase(std::minmax(a, b));
  }
  return scene;
}

Scene scene_of(const Fabric& fabric) {
  Scene scene{.fabric = fabric, .title = fabric.name};
  add_uplinks(scene);
  return scene;
}

Scene scene_of(const Host& host) {
  Scene scene;
  if (host.imposed) {
    scene = scene_of(*host.imposed);
  } else if (auto part = scene_of_part(host)) {
    scene = *std::move(part);
  } else if (host.neuron) {
    scene = scene_of(*host.neuron);
    if (!host.neuron_devices.empty()) add_devices(host.neuron_devices, scene);
  } else {
    scene.fabric = make_shape("shared memory", Fabric::Shape::Single, {}, kGenericLink);
    scene.title = counted(host.cpus, "cpu") + ", shared memory";
    scene.names = {host.name};
    std::vector<std::string> names;
    for (const Nic& nic : host.nics) names.push_back(nic.name);
    scene.cards = {cards_text(names)};
  }
  scene.title = (host.name.empty() ? "" : host.name + ": ") + scene.title;
  scene.notes = host.notes;
  return scene;
}

Scene scene_of(const Topology& topology, int index) {
  const Host& host = topology.hosts[static_cast<size_t>(index)];
  Scene scene = scene_of(host);
  if (host.imposed) {
    for (const auto& ranks : ranks_by_device(topology, index)) scene.ranks.push_back(ranges(ranks));
  } else if (scene.fabric.devices == 1) {
    scene.ranks = {ranges(topology.ranks_of(index))};
  } else {
    scene.title += ", ranks " + ranges(topology.ranks_of(index));
  }
  return scene;
}

// ---- drawing ----

// Kinds of links: their speeds, the fastest first.
std::vector<double> kinds_of(const Fabric& fabric) {
  std::set<double, std::greater<>> speeds;
  for (const Link& link : fabric.links) speeds.insert(link.speed.bytes_per_second);
  return {speeds.begin(), speeds.end()};
}

const char* colour_of(const std::vector<double>& kinds, double speed) {
  const auto kind = static_cast<size_t>(std::ranges::find(kinds, speed) - kinds.begin());
  return kColours[std::min(kind, kColours.size() - 1)];
}

std::string links_of(const Scene& scene, const Layout& layout) {
  const std::vector<double> kinds = kinds_of(scene.fabric);
  std::string text = "<g fill=\"none\" stroke-width=\"2.5\">\n";
  for (const Link& link : scene.fabric.links) {
    if (link.from > link.to && scene.fabric.joined(link.to, link.from)) continue;  // one line for both ways
    const bool is_broken = scene.broken.contains(std::minmax(link.from, link.to));
    text += "<path d=\"" + way_between(scene.fabric, layout, link.from, link.to) + "\"";
    text += is_broken ? " class=\"broken\"" : printed(" stroke=\"%s\"", colour_of(kinds, link.speed.bytes_per_second));
    text += printed("><title>%d - %d: ", link.from, link.to) + (is_broken ? "missing" : text_of(link.speed)) +
            "</title></path>\n";
  }
  return text + "</g>\n";
}

std::string label_of(const std::vector<std::string>& labels, int device) {
  return static_cast<size_t>(device) < labels.size() ? labels[static_cast<size_t>(device)] : "";
}

std::string box_of(const Scene& scene, Point center, int device) {
  const bool is_missing = scene.missing.contains(device);
  std::string text = printed("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"6\" class=\"%s\"/>\n",
                             center.x - kBoxWidth / 2, center.y - kBoxHeight / 2, kBoxWidth, kBoxHeight,
                             is_missing ? "missing" : "device");
  const std::string name = label_of(scene.names, device);
  const std::string ranks = label_of(scene.ranks, device);
  const std::string below = is_missing ? "missing" : ranks.empty() ? "" : "ranks " + ranks;
  const double line = below.empty() ? 5 : -3;
  text += text_at(center.x, center.y + line, "name", std::to_string(device) + (name.empty() ? "" : " " + name));
  if (!below.empty()) text += text_at(center.x, center.y + 14, "small", below);
  const std::string cards = is_missing ? "" : label_of(scene.cards, device);
  // Links may run below it. White below the letters, for viewers that ignore the order of painting them.
  if (!cards.empty())
    for (const char* kind : {"card below", "card"})
      text += text_at(center.x, center.y + kBoxHeight / 2 + 13, kind, cards);
  return text;
}

std::string devices_of(const Scene& scene, const Layout& layout) {
  std::string text;
  for (int device = 0; device < scene.fabric.devices; ++device) {
    text += box_of(scene, layout.centers[static_cast<size_t>(device)], device);
  }
  for (int i = 0; i < scene.fabric.switches; ++i) {
    const Point center = layout.centers[static_cast<size_t>(scene.fabric.devices + i)];
    text += printed("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"30\" class=\"device\"/>\n", center.x, center.y);
    text += text_at(center.x, center.y + 5, "name", "switch");
  }
  return text;
}

// Title, what the colours mean, and notes, from `y` down.
std::string head_of(const Scene& scene, double& y) {
  std::string text = text_at(24, y += 30, "title", scene.title);
  std::string facts = shape_text(scene.fabric) + ", " + counted(scene.fabric.devices, "device") + " with " +
                      counted(scene.fabric.cores_per_device, "core") + " each";
  text += text_at(24, y += 20, "fact", facts);
  const std::vector<double> kinds = kinds_of(scene.fabric);
  for (size_t kind = 0; kind < std::min(kinds.size(), kColours.size()); ++kind) {
    const bool is_last = kind + 1 == kColours.size() && kinds.size() > kColours.size();
    y += 18;
    text +=
        printed("<path d=\"M24 %.1fL60 %.1f\" stroke-width=\"2.5\" stroke=\"%s\"/>\n", y - 4, y - 4, kColours[kind]);
    text += text_at(68, y, "fact", printed("%.4g GB/s each way", kinds[kind] / 1e9) + (is_last ? " and slower" : ""));
  }
  if (!scene.broken.empty()) {
    y += 18;
    text += printed("<path d=\"M24 %.1fL60 %.1f\" stroke-width=\"2.5\" class=\"broken\"/>\n", y - 4, y - 4);
    text += text_at(68, y, "fact", counted(scene.broken.size(), "link") + " missing");
  }
  for (const std::string& note : scene.notes) text += text_at(24, y += 18, "fact", note);
  return text;
}

constexpr char kStyle[] =
    "<style>text{font-family:sans-serif;text-anchor:middle;fill:#222}.title{font-size:18px;font-weight:bold;"
    "text-anchor:start}.fact{font-size:13px;text-anchor:start}.name{font-size:14px;font-weight:bold}"
    ".small{font-size:12px}.card{font-size:10px;fill:#555}.below{stroke:#fff;stroke-width:4px}.device{fill:"
    "#eef3f8;stroke:#445}"
    ".missing{fill:#fff;stroke:#999;stroke-dasharray:5 4}.broken{stroke:#c33;stroke-dasharray:6 5}</style>\n";

class Sheet {
 public:
  void add(const Scene& scene) {
    double y = height_;
    body_ += head_of(scene, y);
    width_ = std::max(width_, 760.0);
    height_ = y + 10;
    if (scene.fabric.devices > kMostDevices) return add_line("Too many devices for a picture.");
    const Layout layout = lay_out(scene.fabric);
    body_ += printed("<g transform=\"translate(0 %.1f)\">\n", height_);
    body_ += links_of(scene, layout) + devices_of(scene, layout) + "</g>\n";
    width_ = std::max(width_, layout.width);
    hosts_.push_back({layout.width, height_ + layout.height / 2});
    height_ += layout.height;
  }
  // What joins the hosts: a line down the right side, to hosts that are not shown if it goes on, and one to it from the
  // middle of each scene.
  void add_network(const std::string& text, bool goes_on) {
    if (hosts_.empty()) return;
    const double x = width_ + 30;
    body_ += "<g fill=\"none\" stroke=\"#445\" stroke-width=\"4\" class=\"network\">\n";
    for (const Point& host : hosts_) {
      body_ += printed("<path d=\"M%.1f %.1fL%.1f %.1f\"/>\n", host.x - 20, host.y, x, host.y);
    }
    body_ += printed("<path d=\"M%.1f %.1fL%.1f %.1f\"/>\n</g>\n", x, hosts_.front().y, x,
                     goes_on ? height_ : hosts_.back().y);
    body_ += printed("<g transform=\"rotate(90 %.1f %.1f)\">", x + 10, hosts_.front().y + 10) +
             text_at(x + 10, hosts_.front().y + 10, "fact", text) + "</g>\n";
    width_ = x + 40;
  }
  void add_line(const std::string& text) { body_ += text_at(24, height_ += 30, "title", text); }
  std::string finish() const {
    const double height = height_ + 20;
    return printed(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
               width_, height, width_, height) +
           kStyle + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
  }

 private:
  std::string body_;
  double width_ = 0;
  double height_ = 0;
  std::vector<Point> hosts_;  // of each scene the right edge and the middle
};

// "network, 100 GB/s each way at each host"
std::string network_text(const Topology& topology) {
  double most = 0, least = 0;
  for (const Host& host : topology.hosts) {
    double speed = 0;
    if (host.imposed) {
      for (const Uplink& uplink : host.imposed->uplinks) speed += uplink.speed.bytes_per_second;
    }
    most = std::max(most, speed);
    least = &host == &topology.hosts.front() ? speed : std::min(least, speed);
  }
  return least > 0 && least == most ? printed("network, %.4g GB/s each way at each host", most / 1e9) : "network";
}

}  // namespace

std::string to_svg(const Fabric& fabric) {
  Sheet sheet;
  sheet.add(scene_of(fabric));
  return sheet.finish();
}

std::string to_svg(const Host& host) {
  Sheet sheet;
  sheet.add(scene_of(host));
  return sheet.finish();
}

std::string to_svg(const Topology& topology) {
  Sheet sheet;
  const size_t shown = std::min(topology.hosts.size(), kMostHosts);
  for (size_t host = 0; host < shown; ++host) sheet.add(scene_of(topology, static_cast<int>(host)));
  if (shown < topology.hosts.size()) sheet.add_line("and " + counted(topology.hosts.size() - shown, "host") + " more");
  if (topology.hosts.size() > 1) sheet.add_network(network_text(topology), shown < topology.hosts.size());
  return sheet.finish();
}

}  // namespace ccom
