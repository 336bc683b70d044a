// SPDX-License-Identifier: Apache-2.0
//
// To be preloaded: malloc and its kin fail at the CCOM_TEST_FAIL_AT-th call after ccom_test_arm(), once, or with
// CCOM_TEST_FAIL_EVER from then on. A fatal signal writes to stdout through which libraries it came, innermost first:
// "killed SIGNAL LIBRARY LIBRARY ...", on a line of its own: std::terminate may be in the middle of one.
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static std::atomic<long> calls_left{-1};  // -1: never fails
static bool fails_ever = false;
static void* first_frames[32];  // of the first call that fails
static int first_count = 0;

static bool fails() {
  long left = calls_left.load(std::memory_order_relaxed);
  if (left < 0) return false;
  if (left == 0) {
    if (!fails_ever) return false;
    errno = ENOMEM;
    return true;
  }
  left = calls_left.fetch_sub(1, std::memory_order_relaxed) - 1;
  if (left < 0) calls_left.store(0, std::memory_order_relaxed);
  if (left > 0 || (left < 0 && !fails_ever)) return false;
  if (left == 0) first_count = backtrace(first_frames, 32);
  errno = ENOMEM;
  return true;
}

void* malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) { return fails() ? nullptr : __libc_memalign(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *out = made;
  return 0;
}

// What is said, in one write: another thread may say something meanwhile.
static char line[64 * 64];
static size_t line_length = 0;

static void add_place(const void* address) {
  Dl_info where{};
  const char* name = dladdr(address, &where) != 0 ? where.dli_fname : "?";
  const char* slash = strrchr(name, '/');
  const int length =
      snprintf(line + line_length, 64, " %.40s+%#zx", slash != nullptr ? slash + 1 : name,
               static_cast<size_t>(static_cast<const char*>(address) - static_cast<char*>(where.dli_fbase)));
  line_length += static_cast<size_t>(length < 63 ? length : 63);
}

static void* instruction_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
#else
  return reinterpret_cast<void*>(context.uc_mcontext.pc);
#endif
}

static void on_fatal(int number, siginfo_t*, void* context) {
  static std::atomic<bool> is_told{false};
  while (is_told.exchange(true)) pause();  // another thread dies too; its line must not come between
  calls_left = -1;
  line_length = static_cast<size_t>(snprintf(line, 64, "\nkilled %d", number));
  // Who jumps to nowhere has lost its stack: a library that a bad_alloc has left half-way. Then
  // the call tells more that was the first to get no memory.
  auto* const at = instruction_of(*static_cast<ucontext_t*>(context));
  Dl_info where{};
  void* frames[60];
  if (dladdr(at, &where) == 0) {
    for (int i = 0; i < first_count; ++i) add_place(first_frames[i]);
  } else if (number == SIGABRT || strstr(where.dli_fname, "/libc.so") != nullptr) {  // who has called it
    const int count = backtrace(frames, 60);
    for (int i = 0; i < count; ++i) add_place(frames[i]);
  } else {
    add_place(at);
  }
  line[line_length++] = '\n';
  (void)!write(STDOUT_FILENO, line, line_length);
  signal(number, SIG_DFL);
  raise(number);
}

void ccom_test_arm() {
  void* frames[4];
  backtrace(frames, 4);  // loads what it needs
  struct sigaction action {};
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_SIGINFO;
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(number, &action, nullptr);
  const char* const at = getenv("CCOM_TEST_FAIL_AT");
  fails_ever = getenv("CCOM_TEST_FAIL_EVER") != nullptr;
  calls_left = at != nullptr ? atol(at) : -1;
}
// How many calls were left before the first that fails.
long ccom_test_disarm() { return calls_left.exchange(-1); }

}  // extern "C"
