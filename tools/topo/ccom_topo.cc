// SPDX-License-Identifier: Apache-2.0
//
// ccom-topo: shows the machine as ccom sees it, a fabric, or a cluster of machines, as text, JSON or a picture. Ends
// with 0, or with 3 and a line on stderr if the command line or the environment is wrong.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/options.h"
#include "bench/command_line/command_line.h"
#include "tools/topo/speeds.h"
#include "tools/topo/svg.h"
#include "tools/topo/text.h"

namespace {

constexpr int kConfigError = 3;

struct Request {
  std::string name;  // of a fabric or a cluster; "" = the machine
  std::string root;
  std::string svg;  // file, "" = none
  int ranks = 0;
  bool is_json = false;
  bool is_list = false;
  bool has_speeds = false;  // to be measured
};

int fail(const ccom::Status& status) {
  std::fprintf(stderr, "ccom-topo: %s\n", status.text().c_str());
  if (!status.cure().empty()) std::fprintf(stderr, "%s\n", status.cure().c_str());
  return kConfigError;
}

int write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? 0 : fail(ccom::system_error(errno, "write %s", path.c_str()));
}

template <typename T>
int print(const ccom::Result<T>& value, const Request& request) {
  if (!value) return fail(value.error());
  if (!request.svg.empty() && request.svg != "-") return write_file(request.svg, ccom::to_svg(*value));
  const std::string text = request.svg == "-" ? ccom::to_svg(*value)
                           : request.is_json  ? ccom::to_json(*value) + "\n"
                                              : ccom::to_text(*value);
  std::fputs(text.c_str(), stdout);
  return 0;
}

// The machine with the environment's overrides, as a rank would report it.
ccom::Result<ccom::Host> look(const std::string& root) {
  ccom::NeuronHints hints = ccom::neuron_hints([](const char* name) { return std::getenv(name); });
  hints.tool = ccom::option("CCOM_NEURON_LS");
  CCOM_TRY_ASSIGN(ccom::Host host, ccom::discover(root, ccom::option("CCOM_HOSTID"), hints));
  if (const std::string name = ccom::option("CCOM_TOPOLOGY"); !name.empty()) CCOM_TRY(ccom::impose(host, name));
  if (const std::string rack = ccom::option("CCOM_HOST_RACK"); !rack.empty()) {
    CCOM_TRY_ASSIGN(host.rack, ccom::rack_from(rack));
  }
  return host;
}

// `count` ranks on machines like this one: as many on each as its fabric has cores, all on one without a fabric.
ccom::Result<ccom::Topology> place(const ccom::Result<ccom::Host>& host, int count) {
  if (!host) return host.error();
  const int room = host->imposed ? host->imposed->devices * host->imposed->cores_per_device : count;
  std::vector<ccom::RankView> views(static_cast<size_t>(count), ccom::RankView{*host});
  for (int rank = 0; rank < count && count > room; ++rank) {
    ccom::Host& own = views[static_cast<size_t>(rank)].host;
    own.name += std::to_string(rank / room);
    own.id += " " + std::to_string(rank / room);
  }
  return ccom::merge(views);
}

ccom::Result<ccom::Host> host_with(const std::string& fabric) {
  ccom::Host host;
  host.id = host.name = "host";
  CCOM_TRY_ASSIGN(host.imposed, ccom::make_fabric(fabric));
  return host;
}

int print_speeds(const Request& request) {
  const ccom::Result<ccom::Host> host = look(request.root);
  if (!host) return fail(host.error());
  const ccom::MachineSpeeds speeds = ccom::measure_speeds(host->cache_bytes(2));
  std::fputs((request.is_json ? ccom::to_json(speeds) + "\n" : ccom::to_text(speeds)).c_str(), stdout);
  return 0;
}

int run(const Request& request) {
  if (request.has_speeds) return print_speeds(request);
  if (request.is_list) {
    for (const std::string& name : ccom::preset_names()) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (ccom::names_cluster(request.name) && request.ranks > 0) {
    return fail({ccom::Code::ConfigError, request.name + " has a rank on every core: --ranks does not apply"});
  }
  if (ccom::names_cluster(request.name)) return print(ccom::make_topology(request.name), request);
  const bool is_machine = request.name.empty();
  if (request.ranks > 0)
    return print(place(is_machine ? look(request.root) : host_with(request.name), request.ranks), request);
  if (is_machine) return print(look(request.root), request);
  const auto fabric = ccom::make_fabric(request.name);
  if (fabric || !request.name.ends_with(".json")) return print(fabric, request);
  const auto topology = ccom::make_topology(request.name);  // the file may hold a whole machine
  return topology ? print(topology, request) : print(fabric, request);
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  request.root = ccom::option("CCOM_SYSFS_ROOT");
  ccom::CommandLine line("ccom-topo", "Shows this machine, or the fabric or cluster that is named, as ccom sees it.");
  const auto fabric = line.option("fabric", request.name,
                                  "A preset (see --list), single, ring:N, chain:N, torus:RxC, torus:LxRxC, full:N, "
                                  "switch:N, a JSON file, or several hosts: 4*trn1.32xlarge, host:3+host:5@25Gbit")
                          .offers(ccom::preset_names())
                          .file();
  const auto root =
      line.option("--root", request.root, "Read the machine from a recorded tree that holds sys and proc").file();
  const auto ranks = line.option("--ranks", request.ranks, "Place so many ranks, host after host").range(1, 1 << 20);
  const auto json = line.flag("--json", request.is_json, "Print JSON on one line");
  const auto list = line.flag("--list", request.is_list, "List the presets");
  const auto svg =
      line.option("--svg", request.svg, "Draw a picture into this file; - is the output").file().excludes(json);
  const auto speeds = line.flag("--speeds", request.has_speeds,
                                "Measure what cores and memory of this machine take, as communicators do");
  fabric.excludes(root);
  speeds.excludes(fabric).excludes(root).excludes(ranks).excludes(list).excludes(svg);
  list.excludes(fabric).excludes(root).excludes(ranks);
  if (const std::optional<int> code = line.exit_code({argv + 1, argv + argc})) return *code;
  return run(request);
}
