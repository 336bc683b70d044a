// SPDX-License-Identifier: Apache-2.0
//
// What carries messages between hosts when the user has left it open. Pure; all ranks decide alike, because they are
// given what all have said.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ccom {

struct CarrierWish {
  std::vector<std::string> transports{};  // CCOM_TRANSPORT; empty: left open
  std::string ofi_provider{};             // CCOM_OFI_PROVIDER; empty: left open
  bool encrypted = false;                 // which ofi cannot
};

// Is it worth asking whether EFA is here? It takes libfabric's time where there is such a device.
bool depends_on_efa(const CarrierWish& wish, bool has_several_hosts);

struct CarrierChoice {
  std::string transport;  // "ofi" or "tcp": between hosts, when CCOM_TRANSPORT is left open
  std::string ofi_provider;
};
// EFA, if every rank can use it; else TCP.
CarrierChoice choose_carrier(const CarrierWish& wish, bool all_have_efa);

// The domains ("rdmap0s6-rdm") whose interfaces the `place`-th of `ranks` ranks of a host uses: all of them equally
// many, at most `most`, neighbours in number, which PCI makes neighbours in the machine; shared if there are too few.
std::vector<std::string> choose_domains(std::vector<std::string> domains, int place, int ranks, size_t most);

}  // namespace ccom
