// What rdma-core 60 and later have and Debian 12's headers do not declare: node RDMACM_1.4
// (spec/abi 1.2). Programs that were made with them start.
#include <rdma/rdma_cma.h>

#include <cerrno>

namespace {

int unsupported() {
  errno = EOPNOTSUPP;
  return -1;
}

}  // namespace

extern "C" {

int rdma_resolve_addrinfo(rdma_cm_id*, const char*, const char*, const rdma_addrinfo*) {
  return unsupported();
}
int rdma_query_addrinfo(rdma_cm_id*, rdma_addrinfo**) {
  return unsupported();
}
int rdma_write_cm_event(rdma_cm_id*, rdma_cm_event_type, int, uint64_t) {
  return unsupported();
}

}  // extern "C"
