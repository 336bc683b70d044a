// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/communicators.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "doors/mpi/channels.h"
#include "doors/mpi/progress.h"
#include "doors/mpi/requests.h"

namespace ccom::mpi {
namespace {

// MPI's calls wait for ever.
constexpr int64_t kYearMs = int64_t{365} * 24 * 3600 * 1000;

int copy_nothing(Handle, int, void*, void*, void*, int* is_copied) {
  *is_copied = 0;
  return kSuccess;
}

Mode mode_of(const char* text) {
  if (text == nullptr || *text == 0 || std::strcmp(text, "auto") == 0) return Mode::Auto;
  if (std::strcmp(text, "all") == 0) return Mode::All;
  if (std::strcmp(text, "off") == 0) return Mode::Off;
  std::fprintf(stderr, "ccom: CCOM_MPI=%s is none of auto, all, off; auto is used\n", text);
  return Mode::Auto;
}

bool is_one(const char* text) { return text != nullptr && std::strcmp(text, "1") == 0; }

}  // namespace

size_t class_of(uint64_t bytes) {
  return std::min<size_t>(static_cast<size_t>(std::bit_width(bytes)), kSizeClasses - 1);
}

struct Process::Table {
  std::mutex mutex;
  std::unordered_map<Handle, std::unique_ptr<Communicator>> by_handle;
};

thread_local Process::Last Process::last_;

// Never destroyed: other threads may be in calls when the process ends.
Process& Process::get() {
  static Process* const process = new Process;
  return *process;
}

Process::Process() : table_(new Table) {}

void Process::begin(bool all_ranks_do) {
  const std::lock_guard lock(table_->mutex);
  if (state_ != 0 || !mpi().is_known) return;
  int level = 0;
  mpi().Query_thread(&level);
  is_multiple = level == kThreadMultiple;
  std::array<int, 2> settings = {static_cast<int>(mode_of(std::getenv("CCOM_MPI"))),
                                 is_one(std::getenv("CCOM_MPI_STATS")) ? 1 : 0};
  if (all_ranks_do) mpi().Bcast(settings.data(), 2, handles().ints, 0, mpi().world);
  mode = static_cast<Mode>(settings[0]);
  statistics.is_on = settings[1] != 0 && mode != Mode::Off;
  has_all_ranks_ = all_ranks_do;
  // The attribute of MPI_COMM_SELF goes first when MPI_Finalize begins.
  if (mpi().Comm_create_keyval(copy_nothing, &Process::on_delete, &key_, this) != kSuccess) return;
  if (mpi().Comm_dup(mpi().self, &self) != kSuccess) return;
  mpi().Comm_set_errhandler(self, mpi().errors_return);
  mpi().Comm_set_attr(mpi().self, key_, this);
  begin_progress(self);
  state_ = 1;
}

int Process::on_delete(Handle handle, int, void* attribute, void* user) {
  Process& process = *static_cast<Process*>(user);
  if (attribute == user)
    process.end();
  else
    process.forget(mpi().plain(handle));
  return kSuccess;
}

Communicator* Process::look_up(Handle handle) {
  int is_initialized = 0, is_finalized = 0;
  mpi().Initialized(&is_initialized);
  mpi().Finalized(&is_finalized);
  if (is_initialized == 0 || is_finalized != 0 || state_ == 2) return nullptr;
  if (state_ == 0) begin(false);
  if (state_ != 1) return nullptr;
  const uint64_t generation = generation_.load(std::memory_order_acquire);
  const std::unique_lock lock(table_->mutex);
  std::unique_ptr<Communicator>& of = table_->by_handle[handle];
  if (!of) {
    of = std::make_unique<Communicator>();
    of->handle = handle;
    int is_inter = 0;
    mpi().Comm_test_inter(handle, &is_inter);
    mpi().Comm_size(handle, &of->size);
    mpi().Comm_rank(handle, &of->rank);
    if (is_inter != 0)
      of->refusal = Fate::Inter;
    else if (of->size == 1)
      of->refusal = Fate::OneRank;
    if (handle != mpi().self) mpi().Comm_set_attr(handle, key_, of.get());
  }
  last_ = {handle, generation, of.get()};
  return of.get();
}

void Process::forget(Handle handle) {
  std::unique_ptr<Communicator> gone;
  {
    const std::lock_guard lock(table_->mutex);
    const auto found = table_->by_handle.find(handle);
    if (found == table_->by_handle.end()) return;
    gone = std::move(found->second);
    table_->by_handle.erase(found);
    generation_.fetch_add(1, std::memory_order_release);
  }
  if (world_ == gone.get()) world_ = nullptr;
  for (const auto& channel : gone->channels) channel->of = nullptr;
  if (gone->comm != nullptr) ccom_library().CommDestroy(gone->comm);
}

// Its ranks in MPI_COMM_WORLD, of which ccom's is started and well. Where threads make calls at the same time, their
// order on the world's communicator would differ between ranks.
bool Process::can_be_part(Handle handle, const Communicator& of, std::vector<int>& ranks) {
  ccomResult_t result = ccomSuccess;
  if (is_multiple || world_ == nullptr || world_->comm == nullptr) return false;
  if (ccom_library().CommGetAsyncError(world_->comm, &result) != ccomSuccess || result != ccomSuccess) return false;
  Handle mine = 0, all = 0;
  std::vector<int> own(static_cast<size_t>(of.size));
  std::iota(own.begin(), own.end(), 0);
  ranks.resize(own.size());
  mpi().Comm_group(handle, &mine);
  mpi().Comm_group(mpi().world, &all);
  mpi().Group_translate_ranks(mine, of.size, own.data(), all, ranks.data());
  mpi().Group_free(&mine);
  mpi().Group_free(&all);
  for (const int rank : ranks)
    if (rank == mpi().numbers.undefined) return false;
  return true;
}

ccomResult_t Process::start_by_id(Communicator& of, const ccomConfig_t& config) {
  struct {
    ccomUniqueId id;
    int result;
  } made{};
  if (of.rank == 0) made.result = ccom_library().GetUniqueId(&made.id);
  mpi().Bcast(&made, sizeof made, handles().byte, 0, of.handle);
  if (made.result != ccomSuccess) return static_cast<ccomResult_t>(made.result);
  return ccom_library().CommInitRankConfig(&of.comm, of.size, made.id, of.rank, &config);
}

void Process::start(Communicator& of) {
  of.is_tried = true;
  const InCall in_call;
  std::vector<int> ranks;
  const bool is_loaded = ccom_library().is_loaded;
  std::array<int, 2> can = {is_loaded ? 1 : 0, is_loaded && can_be_part(of.handle, of, ranks) ? 1 : 0};
  of.refusal = Fate::NotStarted;
  if (!agree(can, of.handle)) return;
  ccomConfig_t config = CCOM_CONFIG_INIT;
  std::array<char, 512> name{};
  int length = 0;
  mpi().Comm_get_name(of.handle, name.data(), &length);
  config.commName = length > 0 ? name.data() : "MPI communicator";
  if (std::getenv("CCOM_TIMEOUT_MS") == nullptr) config.timeoutMs = kYearMs;
  add_progress(config);
  ccomResult_t result = ccomNotSupported;
  if (can[1] != 0)
    result = ccom_library().CommCreateGroup(world_->comm, ranks.data(), of.size, &of.comm, &config);
  else if (can[0] != 0)
    result = start_by_id(of, config);
  const std::string why = !is_loaded ? ccom_library().why_not : ccom_library().GetLastError(nullptr);
  std::array<int, 1> has_started = {result == ccomSuccess ? 1 : 0};
  if (agree(has_started, of.handle) && has_started[0] != 0) {
    of.refusal = Fate::Taken;
    if (of.handle == mpi().world) world_ = &of;
    return;
  }
  if (of.comm != nullptr) ccom_library().CommDestroy(of.comm);
  of.comm = nullptr;
  static std::atomic_flag is_told;
  if (is_told.test_and_set()) return;
  if (of.rank == 0) {
    std::fprintf(stderr, "ccom: %s of %d ranks is left to MPI: ccom could not start: %s\n", config.commName, of.size,
                 result == ccomSuccess ? "on another rank, which says why" : why.c_str());
  } else if (result != ccomSuccess && !is_loaded) {
    std::fprintf(stderr, "ccom: rank %d of %s: %s\n", of.rank, config.commName, why.c_str());
  }
}

// In MPI_Finalize, where MPI still works.
void Process::end() {
  if (state_ != 1) return;
  state_ = 2;
  if (statistics.is_on) report();
  Requests::get().end();
  std::unordered_map<Handle, std::unique_ptr<Communicator>> all;
  {
    const std::lock_guard lock(table_->mutex);
    all.swap(table_->by_handle);
    generation_.fetch_add(1, std::memory_order_release);
  }
  world_ = nullptr;
  for (const auto& [handle, of] : all) {
    of->channels.clear();
    if (of->comm != nullptr) ccom_library().CommDestroy(of->comm);
  }
  end_progress();
  mpi().Comm_free(&self);
}

// By rank 0, of all ranks; by each of itself where not all of them are known to come here.
void Process::report() {
  auto sums = statistics.numbers();
  int rank = 0, ranks = 1;
  if (has_all_ranks_) {
    const auto mine = sums;
    mpi().Comm_rank(mpi().world, &rank);
    mpi().Comm_size(mpi().world, &ranks);
    mpi().Reduce(mine.data(), sums.data(), static_cast<int>(sums.size()), handles().longs, handles().sum, 0,
                 mpi().world);
  }
  if (rank == 0) std::fputs(Statistics::table(sums, ranks).c_str(), stderr);
}

}  // namespace ccom::mpi
