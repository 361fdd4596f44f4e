// The objects that programs of librdmacm hold: Debian's structs, each with what weft keeps behind
// it. Programs read and, here and there, write the structs; what weft needs it keeps for itself.
//
// Any thread may call the functions, but not two at once for one Id, as rdma_cm(7) has it.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "abi/ibverbs/core.h"

namespace weft::abi {

// A multicast group that an Id has joined.
struct CmGroup {
  port::Address address;
  void* context = nullptr;  // the program's
  bool send_only = false;
  bool attached = false;  // the Id's queue pair
  ibv_gid gid{};
};

struct CmId : rdma_cm_id {
  CmId(cm::Id& i, rdma_event_channel* c, bool s) : rdma_cm_id{}, core(i), sync(s) { channel = c; }
  cm::Id& core;
  bool sync;                            // `channel` is its own, and calls wait for their events
  std::vector<std::byte> connect_data;  // of rdma_getaddrinfo, goes in front of the program's
  std::optional<ibv_qp_init_attr>
      request_qp_attr;  // of rdma_create_ep: for the queue pairs of requests
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  std::mutex groups_lock;  // a thread that takes events attaches the queue pair
  std::vector<std::unique_ptr<CmGroup>> groups;
};

struct CmEvent : rdma_cm_event {
  CmEvent() : rdma_cm_event{} {}
  cm::Event* core = nullptr;  // once there is one
  // A copy. Programs read it behind rdma_ack_cm_event(): a freed event of librdmacm still has it.
  std::array<std::byte, std::numeric_limits<uint8_t>::max()> private_data{};
};

inline CmId& object(rdma_cm_id* id) {
  return static_cast<CmId&>(*id);
}

inline Core& the_core() {
  return *static_cast<Core*>(weft_core_v1());
}
inline cm::Service& connections() {
  return the_core().connections();
}

// What functions of librdmacm return: 0, or -1 with errno.
inline int refuse(int error) {
  errno = error;
  return -1;
}
// EINVAL, with a sentence for the user.
inline int refuse(const char* call, const char* why) {
  connections().say_refusal(call, why);
  return refuse(EINVAL);
}
inline int result(int error) {
  return error == 0 ? 0 : refuse(error);
}

// `channel` nullptr: a synchronous Id. Its device and queue pair type are for the caller to fill
// in.
int create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space,
              ibv_qp_type type);
void free_id(CmId* id);
// The address of a sockaddr of IPv4 or IPv6; an empty one for others and nullptr.
port::Address to_address(const sockaddr* a);
// multicast_join: the Id's queue pair hears the group from now on. Where that fails the event says
// so.
void enter_group(CmEvent& event, CmId& id);
// Its queue pair, which is about to go. The Id stays in its groups.
void detach_from_groups(CmId& id);
// Brings the addresses in the struct up to date.
void update_addresses(CmId& id);
// Binds the Id to the device when its source address is one of this host's. 0, or an errno value.
int take_device(CmId& id);
// The route of an Id whose addresses are known, as path records have it. 0, or an errno value.
int fill_route(CmId& id);
// What it says of a call that waited for it: 0, or an errno value.
int error_of(const rdma_cm_event& event);
// Of a synchronous Id: waits for the event that the call before brings. Otherwise does nothing.
int complete(CmId& id);

}  // namespace weft::abi
