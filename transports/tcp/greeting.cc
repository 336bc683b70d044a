// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/greeting.h"

#include <utility>

namespace ccom::tcp {
namespace {

constexpr std::chrono::milliseconds kHelloPatience{2000};
constexpr std::chrono::milliseconds kLongestPause{100};

asio::mutable_buffer memory_of(Hello& hello) { return asio::buffer(&hello, sizeof(hello)); }

}  // namespace

Meeting::Greeting::Greeting(Meeting& meeting, Socket socket)
    : meeting_(meeting), socket_(std::move(socket)), timer_(meeting.io_) {}

void Meeting::Greeting::start() {
  set_options(socket_);
  watch(kHelloPatience);
  read(0, &Greeting::on_hello);
}

void Meeting::Greeting::close() {
  ErrorCode ignored;
  socket_.close(ignored);
  timer_.cancel();
}

// If this rank itself was held up, the bytes may be there although their time is over: they get one more round.
void Meeting::Greeting::watch(std::chrono::milliseconds patience) {
  timer_.expires_after(patience);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& failure) {
    if (failure) return;
    ErrorCode ignored;
    const bool has_bytes = self->socket_.available(ignored) > 0;
    if (std::exchange(self->is_late_, true) || !has_bytes) return self->refuse();
    self->watch(std::chrono::milliseconds(100));
  });
}

void Meeting::Greeting::read(size_t message, void (Greeting::*next)()) {
  asio::async_read(socket_, memory_of(transcript_[message]),
                   [self = shared_from_this(), next](const ErrorCode& failure, size_t) {
                     if (failure) return self->refuse();
                     (self.get()->*next)();
                   });
}

void Meeting::Greeting::refuse() {
  if (!socket_.is_open()) return;
  close();
  ++meeting_.refused_;
  meeting_.forget(shared_from_this());
}

void Meeting::Greeting::on_hello() {
  const Hello& hello = transcript_[0];
  if (!is_genuine(hello, HelloKind::Hello, meeting_.self_, {})) return refuse();
  Expected* const expected = meeting_.find(hello.from);
  if (expected == nullptr || hello.from < meeting_.self_.rank) return refuse();
  const LineId line{hello.from, hello.channel, hello.stream};
  transcript_[1] =
      make_hello(meeting_.self_, line, expected->peer.channels, HelloKind::Answer, Transcript(transcript_).first(1));
  // A side that is set up differently is answered as well, so that it can say so too.
  const Status settings = compare_settings(transcript_[1], hello);
  if (settings.is_ok() && !meeting_.is_missing(line)) return refuse();
  asio::async_write(socket_, memory_of(transcript_[1]),
                    [self = shared_from_this(), settings](const ErrorCode& failure, size_t) {
                      if (failure) return self->refuse();
                      if (!settings.is_ok()) self->meeting_.fail(settings);
                      self->read(2, &Greeting::on_confirm);
                    });
}

void Meeting::Greeting::on_confirm() {
  const Hello& hello = transcript_[0];
  const Hello& confirm = transcript_[2];
  const LineId line{hello.from, hello.channel, hello.stream};
  const bool is_same = confirm.from == hello.from && confirm.channel == hello.channel && confirm.stream == hello.stream;
  const bool is_proved = is_genuine(confirm, HelloKind::Confirm, meeting_.self_, Transcript(transcript_).first(2));
  if (!is_same || !is_proved || !meeting_.is_missing(line)) return refuse();
  timer_.cancel();
  meeting_.admit(line, std::move(socket_));
  meeting_.forget(shared_from_this());
}

Meeting::Dial::Dial(Meeting& meeting, LineId line, Expected& expected, Endpoint endpoint)
    : meeting_(meeting),
      line_(line),
      expected_(expected),
      endpoint_(std::move(endpoint)),
      socket_(meeting.io_),
      timer_(meeting.io_) {}

auto Meeting::Dial::then(void (Dial::*next)(), const char* action) {
  return [self = shared_from_this(), next, action](const ErrorCode& failure, size_t = 0) {
    if (self->is_closed_) return;
    if (!failure) return (self.get()->*next)();
    const bool has_ended = failure == asio::error::eof || failure == asio::error::connection_reset;
    self->retry(std::string(action) + ": " +
                (has_ended ? "it closed the connection (another key or communicator?)" : failure.message()));
  };
}

void Meeting::Dial::start() {
  const ErrorCode failure = open_from(socket_, meeting_.source_);
  if (failure) return retry("socket: " + failure.message());
  socket_.async_connect(endpoint_, then(&Dial::on_connected, "connect"));
}

void Meeting::Dial::close() {
  is_closed_ = true;
  ErrorCode ignored;
  socket_.close(ignored);
  timer_.cancel();
}

void Meeting::Dial::retry(const std::string& trouble) {
  // That a peer has given up and closed its listener says less than how it answered before.
  if (is_connected_ || !was_connected_) expected_.trouble = trouble;
  was_connected_ |= std::exchange(is_connected_, false);
  ErrorCode ignored;
  socket_.close(ignored);
  timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& failure) {
    if (!failure && !self->is_closed_) self->start();
  });
}

void Meeting::Dial::on_connected() {
  is_connected_ = true;
  set_options(socket_);
  transcript_[0] = make_hello(meeting_.self_, line_, expected_.peer.channels, HelloKind::Hello, {});
  asio::async_write(socket_, memory_of(transcript_[0]), then(&Dial::on_hello_sent, "hello"));
}

// No deadline of its own: a peer that is late has not called connect() yet, and the kernel holds our hello for it.
void Meeting::Dial::on_hello_sent() {
  asio::async_read(socket_, memory_of(transcript_[1]), then(&Dial::on_answer, "hello"));
}

void Meeting::Dial::on_answer() {
  const Hello& answer = transcript_[1];
  const bool is_same = answer.from == line_.peer && answer.channel == line_.channel && answer.stream == line_.stream;
  if (!is_same || !is_genuine(answer, HelloKind::Answer, meeting_.self_, Transcript(transcript_).first(1))) {
    return retry("hello: it could not prove that it is this rank");
  }
  Status settings = compare_settings(transcript_[0], answer);
  if (!settings.is_ok()) return meeting_.fail(std::move(settings));
  transcript_[2] =
      make_hello(meeting_.self_, line_, expected_.peer.channels, HelloKind::Confirm, Transcript(transcript_).first(2));
  asio::async_write(socket_, memory_of(transcript_[2]), then(&Dial::on_proved, "hello"));
}

void Meeting::Dial::on_proved() { meeting_.admit(line_, std::move(socket_)); }

}  // namespace ccom::tcp
