// How requests get to the library: each by itself, or several with one call.
#include <cerrno>

#include "endpoint.h"

namespace weft::interop {

void Endpoint::post(ibv_send_wr& w) {
  if (holding_) {
    held_.push_back({w, *w.sg_list});
    return;
  }
  ibv_send_wr* bad = nullptr;
  if (const int e = ibv_post_send(id_->qp, &w, &bad); e != 0) {
    errno = e;
    fail_call("ibv_post_send");
  }
}

void Endpoint::post_held() {
  holding_ = false;
  ibv_send_wr* next = nullptr;
  for (auto h = held_.rbegin(); h != held_.rend(); ++h) {
    h->request.sg_list = &h->piece;
    h->request.next = next;
    next = &h->request;
  }
  if (next != nullptr) post(*next);
  held_.clear();
}

}  // namespace weft::interop
