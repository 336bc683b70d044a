// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <sstream>

#include "base/tcp_socket.h"
#include "metrics/metrics_text.h"

namespace ccom {
namespace {

namespace http = boost::beast::http;

constexpr int kBacklog = 64;
constexpr int kMostAtOnce = 16;  // of clients that have come
constexpr uint32_t kMostHeaderBytes = 8192;

uint16_t port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string answer(http::status status, const char* type, std::string body) {
  http::response<http::string_body> response(status, 11);
  response.set(http::field::content_type, type);
  response.set(http::field::connection, "close");
  response.body() = std::move(body);
  response.prepare_payload();
  std::ostringstream text;
  text << response;
  return std::move(text).str();
}

}  // namespace

class HttpPort::Connection {
 public:
  explicit Connection(Descriptor socket) : socket_(std::move(socket)), until_(Deadline::after(kPatience)) {
    parser_.header_limit(kMostHeaderBytes);
    parser_.body_limit(0);
  }

  int fd() const { return socket_.get(); }
  bool is_answered() const { return !answer_.empty(); }
  // False: it is over.
  bool serve(const std::function<std::string()>& text) {
    if (until_.passed()) return false;
    return is_answered() ? send() : receive(text);
  }

 private:
  bool receive(const std::function<std::string()>& text) {
    std::array<char, 2048> bytes;
    const ssize_t got = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    received_.append(bytes.data(), static_cast<size_t>(got));
    boost::beast::error_code failure;
    const size_t used = parser_.put(boost::asio::buffer(received_), failure);
    if (failure == http::error::need_more) failure = {};
    received_.erase(0, used);
    if (failure || received_.size() > kMostHeaderBytes) {
      answer_ = answer(http::status::bad_request, "text/plain", "no request that is understood\n");
    } else if (parser_.is_header_done()) {
      answer_ = answer_to(parser_.get(), text);
    }
    return !is_answered() || send();
  }

  static std::string answer_to(const http::request<http::empty_body>& request,
                               const std::function<std::string()>& text) {
    const auto path = request.target().substr(0, request.target().find('?'));
    if (path != "/metrics") return answer(http::status::not_found, "text/plain", "there is /metrics\n");
    if (request.method() != http::verb::get)
      return answer(http::status::method_not_allowed, "text/plain", "there is GET\n");
    return answer(http::status::ok, kMetricsType, text());
  }

  bool send() {
    while (sent_ < answer_.size()) {
      const ssize_t sent = ::send(fd(), answer_.data() + sent_, answer_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      sent_ += static_cast<size_t>(sent);
    }
    ::shutdown(fd(), SHUT_WR);
    return false;
  }

  Descriptor socket_;
  const Deadline until_;
  http::request_parser<http::empty_body> parser_;
  std::string received_, answer_;
  size_t sent_ = 0;
};

HttpPort::HttpPort(Descriptor listener, uint16_t port, std::function<std::string()> text)
    : listener_(std::move(listener)), port_(port), text_(std::move(text)) {}

HttpPort::~HttpPort() = default;

Result<std::unique_ptr<HttpPort>> HttpPort::open(const std::string& address, uint16_t port,
                                                 std::function<std::string()> text) {
  CCOM_TRY_ASSIGN(Descriptor listener, listen_at_port(address, port, kBacklog));
  const uint16_t found = port_of(listener);
  return std::unique_ptr<HttpPort>(new HttpPort(std::move(listener), found, std::move(text)));
}

void HttpPort::watch(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.get(), POLLIN, 0});
  for (const auto& connection : connections_)
    polled.push_back({connection->fd(), static_cast<short>(connection->is_answered() ? POLLOUT : POLLIN), 0});
}

bool HttpPort::serve() {
  std::erase_if(connections_, [this](const auto& connection) { return !connection->serve(text_); });
  for (int come = 0; come < kMostAtOnce; ++come) {
    Descriptor socket =
        Descriptor::from([this] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (!socket.is_open()) return come > 0;
    auto connection = std::make_unique<Connection>(std::move(socket));
    if (!connection->serve(text_)) continue;  // most have sent their request by now
    if (connections_.size() == kMostConnections) connections_.erase(connections_.begin());
    connections_.push_back(std::move(connection));
  }
  return true;
}

}  // namespace ccom
