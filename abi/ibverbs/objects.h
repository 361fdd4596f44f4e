// The objects that programs hold: Debian's structs, each with what weft keeps behind it. Programs
// read the structs and never write them, but for the fields of the builder API (ibv_qp_ex).
//
//   AbiContext <-- AbiPd <-- AbiMr, AbiMw, AbiAh, AbiSrq, AbiQp   (<--: keeps alive or busy)
//              <-- AbiChannel <-- AbiCq <-- AbiQp
#pragma once

#include <infiniband/verbs.h>

// The header hides functions behind macros of the same name; this library defines the functions.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "abi/ibverbs/object_count.h"
#include "base/intrusive_list.h"
#include "base/spinlock.h"
#include "port/fd.h"
#include "verbs/adapter.h"
#include "verbs/address_handle.h"
#include "verbs/completion_queue.h"
#include "verbs/context.h"
#include "verbs/memory_table.h"
#include "verbs/protection_domain.h"
#include "verbs/queue_pair.h"
#include "verbs/send_posting.h"
#include "verbs/shared_receive_queue.h"

namespace weft::abi {

struct AbiQp;

// Fills the functions that the inline part of verbs.h calls.
void set_operations(verbs_context& context);

// An open device. Counted: the program that opened it and each object made from it hold it, so that
// closing too early, which rdma-core's users do, frees nothing that is in use.
struct AbiContext : verbs_context {
  AbiContext(verbs::Adapter& adapter, device::Device device)
      : verbs_context{}, core(adapter, std::move(device)) {}

  // False in a child of fork(2) that has got the object from its parent, and in a program that has
  // closed weft's descriptors and opened the device again: the adapter behind it has neither
  // threads nor sockets (spec/abi 7).
  bool alive() const { return &core.adapter() == verbs::Adapter::existing(); }
  void add_ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref();

  verbs::Context core;
  // Programs duplicate and mark the descriptor of the kernel's driver (cmd_fd), so it has to be
  // one.
  port::Fd driver;
  std::mutex lock;  // of queue_pairs
  IntrusiveList<AbiQp, struct OpenQps> queue_pairs;
  ObjectCount domains{device::kMaxPd, "max_pd"};
  ObjectCount completion_queues{device::kMaxCq, "max_cq"};
  ObjectCount shared_receives{device::kMaxSrq, "max_srq"};
  ObjectCount address_handles{device::kMaxAh, "max_ah"};
  ObjectCount queue_pair_count{device::kMaxQp, "max_qp"};

 private:
  std::atomic<int> refs_{1};
};

// What the fields `handle` and `context` of an object said when it was made. The kernel looks an
// object up by them, so programs that write over them are refused with ENOENT.
struct Identity {
  uint32_t handle = 0;
  const ibv_context* context = nullptr;
  bool operator==(const Identity&) const = default;
};

struct AbiTd : ibv_td {
  std::atomic<int> parent_domains{0};
};

struct AbiPd : ibv_pd {
  explicit AbiPd(AbiContext& c)
      : ibv_pd{}, counted(std::in_place, c.domains), own(std::in_place, c.core), core(*own) {}
  // A parent domain.
  explicit AbiPd(AbiPd& of) : ibv_pd{}, core(of.core) { core.add_ref(); }
  bool is_parent() const { return !own; }

