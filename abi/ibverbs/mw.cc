#include "abi/ibverbs/mw.h"

#include <memory>
#include <new>

#include "abi/ibverbs/enums.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/post_refusal.h"

namespace weft::abi {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) try {
  AbiContext& c = object(pd->context);
  if (!c.alive()) return refuse_dead_object();
  if (const int t = number_of(type); t != IBV_MW_TYPE_1 && t != IBV_MW_TYPE_2) {
    return refuse_object(EINVAL, "memory window: type %d; there are 1 and 2", t);
  }
  if (const int e = check_identity(object(pd), "protection domain"); e != 0) return nullptr;
  auto mw = std::make_unique<AbiMw>();
  const auto window = c.core.adapter().memory().reserve_window();
  if (!window.ok()) return refuse_object(window.error());
  mw->context = pd->context;
  mw->pd = pd;
  mw->rkey = window->stag.value();
  mw->id = window->id;
  identify(*mw);
  mw->type = type;
  mw->domain = &object(pd).core;
  mw->domain->add_ref();
  return mw.release();
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int dealloc_mw(ibv_mw* mw) {
  AbiContext& c = object(mw->context);
  if (!c.alive()) return 0;
  if (const int e = check_identity(object(mw), "memory window"); e != 0) return e;
  c.core.adapter().memory().release_window(Stag{mw->rkey});
  object(mw).domain->drop_ref();
  delete &object(mw);
  return 0;
}

int make_bind(ibv_mw& mw, uint32_t fresh_key, const ibv_mw_bind_info& info,
              verbs::BindRequest& out) {
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) {
    return refuse(EINVAL, "memory window: a bind of %lu bytes names no memory region",
                  static_cast<unsigned long>(info.length));
  }
  if (info.mr != nullptr && info.mr->pd != mw.pd) {
    return refuse(EPERM, "memory window: its pd is another than that of the memory region");
  }
  out = {.window = object(&mw).id,
         .old_stag = Stag{mw.rkey},
         .fresh_stag = Stag{fresh_key},
         .lkey = Stag{info.mr == nullptr ? 0 : info.mr->lkey},
         .address = info.addr,
         .length = info.length,
         .access = info.mw_access_flags,
         .type_2 = mw.type == IBV_MW_TYPE_2};
  return 0;
}

int make_type_2_bind(ibv_mw& mw, uint32_t key, const ibv_mw_bind_info& info,
                     verbs::BindRequest& out) {
  if (mw.type != IBV_MW_TYPE_2) {
    return refuse(EINVAL, "memory window: IBV_WR_BIND_MW is for type 2; ibv_bind_mw binds type 1");
  }
  return make_bind(mw, verbs::MemoryTable::with_key_of(Stag{mw.rkey}, Stag{key}).value(), info,
                   out);
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  if (!object(qp->context).alive()) return refuse_dead();
  if (mw->type != IBV_MW_TYPE_1) {
    return refuse(EINVAL, "memory window: ibv_bind_mw is for type 1; post IBV_WR_BIND_MW");
  }
  // InfiniBand 10.6.7.2.5: only type 2 windows have offsets instead of addresses.
  if ((bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0) {
    return refuse(EINVAL, "memory window: IBV_ACCESS_ZERO_BASED is for type 2");
  }
  const Stag fresh = verbs::MemoryTable::next_key(Stag{mw->rkey});
  verbs::BindRequest request;
  if (const int e = make_bind(*mw, fresh.value(), bind->bind_info, request); e != 0) {
    return refuse(e);
  }
  verbs::PostFault fault;
  {
    verbs::SendPosting posting{*object(qp).core};
    const auto added =
        posting.add_bind(request, bind->wr_id, (bind->send_flags & IBV_SEND_SIGNALED) != 0,
                         (bind->send_flags & IBV_SEND_FENCE) != 0);
    if (added.ok()) {
      posting.commit();
      mw->rkey = fresh.value();
      return 0;
    }
    fault = posting.fault();
  }
  return refuse_send(*qp, fault);
}

}  // namespace weft::abi
