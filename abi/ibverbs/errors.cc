#include "abi/ibverbs/errors.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "base/first_of_kind.h"
#include "base/log.h"

namespace weft::abi {
namespace {

constinit FirstOfKind g_first;  // a kind has its own text

void say(const char* why, va_list arguments) {
  const log::Level level = g_first(why) ? log::Level::warn : log::Level::info;
  if (!log::enabled(level)) return;
  char text[256];
  std::vsnprintf(text, sizeof text, why, arguments);
  log::write(level, "%s", text);
}

}  // namespace

int to_errno(verbs::Errc e) {
  switch (e) {
    case verbs::Errc::invalid:
      return EINVAL;
    case verbs::Errc::no_memory:
      return ENOMEM;
    case verbs::Errc::busy:
      return EBUSY;
    case verbs::Errc::fault:
      return EFAULT;
    case verbs::Errc::not_supported:
      return EOPNOTSUPP;
    case verbs::Errc::system:
      return EIO;
  }
  return EIO;
}

int refuse(int error) {
  errno = error;
  return error;
}

Nothing refuse_object(int error) {
  errno = error;
  return {};
}

int refuse(int error, const char* why, ...) {
  va_list arguments;
  va_start(arguments, why);
  say(why, arguments);
  va_end(arguments);
  return refuse(error);
}

Nothing refuse_object(int error, const char* why, ...) {
  va_list arguments;
  va_start(arguments, why);
  say(why, arguments);
  va_end(arguments);
  return refuse_object(error);
}

int refuse_unknown(const char* kind) {
  return refuse(ENOENT, "%s: its handle or context is not the one that it was given", kind);
}

int refuse_dead() {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  if (!said.test_and_set()) {
    WEFT_LOG(warn,
             "the device is gone: the parent process opened it, and after fork() a child must open "
             "its own; or this process has closed weft's descriptors (closefrom(3)?) and must open "
             "it again with ibv_open_device");
  }
  return refuse(EIO);
}

}  // namespace weft::abi
