// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous I/O on a line during connection setup, with or without TLS.
//
// Each function calls `handler` exactly once, never within the call: on success, on failure (eof: the peer has closed),
// or when the socket was closed meanwhile. The line and the bytes must outlive that.
#pragma once

#include <functional>

#include "base/types.h"
#include "transports/tcp/line.h"

namespace ccom::tcp {

using Handler = std::function<void(const ErrorCode& failure)>;

// The TLS handshake; a no-op without TLS. protocol_error: authentication failed on either side.
void async_secure(Line& line, Handler handler);
void async_read(Line& line, Bytes whole, Handler handler);
void async_write(Line& line, ConstBytes whole, Handler handler);

}  // namespace ccom::tcp
