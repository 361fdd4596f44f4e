// Address handles.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <new>
#include <numeric>

#include "abi/ibverbs/attributes.h"
#include "abi/ibverbs/completion.h"
#include "abi/ibverbs/errors.h"
#include "device/device.h"
#include "device/gid_table.h"

namespace weft::abi {
namespace {

constexpr uint8_t kIbTransport = 0x1b;  // next header of a GRH on InfiniBand and RoCE v1

// The 40 bytes before a datagram: an IPv6 header or GRH, or 20 bytes of anything and an IPv4
// header.
struct Ipv4Header {
  uint8_t version_length;
  uint8_t tos;
  uint16_t total_length;
  uint16_t id;
  uint16_t fragment;
  uint8_t ttl;
  uint8_t protocol;
  uint16_t checksum;
  in_addr source;
  in_addr destination;
};
static_assert(sizeof(Ipv4Header) == 20 && sizeof(ibv_grh) == 40);

Ipv4Header ipv4_of(const ibv_grh& grh) {
  Ipv4Header h;
  std::memcpy(&h, reinterpret_cast<const char*>(&grh) + sizeof grh - sizeof h, sizeof h);
  return h;
}

// RFC 1071: the sum over a header with its checksum in it is all ones.
bool checksum_holds(const Ipv4Header& h) {
  std::array<uint16_t, sizeof h / 2> words;
  std::memcpy(words.data(), &h, sizeof h);
  uint32_t sum = std::accumulate(words.begin(), words.end(), uint32_t{0});
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

// An IPv6 header whose source address happens to look like IPv4 is told by the checksum.
bool is_ipv4(const ibv_grh& grh) {
  const Ipv4Header h = ipv4_of(grh);
  if (ntohl(grh.version_tclass_flow) >> 28 != 6) return h.version_length >> 4 == 4;
  return h.version_length == 0x45 && checksum_holds(h);
}

Gid mapped(in_addr a) {
  return Gid::from_ipv4(ntohl(a.s_addr));
}
// The route back to the sender of a datagram. Errors: EINVAL (not to an address of ours),
// EPROTONOSUPPORT.
int reverse(const device::Device& device, const ibv_grh& grh, ibv_global_route& out) {
  Gid ours;
  Gid theirs;
  const uint32_t first_word = ntohl(grh.version_tclass_flow);
  if (is_ipv4(grh)) {
    const Ipv4Header h = ipv4_of(grh);
    ours = mapped(h.destination);
    theirs = mapped(h.source);
    out.hop_limit = h.ttl;
    out.traffic_class = h.tos;
  } else if (first_word >> 28 == 6) {
    if (grh.next_hdr != IPPROTO_UDP && grh.next_hdr != kIbTransport) return EPROTONOSUPPORT;
    ours = to_gid(grh.dgid);
    theirs = to_gid(grh.sgid);
    out.hop_limit = grh.hop_limit;
    out.traffic_class = static_cast<uint8_t>(first_word >> 20);
  } else {
    return EPROTONOSUPPORT;
  }
  // A multicast address is in no table either.
  const device::GidEntry* entry = device.find(ours);
  // Nor is the loopback, but what comes there comes from this host, and any address leads back.
  for (const device::GidEntry& e : device.gids) {
    if (entry != nullptr || !device::is_loopback(ours)) break;
    if (e.gid.is_ipv4() == ours.is_ipv4()) entry = &e;
  }
  if (entry == nullptr) return EINVAL;
  out.sgid_index = static_cast<uint8_t>(entry - device.gids.data());
  std::memcpy(out.dgid.raw, theirs.raw.data(), sizeof out.dgid.raw);
  return 0;
}

}  // namespace
}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) try {
  AbiContext& c = object(pd->context);
  if (!c.alive()) return refuse_dead_object();
  if (const int e = check_identity(object(pd), "protection domain"); e != 0) return nullptr;
  const verbs::AddressVector v = to_vector(*attr);
  if (v.port != device::kPort) {
    return refuse_object(EINVAL, "address handle: port %u; the device has port 1", v.port);
  }
  if (v.global && c.core.source(v.sgid_index) == nullptr) {
    return refuse_object(EINVAL, "address handle: sgid_index %u; the GID table has %zu entries",
                         v.sgid_index, c.core.device().gids.size());
  }
  const auto resolved = verbs::resolve(c.core, v);
  if (!resolved) {
    return refuse_object(EINVAL,
                         "address handle: it leads nowhere; give a GID (is_global, grh.dgid), or a "
                         "LID on a host with an IPv4 address");
  }
  if (!resolved->of_one_family()) {
    const Gid& theirs = resolved->path.to.address;
    return refuse_object(EINVAL,
                         "address handle: its own GID (sgid_index %u) is %s, and the destination's "
                         "is %s: choose the sgid_index of an %s address",
                         v.global ? v.sgid_index : 0, resolved->path.from.to_string().c_str(),
                         theirs.to_string().c_str(), theirs.is_ipv4() ? "IPv4" : "IPv6");
  }
  auto* ah = new AbiAh{c};
  ah->context = pd->context;
  ah->pd = pd;
  identify(*ah);
  ah->core = *resolved;
  ah->domain = &object(pd).core;
  ah->domain->add_ref();
  return ah;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* out) {
  *out = {};
  out->dlid = wc->slid;
  out->sl = wc->sl;
  out->src_path_bits = wc->dlid_path_bits;
  out->port_num = port;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
  out->is_global = 1;
  out->grh.flow_label = ntohl(grh->version_tclass_flow) & 0xfffff;
  if (port != device::kPort) {
    refuse(EINVAL);
    return -1;
  }
  if (const int e = reverse(object(context).core.device(), *grh, out->grh); e != 0) {
    refuse(e);
    return -1;
  }
  return 0;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attr;
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0) return nullptr;
  ibv_ah* ah = ibv_create_ah(pd, &attr);
  // Behind a NAT the sender is not at the port that its number says (spec/wdp-ud 3.3).
  if (ah != nullptr) object(ah).core.observed_port = observed_port(*wc);
  return ah;
}

int ibv_destroy_ah(ibv_ah* ah) {
  if (const int e = check_identity(object(ah), "address handle"); e != 0) return e;
  verbs::ProtectionDomain* domain = object(ah).domain;
  delete &object(ah);
  domain->drop_ref();
  return 0;
}

}  // extern "C"
