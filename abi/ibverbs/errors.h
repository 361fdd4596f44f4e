// What calls of libibverbs say when they refuse: an errno value as result, or a null pointer with
// errno. Which value is the one of rdma-core and the kernel's uverbs wherever they have one.
#pragma once

#include <cerrno>

#include "abi/ibverbs/objects.h"
#include "verbs/types.h"

namespace weft::abi {

int to_errno(verbs::Errc e);

// For functions that return an errno value; rdma-core's set errno, too. The second form has a
// sentence for the user: what was asked for, and what would do. The first of its kind is a warning,
// the others have level info.
int refuse(int error);
int refuse(int error, const char* why, ...) __attribute__((format(printf, 2, 3)));
inline int refuse(verbs::Errc e) {
  return refuse(to_errno(e));
}
inline int result(const verbs::Outcome<Ok>& outcome) {
  return outcome.ok() ? 0 : refuse(outcome.error());
}

// For functions that return an object.
struct Nothing {
  template <class T>
  operator T*() const {  // NOLINT(google-explicit-constructor)
    return nullptr;
  }
};
Nothing refuse_object(int error);
Nothing refuse_object(int error, const char* why, ...) __attribute__((format(printf, 2, 3)));
inline Nothing refuse_object(verbs::Errc e) {
  return refuse_object(to_errno(e));
}

// 0, or ENOENT of an object whose `handle` or `context` the program has written over.
int refuse_unknown(const char* kind);
template <class Object>
int check_identity(Object& o, const char* kind) {
  return identity_of(o) == o.identity ? 0 : refuse_unknown(kind);
}

// The object came through fork(2) from the parent process, or the program has closed the
// descriptors that it stood on; says so, once. EIO, as of a device that was unplugged.
int refuse_dead();
inline Nothing refuse_dead_object() {
  refuse_dead();
  return {};
}

}  // namespace weft::abi
