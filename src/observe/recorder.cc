// SPDX-License-Identifier: Apache-2.0
#include "observe/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/options.h"

namespace ccom {
namespace {

using recording::Communicator;
using recording::get;
using recording::Header;
using recording::PlaceState;
using recording::publish;
using recording::Record;
using recording::set;
using recording::Word;

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string program_path() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

// Of what the ranks of a job see in one folder: machines may have equal names, processes in containers equal numbers.
std::string file_name() {
  const int64_t now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1);
  std::string host = host_name();
  for (char& c : host)
    if (c == '/') c = '_';
  return host + "-" + std::to_string(::getpid()) + "-" + std::to_string(now) + ".ccomrec";
}

// Made for this user alone if it is not there. Somebody else's symbolic link leads where that user wants: it is
// refused, root's is not.
Result<Descriptor> open_folder(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();  // behind which the system follows a link
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return error(Code::SystemError, "make the folder %s: %s", path.c_str(), std::strerror(errno)).with_errno(errno);
  const auto open = [&path](int flags) {
    return Descriptor::from([&path, flags] { return ::open(path.c_str(), O_PATH | O_CLOEXEC | flags); });
  };
  Descriptor folder = open(O_NOFOLLOW);
  struct stat found {};
  if (folder.is_open() && ::fstat(folder.get(), &found) == 0 && S_ISLNK(found.st_mode)) {
    if (found.st_uid != ::geteuid() && found.st_uid != 0)
      return error(Code::SystemError, "%s is a symbolic link of user %u", path.c_str(), found.st_uid)
          .with_cure("name a folder, or a link of your own");
    folder = open(O_DIRECTORY);
  }
  if (folder.is_open()) return folder;
  return error(Code::SystemError, "open the folder %s: %s", path.c_str(), std::strerror(errno)).with_errno(errno);
}

Result<Descriptor> make_file(const std::string& folder, std::string& path) {
  CCOM_TRY_ASSIGN(const Descriptor place, open_folder(folder));
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::string name = file_name();
    path.assign(folder).append("/").append(name);
    Descriptor file = create_file(place.get(), name, S_IRUSR | S_IWUSR);
    if (file.is_open()) return file;
    if (errno != EEXIST) break;
  }
  return error(Code::SystemError, "record to %s: %s", path.c_str(), std::strerror(errno))
      .with_errno(errno)
      .with_cure("let this user write to the folder");
}

// Sets its length and takes the space, without which a later store would end the process. So would the signal of a file
// that grows beyond its limit (ulimit -f).
Status take_space(const Descriptor& file, const std::string& path, uint64_t bytes) {
  struct rlimit limit {};
  const bool is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes;
  const int failure = is_limited ? EFBIG : ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (failure == 0) return {};
  ::unlink(path.c_str());
  return error(Code::SystemError, "record to %s: take %llu bytes: %s", path.c_str(),
               static_cast<unsigned long long>(bytes), std::strerror(failure))
      .with_errno(failure)
      .with_cure("make room, or record less (CCOM_RECORD_BYTES)");
}

// For liveness threads. In a forked child it may be its parent's.
constinit std::atomic<Recorder*> recorder_of_process{nullptr};

struct OfProcess {
  Mutex mutex;
  bool was_asked CCOM_GUARDED_BY(mutex) = false;
  std::unique_ptr<Recorder> recorder CCOM_GUARDED_BY(mutex);
};

}  // namespace

Result<Recorder*> Recorder::of_process() {
  static constinit PerProcess<OfProcess> instance;
  if (!option_is_set("CCOM_RECORD")) return nullptr;
  OfProcess& mine = instance.get();
  const Lock lock(mine.mutex);
  if (mine.was_asked) return mine.recorder.get();
  CCOM_TRY_ASSIGN(const int64_t bytes,
                  integer_option("CCOM_RECORD_BYTES", recording::kLeastBytes, recording::kMostBytes));
  mine.was_asked = true;
  Result<std::unique_ptr<Recorder>> made = create(option("CCOM_RECORD"), static_cast<uint64_t>(bytes));
  if (!made) {
    log(LogLevel::Warn, "CCOM_RECORD: nothing is recorded: %s", made.error().text().c_str());
    return nullptr;
  }
  mine.recorder = *std::move(made);
  recorder_of_process.store(mine.recorder.get(), std::memory_order_release);
  log(LogLevel::Info, "records to %s", mine.recorder->path().c_str());
  return mine.recorder.get();
}

void Recorder::note_alive() {
  Recorder* const recorder = recorder_of_process.load(std::memory_order_acquire);
  if (recorder != nullptr && recorder->generation_ == fork_generation()) recorder->note_time();
}

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& folder, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  std::string path;
  CCOM_TRY_ASSIGN(const Descriptor file, make_file(folder, path));
  CCOM_TRY(take_space(file, path, bytes));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    const int failure = errno;
    ::unlink(path.c_str());
    return error(Code::SystemError, "record to %s: map it: %s", path.c_str(), std::strerror(failure))
        .with_errno(failure);
  }
  // A forked child that ran into its parent's calls would record them as the parent's.
  ::madvise(memory, bytes, MADV_DONTFORK);
  return std::unique_ptr<Recorder>(new Recorder(std::move(path), memory, bytes, TickClock::of_machine()));
}