  Identity identity;
  std::optional<Counted> counted;
  std::optional<verbs::ProtectionDomain> own;
  verbs::ProtectionDomain& core;
  AbiTd* thread_domain = nullptr;
};

struct AbiMr : ibv_mr {
  Identity identity;
  verbs::Region* region = nullptr;
};

// The domain is kept beside `pd`, for a parent domain may go before what was made in it.
struct AbiMw : ibv_mw {
  Identity identity;
  verbs::ProtectionDomain* domain = nullptr;
  verbs::WindowId id;
};

struct AbiAh : ibv_ah {
  explicit AbiAh(AbiContext& c) : ibv_ah{}, counted(c.address_handles) {}
  Identity identity;
  Counted counted;
  verbs::ProtectionDomain* domain = nullptr;
  verbs::AddressHandle core;
};

struct AbiChannel : ibv_comp_channel {
  explicit AbiChannel(AbiContext& c)
      : ibv_comp_channel{}, core(std::make_shared<verbs::CompletionChannel>(c.core.adapter())) {}
  std::shared_ptr<verbs::CompletionChannel> core;  // with threads that sleep in it
};

struct AbiCq : ibv_cq_ex {
  AbiCq(AbiContext& c, uint32_t entries, AbiChannel* ch, bool timestamps)
      : ibv_cq_ex{},
        counted(c.completion_queues),
        core(c.core, entries, ch == nullptr ? nullptr : ch->core.get(), ibv_cq_ex_to_cq(this),
             timestamps) {}
  Identity identity;
  Counted counted;
  verbs::CompletionQueue core;
  uint32_t async_delivered = 0;  // under the lock of the context's events
  // ibv_start_poll to ibv_end_poll.
  Spinlock polling;
  bool single_threaded = false;
  verbs::Completion current;
};

struct AbiSrq : ibv_srq {
  AbiSrq(AbiContext& c, AbiPd& domain, uint32_t entries, uint32_t segments)
      : ibv_srq{},
        counted(c.shared_receives),
        core(domain.core, entries, segments, static_cast<ibv_srq*>(this)) {}
  Identity identity;
  Counted counted;
  verbs::SharedReceiveQueue core;
  uint32_t async_delivered = 0;  // under the lock of the context's events
};

// ibv_wr_start to ibv_wr_complete.
struct WrBuilder {
  Spinlock lock;
  std::optional<verbs::SendPosting> posting;
  verbs::SendRequest request;
  bool open = false;  // the request waits for its data, or a datagram for its address
  // Of a datagram whose data came before its address.
  bool has_data = false;
  std::array<verbs::LocalSegment, device::kMaxSge> segments;
  std::array<std::byte, device::kMaxInline> inlined;
  // Windows that the list binds, and their keys before it: nothing is bound where nothing is
  // posted.
  struct Bound {
    ibv_mw* window;
    uint32_t rkey;
  };
  std::vector<Bound> bound;
  int error = 0;           // the first one; nothing is posted then
  verbs::PostFault fault;  // of the queue pair's rules, if it is one of these
};

struct AbiQp : ibv_qp_ex, ListHook<OpenQps> {
  explicit AbiQp(AbiContext& c) : ibv_qp_ex{}, counted(c.queue_pair_count) {}
  Identity identity;
  Counted counted;
  ibv_qp& base() { return qp_base; }
  std::unique_ptr<verbs::QueuePair> core;
  uint32_t async_delivered = 0;        // under the lock of the context's events
  std::unique_ptr<WrBuilder> builder;  // only where made with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
};

inline AbiContext& object(ibv_context* c) {
  return static_cast<AbiContext&>(*verbs_get_ctx(c));
}
inline AbiPd& object(ibv_pd* p) {
  return static_cast<AbiPd&>(*p);
}
inline AbiTd& object(ibv_td* t) {
  return static_cast<AbiTd&>(*t);
}
inline AbiMr& object(ibv_mr* m) {
  return static_cast<AbiMr&>(*m);
}
inline AbiMw& object(ibv_mw* m) {
  return static_cast<AbiMw&>(*m);
}
inline AbiAh& object(ibv_ah* a) {
  return static_cast<AbiAh&>(*a);
}
inline AbiChannel& object(ibv_comp_channel* c) {
  return static_cast<AbiChannel&>(*c);
}
inline AbiSrq& object(ibv_srq* s) {
  return static_cast<AbiSrq&>(*s);
}
inline AbiCq& object(ibv_cq_ex* c) {
  return static_cast<AbiCq&>(*c);
}
// The structs without _ex are the beginning of those with it (verbs.h).
inline AbiCq& object(ibv_cq* c) {
  return object(reinterpret_cast<ibv_cq_ex*>(c));
}
inline AbiQp& object(ibv_qp_ex* q) {
  return static_cast<AbiQp&>(*q);
}
inline AbiQp& object(ibv_qp* q) {
  return object(reinterpret_cast<ibv_qp_ex*>(q));
}
inline ibv_cq* as_cq(AbiCq& c) {
  return ibv_cq_ex_to_cq(&c);
}

template <class Object>
Object& as_struct(Object& o) {
  return o;
}
inline ibv_qp& as_struct(AbiQp& o) {
  return o.base();
}
template <class Object>
Identity identity_of(Object& o) {
  return {as_struct(o).handle, as_struct(o).context};
}

// A number for `handle` fields, different for each object of the process.
uint32_t next_handle();
// Names an object whose context stands in it.
template <class Object>
void identify(Object& o, uint32_t handle = next_handle()) {
  as_struct(o).handle = handle;
  o.identity = identity_of(o);
}

}  // namespace weft::abi
