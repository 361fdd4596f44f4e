#include "abi/ibverbs/post_refusal.h"

#include <cinttypes>

#include "abi/ibverbs/errors.h"

namespace weft::abi {
namespace {

using Rule = verbs::PostFault::Rule;

const char* state_word(uint64_t state) {
  return verbs::name_of(static_cast<verbs::QpState>(state));
}

}  // namespace

int refuse_send(const ibv_qp& qp, const verbs::PostFault& f) {
  const uint32_t number = qp.qp_num;
  switch (f.rule) {
    case Rule::state:
      return refuse(EINVAL, "queue pair 0x%06x: a send request in state %s; post it from RTS on",
                    number, state_word(f.asked));
    case Rule::segments:
      return refuse(EINVAL,
                    "queue pair 0x%06x: a send request of %" PRIu64
                    " segments; it was made for at "
                    "most %" PRIu64 " (cap.max_send_sge)",
                    number, f.asked, f.limit);
    case Rule::message_length:
      return refuse(EINVAL,
                    "queue pair 0x%06x: a message of %" PRIu64 " bytes; at most %" PRIu64
                    " are possible (max_msg_sz)",
                    number, f.asked, f.limit);
    case Rule::inline_length:
      return refuse(EINVAL,
                    "queue pair 0x%06x: %" PRIu64
                    " bytes with IBV_SEND_INLINE; it was made for at "
                    "most %" PRIu64 " (cap.max_inline_data)",
                    number, f.asked, f.limit);
    case Rule::inline_operation:
      return refuse(EINVAL,
                    "queue pair 0x%06x: IBV_SEND_INLINE on an RDMA Read or an atomic, whose memory "
                    "a response is written to",
                    number);
    case Rule::operation:
      return refuse(EINVAL,
                    "queue pair 0x%06x: it is %s, which does not have this operation, or lacks the "
                    "address handle (wr.ud.ah) of one that is UD",
                    number, verbs::find_type(qp.qp_type)->name);
    case Rule::atomic_length:
      return refuse(EINVAL,
                    "queue pair 0x%06x: an atomic with %" PRIu64
                    " bytes for its response; it needs "
                    "%" PRIu64,
                    number, f.asked, f.limit);
    case Rule::full:
      return refuse(ENOMEM);
    case Rule::none:
    case Rule::shared_receives:
      break;
  }
  return refuse(EINVAL);
}

int refuse_receive(const ibv_qp& qp, const verbs::PostFault& f) {
  const uint32_t number = qp.qp_num;
  switch (f.rule) {
    case Rule::state:
      return refuse(EINVAL, "queue pair 0x%06x: a receive in state RESET; post it from INIT on",
                    number);
    case Rule::segments:
      return refuse(EINVAL,
                    "queue pair 0x%06x: a receive of %" PRIu64
                    " segments; it was made for at most "
                    "%" PRIu64 " (cap.max_recv_sge)",
                    number, f.asked, f.limit);
    case Rule::shared_receives:
      return refuse(EINVAL,
                    "queue pair 0x%06x: it has a shared receive queue; post receives there "
                    "(ibv_post_srq_recv)",
                    number);
    case Rule::full:
      return refuse(ENOMEM);
    default:
      return refuse(EINVAL);
  }
}

}  // namespace weft::abi
