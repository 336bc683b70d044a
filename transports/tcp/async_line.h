// SPDX-License-Identifier: Apache-2.0
//
// A line before it is admitted: what its ends say to each other then, they say asynchronously, with TLS or without.
//
// Each function calls `handler` exactly once, never within the call: when all is done, when it has failed (eof: the
// peer has closed), or when the socket was closed meanwhile. The line and the bytes outlive that.
#pragma once

#include <functional>

#include "base/types.h"
#include "transports/tcp/line.h"

namespace ccom::tcp {

using Handler = std::function<void(const ErrorCode& failure)>;

// TLS's own handshake; nothing to do without TLS. protocol_error: the peer could not prove itself, or does not want us.
void async_secure(Line& line, Handler handler);
void async_read(Line& line, Bytes whole, Handler handler);
void async_write(Line& line, ConstBytes whole, Handler handler);

}  // namespace ccom::tcp
