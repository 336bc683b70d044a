// SPDX-License-Identifier: Apache-2.0
#include "topology/affinity.h"

#include <algorithm>
#include <map>

#include "topology/pci.h"
#include "topology/presets.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

struct Card {
  const Nic* nic;
  std::string path;  // on the PCI bus
};

std::vector<Card> usable_cards(const SysfsRoot& tree, const std::vector<Nic>& nics) {
  const bool has_efa = std::ranges::find(nics, "efa", &Nic::kind) != nics.end();
  std::vector<Card> cards;
  for (const Nic& nic : nics) {
    if (!has_efa || nic.kind == "efa") cards.push_back({&nic, pci_path(tree, nic.pci)});
  }
  return cards;
}

template <typename T>
T at_or(const std::vector<T>& values, int index, T otherwise) {
  return static_cast<size_t>(index) < values.size() ? values[static_cast<size_t>(index)] : otherwise;
}

std::vector<std::string> names_where(const std::vector<Card>& cards, auto&& is_near) {
  std::vector<std::string> names;
  for (const Card& card : cards) {
    if (is_near(card)) names.push_back(card.nic->name);
  }
  return names;
}

// The location of one device, as far as the system and the preset show it.
struct Seat {
  std::string path = {};
  std::string bus = {};
  std::string card_bus = {};
  int numa_node = -1;
};

// Addresses that the driver does not show: the preset's, if an Amazon device responds at them.
void complete(const SysfsRoot& tree, const PresetSeats& seats, bool own_numbers, NeuronDevice& device) {
  const std::string bus = own_numbers ? at_or<std::string>(seats.bus, device.number, "") : "";
  const std::string folder = "sys/bus/pci/devices/";
  if (device.pci.empty() && !seats.card_bus.empty() && !bus.empty()) {
    const std::string pci = bus + ":00.0";
    if (tree.text(folder + pci + "/vendor") == "0x1d0f") device.pci = pci;
  }
  if (device.numa_node < 0 && !device.pci.empty()) {
    const int64_t node = tree.integer(folder + device.pci + "/numa_node").value_or(-1);
    device.numa_node = node >= 0 && node < (1 << 20) ? static_cast<int>(node) : -1;
  }
  if (device.numa_node < 0 && own_numbers) device.numa_node = at_or(seats.numa_node, device.number, -1);
}

// The preset's table is indexed by the device's bus if known, else by its number.
Seat seat_of(const SysfsRoot& tree, const PresetSeats& seats, bool own_numbers, const NeuronDevice& device) {
  Seat seat{.path = pci_path(tree, device.pci), .bus = std::string(bus_of(device.pci)), .numa_node = device.numa_node};
  if (seat.bus.empty() && own_numbers) seat.bus = at_or<std::string>(seats.bus, device.number, "");
  if (!seats.card_bus.empty()) {
    const auto at = std::ranges::find(seats.bus, seat.bus) - seats.bus.begin();
    seat.card_bus = at_or<std::string>(seats.card_bus, static_cast<int>(at), "");
  }
  return seat;
}

std::vector<std::string> nearest(const Seat& seat, const std::vector<Card>& cards) {
  const auto on_bus = [&](const std::string& bus) {
    return names_where(cards, [&](const Card& card) { return !bus.empty() && bus_of(card.nic->pci) == bus; });
  };
  if (auto own = on_bus(seat.card_bus); !own.empty()) return own;
  int most = 1;
  for (const Card& card : cards) most = std::max(most, shared_bridges(seat.path, card.path));
  auto near = names_where(cards, [&](const Card& card) { return shared_bridges(seat.path, card.path) == most; });
  if (near.empty()) near = on_bus(seat.bus);
  if (!near.empty() || seat.numa_node < 0) return near;
  return names_where(cards, [&](const Card& card) { return card.nic->numa_node == seat.numa_node; });
}

// Devices with the same cards share them; nothing if sets of cards overlap, or if a card's speed is unknown.
std::vector<Uplink> uplinks_by_cards(const Host& host) {
  std::map<std::vector<std::string>, std::vector<int>> groups;
  for (size_t place = 0; place < host.neuron_devices.size(); ++place) {
    groups[host.neuron_devices[place].nics].push_back(static_cast<int>(place));
  }
  std::vector<Uplink> uplinks;
  std::vector<std::string> taken;
  for (const auto& [names, devices] : groups) {
    Uplink uplink{devices, {.latency_ns = kUplinkLatencyNs}, 0};
    for (const std::string& name : names) {
      const double speed = std::ranges::find(host.nics, name, &Nic::name)->bytes_per_second;
      if (speed <= 0 || std::ranges::find(taken, name) != taken.end()) return {};
      taken.push_back(name);
      uplink.speed.bytes_per_second += speed;
    }
    uplink.post_ns = kUplinkPostNs / static_cast<double>(std::max<size_t>(1, names.size()));
    if (!names.empty()) uplinks.push_back(std::move(uplink));
  }
  std::ranges::sort(uplinks, {}, &Uplink::devices);
  return uplinks;
}

}  // namespace

void find_nearest_nics(const SysfsRoot& tree, bool own_numbers, Host& host) {
  const std::vector<Card> cards = usable_cards(tree, host.nics);
  const PresetSeats seats = preset_seats(host.instance_type);
  bool is_guessed = false;
  for (NeuronDevice& device : host.neuron_devices) {
    complete(tree, seats, own_numbers, device);
    if (cards.empty()) continue;
    device.nics = nearest(seat_of(tree, seats, own_numbers, device), cards);
    if (!device.nics.empty()) continue;
    is_guessed = cards.size() > 1;
    device.nics = {cards[static_cast<size_t>(device.number) % cards.size()].nic->name};
  }
  if (is_guessed)
    host.notes.emplace_back("Which cards are near which devices is not known: they are dealt out in turn.");
  const bool is_whole = own_numbers && host.neuron->name == host.instance_type;  // the preset knows its uplinks
  if (!is_whole && cards.size() > 0 && cards.front().nic->kind == "efa") host.neuron->uplinks = uplinks_by_cards(host);
  if (!is_whole && cards.empty()) host.neuron->uplinks.clear();
}

}  // namespace ccom
