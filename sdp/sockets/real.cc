#include "sdp/sockets/real.h"

#include <dlfcn.h>

namespace weft::sdp {
namespace {

template <class F>
void find(F& function, const char* name) {
  function = reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

Real find_all() {
  Real r{};
  find(r.recv, "recv");
  find(r.send, "send");
  find(r.sendmsg, "sendmsg");
  find(r.ppoll, "ppoll");
  find(r.connect, "connect");
  find(r.listen, "listen");
  find(r.accept, "accept");
  find(r.accept4, "accept4");
  find(r.getsockname, "getsockname");
  find(r.getpeername, "getpeername");
  find(r.getsockopt, "getsockopt");
  find(r.setsockopt, "setsockopt");
  return r;
}

}  // namespace

const Real& real() {
  static const Real found = find_all();
  return found;
}

}  // namespace weft::sdp
