#include "abi/ibverbs/errors.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "base/log.h"

namespace weft::abi {
namespace {

void say(const char* why, va_list arguments) {
  if (!log::enabled(log::Level::info)) return;
  char text[256];
  std::vsnprintf(text, sizeof text, why, arguments);
  WEFT_LOG(info, "%s", text);
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
    case verbs::Errc::permission:
      return EPERM;
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

int refuse_dead() {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  if (!said.test_and_set()) {
    WEFT_LOG(warn,
             "the parent process opened this device: after fork() a child must open its own with "
             "ibv_open_device");
  }
  return refuse(EIO);
}

}  // namespace weft::abi
