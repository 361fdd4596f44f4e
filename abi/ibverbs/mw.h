// Memory windows, as programs reach them through the context; and the bind that both ways of
// posting share.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
// Type 1: posts the bind and gives the window its next key.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);

// What a queue pair is to do; 0, or EINVAL or EPERM, with a sentence, when rdma-core would not post
// it.
int make_bind(ibv_mw& mw, uint32_t fresh_key, const ibv_mw_bind_info& info,
              verbs::BindRequest& out);
// The same for a work request (IBV_WR_BIND_MW, ibv_wr_bind_mw), which is for type 2 alone. The
// program chooses the last 8 bits of the key, the rest is the window's (InfiniBand 10.6.7.2.1).
// Once the request is posted `mw.rkey` has to be `out.fresh_stag`: programs read it there.
int make_type_2_bind(ibv_mw& mw, uint32_t key, const ibv_mw_bind_info& info,
                     verbs::BindRequest& out);

}  // namespace weft::abi
