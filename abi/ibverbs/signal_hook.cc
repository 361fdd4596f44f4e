#include "abi/ibverbs/signal_hook.h"

#include <link.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <string_view>

#include "abi/ibverbs/loaded_objects.h"
#include "config/options.h"
#include "port/memory_faults.h"

namespace weft::abi {
namespace {

using Handler = void (*)(int);

// ---- What the program and its libraries call.

int hooked_sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
  return port::program_sigaction(signal, action, old);
}

Handler install(int signal, Handler handler, int flags, bool blocks_itself) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  (void)sigemptyset(&action.sa_mask);
  if (blocks_itself && sigaddset(&action.sa_mask, signal) != 0) return SIG_ERR;
  if (port::program_sigaction(signal, &action, &old) != 0) return SIG_ERR;
  return old.sa_handler;
}

bool is_caught(int signal) {
  return signal == SIGSEGV || signal == SIGBUS;
}

// As in BSD, which is what signal(2) is with glibc.
Handler hooked_signal(int signal, Handler handler) {
  if (!is_caught(signal)) return ::signal(signal, handler);
  return install(signal, handler, SA_RESTART, true);
}

// As in System V: once, and the signal is not blocked meanwhile.
Handler hooked_sysv_signal(int signal, Handler handler) {
  if (!is_caught(signal)) return ::sysv_signal(signal, handler);
  return install(signal, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER, false);
}

void* replacement_of(std::string_view function) {
  static const Substitute all[] = {
      {"sigaction", hooked_sigaction},
      {"__sigaction", hooked_sigaction},
      {"signal", hooked_signal},
      {"bsd_signal", hooked_signal},
      {"ssignal", hooked_signal},
      {"sysv_signal", hooked_sysv_signal},
      {"__sysv_signal", hooked_sysv_signal},
  };
  return target_of(all, function);
}

// ---- Whose calls.

// Not weft's own, which mean the kernel's actions; nor the C library, the kernel's own library and
// what sanitizers bring with them, which do not call these functions for the program.
bool is_concerned(const dl_phdr_info& object) {
  const std::string_view file = file_name(object);
  for (const std::string_view other :
       {"libibverbs.so", "librdmacm.so", "libc.so", "libc-", "ld-linux", "ld-", "linux-vdso",
        "libasan.so", "libtsan.so", "libubsan.so", "liblsan.so"}) {
    if (file.starts_with(other)) return false;
  }
  return true;
}

// How many objects were ever loaded.
unsigned long long objects_loaded() {
  unsigned long long n = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* to) {
        *static_cast<unsigned long long*>(to) = object->dlpi_adds;
        return 1;
      },
      &n);
  return n;
}

}  // namespace

void hook_signals() noexcept try {
  static std::atomic<unsigned long long> known{0};
  if (config::options().no_hook) return;
  const unsigned long long now = objects_loaded();
  if (known.exchange(now) != now) replace_in_objects(is_concerned, replacement_of);
} catch (const std::exception&) {
  // No memory: a handler that is installed later takes the place of weft's.
}

}  // namespace weft::abi
