// SPDX-License-Identifier: Apache-2.0
#include "tests/topology/fake_tree.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ccom {

void FakeTree::write(const std::string& path, const std::string& text) {
  const std::filesystem::path full = folder_ / path;
  std::filesystem::create_directories(full.parent_path());
  std::ofstream(full, std::ios::binary) << text;
}

void FakeTree::make_folder(const std::string& path) { std::filesystem::create_directories(folder_ / path); }

void FakeTree::make_link(const std::string& path, const std::string& target) {
  const std::filesystem::path full = folder_ / path;
  std::filesystem::create_directories(full.parent_path());
  std::filesystem::create_symlink(target, full);
}

void FakeTree::remove(const std::string& path) { std::filesystem::remove_all(folder_ / path); }

void FakeTree::set_instance_type(const std::string& name) {
  write("sys/devices/virtual/dmi/id/sys_vendor", "Amazon EC2\n");
  write("sys/devices/virtual/dmi/id/product_name", name + "\n");
}

void FakeTree::add_neuron(int number, int physical_cores, const std::string& connected) {
  const std::string folder = "sys/devices/virtual/neuron_device/neuron" + std::to_string(number);
  write(folder + "/core_count", std::to_string(physical_cores));  // the driver ends it without a newline
  write(folder + "/connected_devices", connected + "\n");
}

Host host_of(const FakeTree& tree, const NeuronHints& hints, std::string_view host_id) {
  const Result<Host> host = discover(tree.root(), host_id, hints);
  if (!host) {
    ADD_FAILURE() << host.error().message();
    return {};
  }
  EXPECT_EQ(*host_from_json(to_json(*host)), *host);
  return *host;
}

std::vector<std::string> neighbours_in_grid_order() {
  return {"12, 3, 4, 1",  "13, 0, 5, 2",  "14, 1, 6, 3",   "15, 2, 7, 0",  "0, 7, 8, 5",   "1, 4, 9, 6",
          "2, 5, 10, 7",  "3, 6, 11, 4",  "4, 11, 12, 9",  "5, 8, 13, 10", "6, 9, 14, 11", "7, 10, 15, 8",
          "8, 15, 0, 13", "9, 12, 1, 14", "10, 13, 2, 15", "11, 14, 3, 12"};
}

std::vector<std::string> neighbours_in_port_order() {
  return {"12, 1, 3, 4",  "0, 13, 5, 2",  "14, 3, 1, 6",   "2, 15, 7, 0",  "8, 5, 7, 0",   "4, 9, 1, 6",
          "10, 7, 5, 2",  "6, 11, 3, 4",  "4, 9, 11, 12",  "8, 5, 13, 10", "6, 11, 9, 14", "10, 7, 15, 8",
          "0, 13, 15, 8", "12, 1, 9, 14", "2, 15, 13, 10", "14, 3, 11, 12"};
}

}  // namespace ccom
