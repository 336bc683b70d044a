// SPDX-License-Identifier: Apache-2.0
//
// A folder that looks like the sys and proc of some machine; removed with its owner.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/folder.h"
#include "topology/topology.h"

namespace ccom {

class FakeTree {
 public:
  const std::string& root() const { return folder_.path(); }
  void write(const std::string& path, const std::string& text);
  void make_folder(const std::string& path);  // where a file is expected: a read fails, even for root
  void make_link(const std::string& path, const std::string& target);
  void remove(const std::string& path);

  // An EC2 machine of this type.
  void set_instance_type(const std::string& name);
  // One Neuron device; the text is that of connected_devices, without its newline.
  void add_neuron(int number, int physical_cores, const std::string& connected);

 private:
  const TemporaryFolder folder_;
};

// What discovery finds there; also that it survives to_json(), as which the other ranks get it.
Host host_of(const FakeTree& tree, const NeuronHints& hints = {}, std::string_view host_id = "");

// connected_devices of the 16 devices of a 4x4 torus: "up, left, down, right", as neuron-ls and the Trn1 driver print
// it ...
std::vector<std::string> neighbours_in_grid_order();
// ... and in the order of the Trn2 driver, which is that of its ports.
std::vector<std::string> neighbours_in_port_order();

}  // namespace ccom
