// Receives and data pointers of programs, as the core takes them.
#pragma once

#include <array>
#include <cstddef>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/objects.h"

namespace weft::abi {

static_assert(sizeof(ibv_sge) == sizeof(verbs::LocalSegment) &&
              offsetof(ibv_sge, addr) == offsetof(verbs::LocalSegment, address) &&
              offsetof(ibv_sge, length) == offsetof(verbs::LocalSegment, length) &&
              offsetof(ibv_sge, lkey) == offsetof(verbs::LocalSegment, lkey));

// The same memory under the core's name. Programs write it in code that is compiled apart from this
// library.
inline const verbs::LocalSegment* as_segments(const ibv_sge* list) {
  return reinterpret_cast<const verbs::LocalSegment*>(list);
}

// Posts a list by `post(requests, count, posted)`, batch by batch, up to the first that is refused.
template <class Post>
int post_receives(ibv_recv_wr* wr, ibv_recv_wr** bad_wr, Post&& post) {
  std::array<verbs::ReceiveRequest, 8> batch;
  while (wr != nullptr) {
    ibv_recv_wr* const first = wr;
    size_t count = 0;
    for (; wr != nullptr && count < batch.size(); wr = wr->next, ++count) {
      // A negative count becomes one that is larger than any queue allows.
      batch[count] = {wr->wr_id, as_segments(wr->sg_list), static_cast<uint32_t>(wr->num_sge)};
    }
    size_t posted = 0;
    const auto outcome = post(batch.data(), count, posted);
    if (outcome.ok()) continue;
    *bad_wr = first;
    for (; posted > 0; --posted) *bad_wr = (*bad_wr)->next;
    return refuse(outcome.error());
  }
  return 0;
}

}  // namespace weft::abi
