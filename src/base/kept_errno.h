// errno, in the functions that stand in the place of libc's. A system call that succeeds leaves it
// as it was, and programs rely on that: NFS-Ganesha sets it to 0, sends, and takes what it finds
// there for the outcome.
#pragma once

#include <cerrno>
#include <optional>

namespace weft {

template <class Number>
bool has_failed(Number result) {
  return result < 0;
}
template <class Number>
bool has_failed(const std::optional<Number>& result) {
  return result && *result < 0;
}

// What `call` comes to; below 0 is a failure, which alone changes errno.
template <class Call>
auto keeping_errno(Call call) -> decltype(call()) {
  const int before = errno;
  auto result = call();
  if (!has_failed(result)) errno = before;
  return result;
}

// For what happens beside a call: errno is the same at its end.
class SameErrno {
 public:
  SameErrno() = default;
  SameErrno(const SameErrno&) = delete;
  SameErrno& operator=(const SameErrno&) = delete;
  ~SameErrno() { errno = error_; }

 private:
  const int error_ = errno;
};

}  // namespace weft
