#include "port/route.h"

#include <cerrno>

#include "port/calls.h"

namespace weft::port {
namespace {

// Any number but 0 will do: the port takes no part in routing.
constexpr uint16_t kSomePort = 9;

Fd datagram_socket(int family) {
  return raise(Fd{calls::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)});
}

bool bind_to(const Fd& fd, Address at) {
  at.set_port(0);
  return ::bind(fd.get(), at.get(), at.length) == 0;
}

}  // namespace

Result<Address, SystemError> source_towards(const Address& to, const Address& from) {
  const Fd fd = datagram_socket(to.family());
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  if (from.valid() && !from.is_any() && !bind_to(fd, from)) {
    return fail(SystemError{errno, "bind"});
  }
  Address there = to;
  there.set_port(kSomePort);
  if (calls::connect(fd.get(), there.get(), there.length) != 0) {
    return fail(SystemError{errno, "connect"});
  }
  Address here = Address::of_socket(fd.get());
  if (!here.valid()) return fail(SystemError{errno, "getsockname"});
  here.set_port(0);
  return here;
}

int check_local(const Address& at) {
  const Fd fd = datagram_socket(at.family());
  if (!fd.valid()) return errno;
  return bind_to(fd, at) ? 0 : errno;
}

}  // namespace weft::port
