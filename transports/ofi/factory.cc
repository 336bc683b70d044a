// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/factory.h"

#include "transports/ofi/fabric.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {

Result<std::unique_ptr<Transport>> make_ofi_transport(OfiConfig config) {
  CCOM_TRY_ASSIGN(std::unique_ptr<Endpoint> endpoint, open_fabric(config.provider, config.bind_address));
  CCOM_TRY_ASSIGN(std::unique_ptr<Transport> transport, OfiTransport::create(config, std::move(endpoint)));
  return transport;
}

}  // namespace ccom::ofi