Recorder::Recorder(std::string path, void* memory, uint64_t bytes, TickClock clock)
    : path_(std::move(path)),
      memory_(static_cast<std::byte*>(memory)),
      layout_(recording::layout_of(bytes)),
      bytes_(bytes),
      clock_(clock),
      generation_(fork_generation()),
      header_(at<Header>(0)),
      sites_(at<Word>(layout_.sites_at)),
      records_(at<Record>(layout_.records_at)) {
  describe_process();
}

Recorder::~Recorder() { ::munmap(memory_, bytes_); }

void Recorder::describe_process() {
  Header& header = *header_;
  set(header.version, recording::kVersion);
  set(header.file_bytes, bytes_);
  set(header.pid, static_cast<uint64_t>(::getpid()));
  {
    const Lock lock(mutex_);
    set(header.host, keep(host_name()));
    set(header.machine, keep(first_line("/proc/sys/kernel/random/boot_id")));
    set(header.program, keep(program_path()));
  }
  set(header.check, recording::check_of_header(words_of(&header)));
  note_time();
  publish(header.magic, recording::kMagic);
}

// Of the ends of a recording, so that the rate of ticks is known the better the longer it is.
void Recorder::note_time() {
  constexpr uint64_t kFirst = uint64_t{1} << 20, kMost = uint64_t{1} << 27;  // up to tens of milliseconds
  if (!mutex_.try_lock()) return;
  const Lock lock(mutex_, std::adopt_lock);
  const ClockPoint now = read_clocks(clock_);
  recording::Point& point = header_->points[points_ == 0 ? 0 : 1 + points_ % 2];
  set(point.check, 0);
  publish(point.ticks, now.ticks);
  publish(point.monotonic_ns, static_cast<uint64_t>(now.monotonic_ns));
  publish(point.realtime_ns, static_cast<uint64_t>(now.realtime_ns));
  publish(point.check, recording::check_of(now.ticks, static_cast<uint64_t>(now.monotonic_ns),
                                           static_cast<uint64_t>(now.realtime_ns)));
  next_point_.store(now.ticks + std::min(kMost, kFirst << std::min<uint64_t>(points_, 7)), std::memory_order_relaxed);
  ++points_;
}

recording::TextReference Recorder::keep(std::string_view text) {
  if (text.empty()) return 0;
  const auto known = texts_.find(std::string(text));
  if (known != texts_.end()) return known->second;
  const uint64_t used = get(header_->text_used), needed = (sizeof(Word) + text.size() + 7) / 8 * 8;
  // One long text leaves half the room to others.
  if (needed > (text.size() > 4096 ? (layout_.text_bytes - used) / 2 : layout_.text_bytes - used)) {
    set(header_->lost_texts, get(header_->lost_texts) + 1);
    return 0;
  }
  set(header_->text_used, used + needed);
  std::byte* const place = at<std::byte>(layout_.texts_at + used);
  const uint64_t size = text.size() | recording::check_of(text) << 32;
  std::memcpy(place, &size, sizeof size);
  std::memcpy(place + sizeof size, text.data(), text.size());
  const auto reference = static_cast<recording::TextReference>(used / 8 + 1);
  texts_.emplace(text, reference);
  std::atomic_thread_fence(std::memory_order_release);
  return reference;
}

// Its calls go on where there is no memory.
void Recorder::name_site(CallSite site) noexcept try {
  const Lock lock(mutex_);
  const recording::TextReference reference = keep(text_of(site));
  publish(sites_[site], reference == 0 ? recording::kNoText : recording::checked(reference));
} catch (const std::bad_alloc&) {
}

// 0: there are too many.
uint32_t Recorder::number_of_algorithm(std::string_view name) noexcept try {
  const Lock lock(mutex_);
  for (size_t i = 0; i < algorithms_.size(); ++i)
    if (algorithms_[i] == name) return static_cast<uint32_t>(i + 1);
  if (algorithms_.size() + 1 >= recording::kAlgorithms) return 0;
  algorithms_.emplace_back(name);
  const auto number = static_cast<uint32_t>(algorithms_.size());
  publish(at<Word>(layout_.algorithms_at)[number], recording::checked(keep(name)));
  return number;
} catch (const std::bad_alloc&) {
  return 0;
}

// One that was never used, or the one that was closed first; null if all are open.
Communicator* Recorder::open_place(uint64_t& place) {
  auto* const all = at<Communicator>(layout_.communicators_at);
  Communicator* found = nullptr;
  for (uint64_t i = 0; i < layout_.communicators; ++i) {
    const auto state = static_cast<PlaceState>(get(all[i].state));
    if (state == PlaceState::Open) continue;
    if (found != nullptr && state == PlaceState::Closed && get(all[i].closed) >= get(found->closed)) continue;
    found = &all[i];
    place = i;
    if (state == PlaceState::None) break;
  }
  if (found == nullptr) set(header_->lost_communicators, get(header_->lost_communicators) + 1);
  return found;
}

}  // namespace ccom
