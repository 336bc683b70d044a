// SPDX-License-Identifier: Apache-2.0
#include "metrics/exporter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "base/time.h"
#include "metrics/http_port.h"
#include "metrics/metrics_text.h"

namespace ccom {
namespace {

constexpr std::chrono::seconds kFileInterval{2};
constexpr std::chrono::milliseconds kRest{10};  // after clients have come

// Readers see the file before or the file after.
Status replace_file(const std::string& path, const std::string& text) {
  const std::string made = path + "." + std::to_string(::getpid()) + ".tmp";
  ::unlink(made.c_str());
  const Descriptor file = create_file(AT_FDCWD, made, 0644);
  if (!file.is_open()) return system_error(errno, "create %s", made.c_str());
  Status written = write_all(file, made, text);
  if (written.is_ok() && ::rename(made.c_str(), path.c_str()) != 0)
    written = system_error(errno, "rename %s to %s", made.c_str(), path.c_str());
  if (!written.is_ok()) ::unlink(made.c_str());
  return written;
}

}  // namespace

class MetricsExporter {
 public:
  MetricsExporter(const MetricsTarget& target, const PublishedSource& first) : generation_(fork_generation()) {
    if (target.is_file()) path_ = metrics_path(target.path, first.rank, ::getpid());
    wake_ = Descriptor::from([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    if (target.is_port()) open_port(target, first);
    if (path_.empty() && port_ == nullptr) return;
    const int failure = start_thread(thread_, "ccom-metrics", [this] { run(); });
    if (failure != 0) log(LogLevel::Warn, "no metrics: start a thread: error %d", failure);
  }
  // A forked child has no such thread.
  ~MetricsExporter() {
    if (generation_ != fork_generation()) {
      new (std::nothrow) std::thread(std::move(thread_));  // never joined, nor destroyed
      return;
    }
    if (!thread_.joinable()) return;
    ends_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }
  MetricsExporter(const MetricsExporter&) = delete;
  MetricsExporter& operator=(const MetricsExporter&) = delete;

  uint64_t add(PublishedSource source) {
    const Lock lock(mutex_);
    sources_.emplace(++last_, std::move(source));
    return last_;
  }
  // The file tells of the last communicator once more when it is complete.
  void remove(uint64_t number) {
    const Lock lock(mutex_);
    if (sources_.size() == 1) last_words_ = text_of_sources();
    sources_.erase(number);
  }
  bool belongs_to_this_process() const { return generation_ == fork_generation(); }

 private:
  void open_port(const MetricsTarget& target, const PublishedSource& first) {
    const int port = target.port + first.local_rank;
    auto opened = port > UINT16_MAX ? Result<std::unique_ptr<HttpPort>>(error(Code::ConfigError, "no port %d", port))
                                    : HttpPort::open(target.address, static_cast<uint16_t>(port), [this] {
                                        const Lock lock(mutex_);
                                        return text_of_sources();
                                      });
    if (!opened) {
      log(LogLevel::Warn, "no metrics of rank %d: %s", first.rank, opened.error().message().c_str());
      return;
    }
    port_ = *std::move(opened);
    log(LogLevel::Info, "metrics of rank %d: http://%s/metrics", first.rank,
        endpoint_text(target.address, port_->port()).c_str());
  }

  void run() {
    Deadline next = Deadline::after(std::chrono::seconds(0));
    while (!ends_.load(std::memory_order_acquire)) {
      if (!path_.empty() && next.passed()) {
        write_file(current());
        next = Deadline::after(kFileInterval);
      }
      std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
      if (port_ != nullptr) port_->watch(polled);
      ::poll(polled.data(), polled.size(), static_cast<int>(path_.empty() ? 1000 : next.left_ms() + 1));
      if (port_ != nullptr && port_->serve()) std::this_thread::sleep_for(kRest);
    }
    const Lock lock(mutex_);
    if (!path_.empty() && !last_words_.empty()) write_file(last_words_);
  }

  void write_file(const std::string& text) {
    const Status written = replace_file(path_, text);
    if (!written.is_ok() && !std::exchange(has_warned_, true))
      log(LogLevel::Warn, "no metrics: %s", written.message().c_str());
  }

  std::string current() {
    const Lock lock(mutex_);
    return text_of_sources();
  }
  std::string text_of_sources() CCOM_REQUIRES(mutex_) {
    std::vector<RankMetrics> ranks;
    for (const auto& [number, source] : sources_) {
      RankMetrics& rank = ranks.emplace_back();
      rank.communicator = source.communicator;
      rank.name = source.name;
      rank.host = source.host;
      rank.ranks = source.ranks;
      rank.hosts = source.hosts;
      rank.has_failed = source.has_failed();
      rank.activity = read_activity(*source.record, monotonic_ns(), false);
      rank.activity.rank = source.rank;
      rank.totals = totals_of(source.record->counters);
    }
    return metrics_text(ranks);
  }

  const uint32_t generation_;
  std::string path_;
  Descriptor wake_;
  std::atomic<bool> ends_{false};
  bool has_warned_ = false;  // used on the thread only
  std::unique_ptr<HttpPort> port_;
  Mutex mutex_;
  std::map<uint64_t, PublishedSource> sources_ CCOM_GUARDED_BY(mutex_);
  uint64_t last_ CCOM_GUARDED_BY(mutex_) = 0;
  std::string last_words_ CCOM_GUARDED_BY(mutex_);
  std::thread thread_;
};

namespace {

struct OfProcess {
  Mutex mutex;
  std::weak_ptr<MetricsExporter> exporter CCOM_GUARDED_BY(mutex);
};
OfProcess& of_process() {
  static constinit PerProcess<OfProcess> instance;
  return instance.get();
}

std::shared_ptr<MetricsExporter> exporter_for(const MetricsTarget& target, const PublishedSource& first) {
  OfProcess& all = of_process();
  const Lock lock(all.mutex);
  std::shared_ptr<MetricsExporter> exporter = all.exporter.lock();
  if (exporter == nullptr) all.exporter = exporter = std::make_shared<MetricsExporter>(target, first);
  return exporter;
}

}  // namespace

PublishedRank::PublishedRank(const MetricsTarget& target, PublishedSource source) {
  if (!target.is_any()) return;
  exporter_ = exporter_for(target, source);
  number_ = exporter_->add(std::move(source));
}

PublishedRank::PublishedRank(PublishedRank&& other) noexcept
    : exporter_(std::move(other.exporter_)), number_(std::exchange(other.number_, 0)) {}

PublishedRank& PublishedRank::operator=(PublishedRank&& other) noexcept {
  exporter_.swap(other.exporter_);
  std::swap(number_, other.number_);
  return *this;
}

PublishedRank::~PublishedRank() {
  if (exporter_ != nullptr && exporter_->belongs_to_this_process()) exporter_->remove(number_);
}

}  // namespace ccom
