// Names and services to addresses, by getaddrinfo(3).
#include <netdb.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

int socket_type(int qp_type) {
  switch (qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return SOCK_STREAM;
    case IBV_QPT_UD:
      return SOCK_DGRAM;
    default:
      return 0;
  }
}

int protocol(int port_space, int type) {
  switch (port_space) {
    case RDMA_PS_TCP:
      return IPPROTO_TCP;
    case RDMA_PS_IPOIB:
    case RDMA_PS_UDP:
      return IPPROTO_UDP;
    case RDMA_PS_IB:
      return type == SOCK_STREAM ? IPPROTO_TCP : type == SOCK_DGRAM ? IPPROTO_UDP : 0;
    default:
      return 0;
  }
}

addrinfo to_addrinfo(const rdma_addrinfo& h) {
  addrinfo a{};
  if ((h.ai_flags & RAI_PASSIVE) != 0) a.ai_flags |= AI_PASSIVE;
  if ((h.ai_flags & RAI_NUMERICHOST) != 0) a.ai_flags |= AI_NUMERICHOST;
  a.ai_family = h.ai_family == AF_IB ? AF_UNSPEC : h.ai_family;
  a.ai_socktype = socket_type(h.ai_qp_type);
  a.ai_protocol = protocol(h.ai_port_space, a.ai_socktype);
  return a;
}

bool copy(sockaddr*& to, socklen_t& to_length, const void* from, socklen_t length) {
  to = static_cast<sockaddr*>(std::malloc(length));
  if (to == nullptr) return false;
  std::memcpy(to, from, length);
  to_length = length;
  return true;
}

// From what the resolver says. False without memory.
bool fill(rdma_addrinfo& r, const rdma_addrinfo& hints, const addrinfo& a) {
  r.ai_family = a.ai_family;
  r.ai_qp_type = hints.ai_qp_type;
  if (r.ai_qp_type == 0 && a.ai_socktype == SOCK_STREAM) r.ai_qp_type = IBV_QPT_RC;
  if (r.ai_qp_type == 0 && a.ai_socktype == SOCK_DGRAM) r.ai_qp_type = IBV_QPT_UD;
  r.ai_port_space = hints.ai_port_space;
  if (r.ai_port_space == 0 && a.ai_protocol == IPPROTO_TCP) r.ai_port_space = RDMA_PS_TCP;
  if (r.ai_port_space == 0 && a.ai_protocol == IPPROTO_UDP) r.ai_port_space = RDMA_PS_UDP;
  const bool passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  char*& name = passive ? r.ai_src_canonname : r.ai_dst_canonname;
  if (a.ai_canonname != nullptr) name = ::strdup(a.ai_canonname);
  if (!passive) return copy(r.ai_dst_addr, r.ai_dst_len, a.ai_addr, a.ai_addrlen);
  r.ai_flags = RAI_PASSIVE;
  return copy(r.ai_src_addr, r.ai_src_len, a.ai_addr, a.ai_addrlen);
}

// 0, or what getaddrinfo(3) returns.
int resolve(const char* node, const char* service, const rdma_addrinfo* given, rdma_addrinfo& r) {
  const rdma_addrinfo hints = given != nullptr ? *given : rdma_addrinfo{};
  const addrinfo asked = to_addrinfo(hints);
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(node, service, given != nullptr ? &asked : nullptr, &found);
      error != 0) {
    return error;
  }
  const bool filled = fill(r, hints, *found);
  ::freeaddrinfo(found);
  return filled ? 0 : EAI_MEMORY;
}

// Without names there is nothing to look up: what the hints say stands.
bool repeat(const rdma_addrinfo& hints, rdma_addrinfo& r) {
  r.ai_flags = hints.ai_flags;
  r.ai_family = hints.ai_family;
  r.ai_qp_type = hints.ai_qp_type;
  r.ai_port_space = hints.ai_port_space;
  return hints.ai_dst_len == 0 ||
         copy(r.ai_dst_addr, r.ai_dst_len, hints.ai_dst_addr, hints.ai_dst_len);
}

// The source: as the hints have it, else as the host's routes have it.
bool fill_source(const rdma_addrinfo* hints, rdma_addrinfo& r) {
  if (r.ai_src_len != 0) return true;
  if (hints != nullptr && hints->ai_src_len != 0) {
    return copy(r.ai_src_addr, r.ai_src_len, hints->ai_src_addr, hints->ai_src_len);
  }
  const bool wanted =
      (r.ai_flags & RAI_PASSIVE) == 0 && (hints == nullptr || (hints->ai_flags & RAI_NOROUTE) == 0);
  const port::Address there = to_address(r.ai_dst_addr);
  if (!wanted || !there.valid()) return true;
  const port::Address source = connections().source_towards(there);
  return !source.valid() || copy(r.ai_src_addr, r.ai_src_len, &source.storage, source.length);
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                     rdma_addrinfo** res) try {
  if (service == nullptr && node == nullptr && hints == nullptr) return refuse(EINVAL);
  // Addresses of InfiniBand itself: there is no such network.
  if (hints != nullptr && (hints->ai_flags & RAI_FAMILY) != 0 && hints->ai_family == AF_IB) {
    return EAI_FAMILY;
  }
  auto* r = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  if (r == nullptr) return refuse(ENOMEM);
  int error = 0;
  if (node != nullptr || service != nullptr) {
    error = resolve(node, service, hints, *r);
  } else if (!repeat(*hints, *r)) {
    error = EAI_MEMORY;
  }
  if (error == 0 && !fill_source(hints, *r)) error = EAI_MEMORY;
  if (error != 0) {
    rdma_freeaddrinfo(r);
    return error;  // NOLINT(clang-analyzer-unix.Malloc): it does not see into the loop that frees
  }
  *res = r;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

void rdma_freeaddrinfo(rdma_addrinfo* res) {
  while (res != nullptr) {
    rdma_addrinfo* following = res->ai_next;
    std::free(res->ai_connect);
    std::free(res->ai_route);
    std::free(res->ai_src_canonname);
    std::free(res->ai_dst_canonname);
    std::free(res->ai_src_addr);
    std::free(res->ai_dst_addr);
    std::free(res);
    res = following;
  }
}

}  // extern "C"
