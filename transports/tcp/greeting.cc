// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/greeting.h"

#include <utility>

namespace ccom::tcp {
namespace {

constexpr std::chrono::milliseconds kHelloPatience{2000};
constexpr std::chrono::milliseconds kLongestPause{100};

Bytes memory_of(Hello& hello) { return std::as_writable_bytes(std::span(&hello, 1)); }

}  // namespace

Meeting::Greeting::Greeting(Meeting& meeting, Socket socket)
    : meeting_(meeting), line_(std::make_unique<Line>(std::move(socket))), timer_(meeting.io_) {}

void Meeting::Greeting::start() {
  set_options(line_->socket, meeting_.options_);
  watch(kHelloPatience);
  if (!meeting_.secure(*line_, Tls::Side::Accepts)) return refuse();
  async_secure(*line_, then(&Greeting::on_secure));
}

void Meeting::Greeting::close() {
  ErrorCode ignored;
  if (line_ != nullptr) line_->socket.close(ignored);
  timer_.cancel();
}

Handler Meeting::Greeting::then(void (Greeting::*next)()) {
  return [self = shared_from_this(), next](const ErrorCode& failure) {
    if (failure) return self->refuse();
    (self.get()->*next)();
  };
}

// If this rank itself was held up, the bytes may be there although their time is over: they get one more round.
void Meeting::Greeting::watch(std::chrono::milliseconds patience) {
  timer_.expires_after(patience);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& failure) {
    if (failure || self->line_ == nullptr) return;
    ErrorCode ignored;
    const bool has_bytes = self->line_->socket.available(ignored) > 0;
    if (std::exchange(self->is_late_, true) || !has_bytes) return self->refuse();
    self->watch(std::chrono::milliseconds(100));
  });
}

void Meeting::Greeting::refuse() {
  if (!line_->socket.is_open()) return;
  close();
  ++meeting_.refused_;
  meeting_.forget(shared_from_this());
}

void Meeting::Greeting::on_secure() { async_read(*line_, memory_of(transcript_[0]), then(&Greeting::on_hello)); }

void Meeting::Greeting::on_hello() {
  const Hello& hello = transcript_[0];
  if (!is_genuine(hello, HelloKind::Hello, meeting_.self_, {})) return refuse();
  Expected* const expected = meeting_.find(hello.from);
  if (expected == nullptr || hello.from < meeting_.self_.rank) return refuse();
  const LineId id{hello.from, hello.channel, hello.stream};
  transcript_[1] =
      make_hello(meeting_.self_, id, expected->peer.channels, HelloKind::Answer, Transcript(transcript_).first(1));
  // A side that is set up differently is answered as well, so that it can say so too.
  settings_ = compare_settings(transcript_[1], hello);
  if (settings_.is_ok() && !meeting_.is_missing(id)) return refuse();
  async_write(*line_, memory_of(transcript_[1]), then(&Greeting::on_answered));
}

void Meeting::Greeting::on_answered() {
  if (!settings_.is_ok()) meeting_.fail(settings_);
  async_read(*line_, memory_of(transcript_[2]), then(&Greeting::on_confirm));
}

void Meeting::Greeting::on_confirm() {
  const Hello& hello = transcript_[0];
  const Hello& confirm = transcript_[2];
  const LineId id{hello.from, hello.channel, hello.stream};
  const bool is_same = confirm.from == hello.from && confirm.channel == hello.channel && confirm.stream == hello.stream;
  const bool is_proved = is_genuine(confirm, HelloKind::Confirm, meeting_.self_, Transcript(transcript_).first(2));
  if (!is_same || !is_proved || !meeting_.is_missing(id)) return refuse();
  timer_.cancel();
  meeting_.admit(id, std::move(line_));
  meeting_.forget(shared_from_this());
}

Meeting::Dial::Dial(Meeting& meeting, LineId id, Expected& expected, Way way)
    : meeting_(meeting), id_(id), expected_(expected), way_(std::move(way)), timer_(meeting.io_) {}

Handler Meeting::Dial::then(void (Dial::*next)(), const char* action) {
  return [self = shared_from_this(), next, action](const ErrorCode& failure) {
    if (self->is_closed_) return;
    if (!failure) return (self.get()->*next)();
    const bool has_ended = failure == asio::error::eof || failure == asio::error::connection_reset ||
                           failure == boost::system::errc::protocol_error;
    self->retry(std::string(action) + ": " +
                (has_ended ? "it closed the connection (another key or communicator?)" : failure.message()));
  };
}

void Meeting::Dial::start() {
  Socket socket(meeting_.io_);
  const ErrorCode failure = open_from(socket, way_.from);
  if (failure) return retry("socket: " + failure.message());
  line_ = std::make_unique<Line>(std::move(socket));
  line_->socket.async_connect(way_.to, then(&Dial::on_connected, "connect"));
}

void Meeting::Dial::close() {
  is_closed_ = true;
  ErrorCode ignored;
  if (line_ != nullptr) line_->socket.close(ignored);
  timer_.cancel();
}

void Meeting::Dial::retry(const std::string& trouble) {
  // That a peer has given up and closed its listener says less than how it answered before.
  if (is_connected_ || !was_connected_) expected_.trouble = trouble;
  was_connected_ |= std::exchange(is_connected_, false);
  line_.reset();
  timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& failure) {
    if (!failure && !self->is_closed_) self->start();
  });
}

void Meeting::Dial::on_connected() {
  is_connected_ = true;
  set_options(line_->socket, meeting_.options_);
  if (!meeting_.secure(*line_, Tls::Side::Dials)) return retry("TLS: no memory");
  async_secure(*line_, then(&Dial::on_secure, "TLS"));
}

void Meeting::Dial::on_secure() {
  transcript_[0] = make_hello(meeting_.self_, id_, expected_.peer.channels, HelloKind::Hello, {});
  async_write(*line_, memory_of(transcript_[0]), then(&Dial::on_hello_sent, "hello"));
}

// No deadline of its own: a peer that is late has not called connect() yet, and the kernel holds our hello for it.
void Meeting::Dial::on_hello_sent() { async_read(*line_, memory_of(transcript_[1]), then(&Dial::on_answer, "hello")); }

void Meeting::Dial::on_answer() {
  const Hello& answer = transcript_[1];
  const bool is_same = answer.from == id_.peer && answer.channel == id_.channel && answer.stream == id_.stream;
  if (!is_same || !is_genuine(answer, HelloKind::Answer, meeting_.self_, Transcript(transcript_).first(1))) {
    return retry("hello: it could not prove that it is this rank");
  }
  Status settings = compare_settings(transcript_[0], answer);
  if (!settings.is_ok()) return meeting_.fail(std::move(settings));
  transcript_[2] =
      make_hello(meeting_.self_, id_, expected_.peer.channels, HelloKind::Confirm, Transcript(transcript_).first(2));
  async_write(*line_, memory_of(transcript_[2]), then(&Dial::on_proved, "hello"));
}

void Meeting::Dial::on_proved() { meeting_.admit(id_, std::move(line_)); }

}  // namespace ccom::tcp
