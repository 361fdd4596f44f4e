#include "tests/soak/client_link.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

namespace weft::soak {

int ClientLink::prepare(rdma_cm_id* id, ibv_pd* domain, uint16_t place, uint32_t link) {
  id_ = id;
  place_ = place;
  link_ = link;
  ++generation_;
  broken_ = poisoned_ = false;
  posted_ = done_ = messages_ = messages_done_ = acked_ = replies_ = 0;
  writes_ = writes_read_ = adds_ = swaps_ = 0;
  receives_ = 0;
  region_ = ibv_reg_mr(domain, memory_.get(), kMemory, IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return errno;
  for (uint32_t i = 0; i < kReceives; ++i) {
    if (!post_receive(i)) return errno;
  }
  return 0;
}

void ClientLink::opened(Ledger& ledger, Worker& me, const Welcome& welcome) {
  ledger_ = &ledger;
  me_ = &me;
  welcome_ = welcome;
  half().stage.store(Link::Stage::open);
  progressed();
}

void ClientLink::drop(Link::Stage last) {
  if (id_ == nullptr) return;
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
  if (region_ != nullptr) ibv_dereg_mr(region_);
  rdma_destroy_id(id_);
  region_ = nullptr;
  id_ = nullptr;
  ++generation_;
  if (ledger_ != nullptr) half().stage.store(last);
  ledger_ = nullptr;
}

// --- posting

bool ClientLink::post_receive(uint32_t slot) {
  ibv_sge piece{reinterpret_cast<uint64_t>(at(kReceived + slot * kMostBytes)), kMostBytes,
                region_->lkey};
  ibv_recv_wr w{};
  w.wr_id = WorkId{generation_, place_, true, slot}.pack();
  w.sg_list = &piece;
  w.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(id_->qp, &w, &bad);
  if (errno == 0) ++receives_;
  return errno == 0;
}

bool ClientLink::post(Request r, ibv_send_wr& w, std::byte* from, bool signaled) {
  // Two pieces where there is something to cut.
  const auto first = static_cast<uint32_t>(r.length > 100 ? r.length / 3 : r.length);
  std::array<ibv_sge, 2> pieces{{{reinterpret_cast<uint64_t>(from), first, region_->lkey},
                                 {reinterpret_cast<uint64_t>(from) + first,
                                  static_cast<uint32_t>(r.length) - first, region_->lkey}}};
  w.wr_id =
      WorkId{generation_, place_, false, static_cast<uint32_t>(posted_) & WorkId::kNumbers}.pack();
  w.sg_list = pieces.data();
  w.num_sge = r.length == 0 ? 0 : r.length > first ? 2 : 1;
  if (signaled) w.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  errno = ibv_post_send(id_->qp, &w, &bad);
  if (errno != 0) return false;
  if (posted_ == done_) progressed();
  requests_[posted_++ % kRequests] = r;
  return true;
}

bool ClientLink::post_message(uint64_t random) {
  const Pattern p(link_, MessageKind::to_server, messages_);
  const size_t n = p.length(MessageKind::to_server);
  std::byte* const from = at(kSends + messages_ % kWindow * kMostBytes);
  p.fill(from, n);
  ibv_send_wr w{};
  w.imm_data = htonl(static_cast<uint32_t>(messages_));
  switch (random % 4) {
    case 0:
      w.opcode = IBV_WR_SEND;
      break;
    case 1:
      w.opcode = IBV_WR_SEND_WITH_IMM;
      break;
    default:
      w.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      w.wr.rdma = {welcome_.address + Layout::message(messages_), welcome_.key};
      break;
  }
  if (n <= 64 && random & 4) w.send_flags |= IBV_SEND_INLINE;
  if (random & 8) w.send_flags |= IBV_SEND_SOLICITED;
  const Kind kind = w.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? Kind::write_immediate : Kind::send;
  if (!post({kind, messages_, n}, w, from, (random & 0x30) != 0)) return false;
  ++messages_;
  return true;
}

// The Read is behind the Write, so it finds what the Write left.
bool ClientLink::post_write_and_read() {
  const Pattern p(link_, MessageKind::written, writes_);
  const size_t n = p.length(MessageKind::written);
  const size_t area = writes_ % Layout::kAreas * kMostBytes;
  p.fill(at(kWrites + area), n);
  std::memset(at(kReads + area), 0, n);
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_WRITE;
  w.wr.rdma = {welcome_.address + Layout::area(writes_), welcome_.key};
  if (!post({Kind::write, writes_, n}, w, at(kWrites + area), false)) return false;
  w.opcode = IBV_WR_RDMA_READ;
  if (!post({Kind::read, writes_, n}, w, at(kReads + area), true)) return false;
  ++writes_;
  return true;
}

bool ClientLink::post_atomic(bool add) {
  ibv_send_wr w{};
  w.opcode = add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
  uint64_t& value = add ? adds_ : swaps_;
  w.wr.atomic = {.remote_addr = welcome_.address + (add ? Layout::kAddCell : Layout::kSwapCell),
                 .compare_add = add ? 1 : value,
                 .swap = value + 1,
                 .rkey = welcome_.key};
  if (!post({add ? Kind::add : Kind::swap, value, 8}, w, at(result_of(posted_)), true))
    return false;
  ++value;
  return true;
}

void ClientLink::post_wrong_key() {
  poisoned_ = true;
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_WRITE;
  w.wr.rdma = {welcome_.address, welcome_.key ^ 0xff00};
  if (post({Kind::wrong, 0, 16}, w, at(kWrites), true)) me_->wrong_keys.add();
}

bool ClientLink::post_marker() {
  ibv_send_wr w{};
  w.opcode = IBV_WR_RDMA_WRITE;
  w.wr.rdma = {welcome_.address, welcome_.key};
  return post({Kind::marker, 0, 0}, w, at(kWrites), true);
}

bool ClientLink::post_some(uint64_t random) {
  for (; random != 0; random >>= 10) {
    if (posted_ - done_ > kRequests - 5) return true;
    const uint64_t what = random % 16;
    bool good = true;
    if (what < 9) {
      if (messages_ - acked_ < kWindow && messages_ - messages_done_ < kWindow) {
        good = post_message(random >> 4);
      }
    } else if (what < 13) {
      if (writes_ - writes_read_ < Layout::kAreas) good = post_write_and_read();
    } else {
      good = post_atomic(what < 15);
    }
    if (!good) return false;
  }
  return true;
}

// --- completions

void ClientLink::completed(const ibv_wc& wc, const WorkId& id) {
  if (ledger_ == nullptr) {
    // It broke before this program has looked at the event that it stands.
    if (id.receive) --receives_;
    broken_ = true;
    return;
  }
  progressed();
  if (id.receive) {
    received(wc, id.number);
    return;
  }
  // Those before it that were not to be reported are complete with it.
  for (;;) {
    if (done_ == posted_) {
      ledger_->complain("link %u: request %u completed twice, or was never posted", link_,
                        id.number);
      return;
    }
    const uint64_t request = done_++;
    const Request& r = requests_[request % kRequests];
    const bool last = (request & WorkId::kNumbers) == id.number;
    if (!last || wc.status == IBV_WC_SUCCESS) succeeded(r, request);
    if (last) break;
  }
  if (wc.status == IBV_WC_SUCCESS) return;
  // What may end a connection whose peer is killed or without memory. A server that has none for a
  // Reply closes, is taken for one that knows no extension, and then there are no immediates.
  const bool usual = wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_RETRY_EXC_ERR ||
                     wc.status == IBV_WC_REM_OP_ERR ||
                     (wc.status == IBV_WC_LOC_QP_OP_ERR && ledger_->want.load()) ||
                     (poisoned_ && wc.status == IBV_WC_REM_ACCESS_ERR);
  if (!usual) {
    ledger_->complain("link %u: a request completed with '%s'", link_,
                      ibv_wc_status_str(wc.status));
  }
  broken_ = true;
}

void ClientLink::succeeded(const Request& r, uint64_t request) {
  switch (r.kind) {
    case Kind::send:
    case Kind::write_immediate:
      ++messages_done_;
      half().sent.add();
      (r.kind == Kind::send ? me_->sends : me_->writes_with_immediate).add();
      break;
    case Kind::write:
      me_->writes.add();
      break;
    case Kind::read: {
      me_->reads.add();
      ++writes_read_;
      const size_t n = Pattern(link_, MessageKind::written, r.number)
                           .check(at(kReads + r.number % Layout::kAreas * kMostBytes), r.length);
      if (n != r.length) {
        ledger_->complain("link %u: Write %lu and Read of %zu bytes: byte %zu is wrong", link_,
                          r.number, r.length, n);
      }
      me_->bytes_verified.add(r.length);
      break;
    }
    case Kind::add:
      check_atomic(r, request, "Fetch and Add");
      break;
    case Kind::swap:
      check_atomic(r, request, "Compare and Swap");
      break;
    case Kind::wrong:
      ledger_->complain("link %u: a Write with a wrong key succeeded", link_);
      break;
    case Kind::marker:
      break;
  }
}

void ClientLink::check_atomic(const Request& r, uint64_t request, const char* what) {
  uint64_t found = 0;
  std::memcpy(&found, at(result_of(request)), sizeof found);
  if (found != r.number) {
    ledger_->complain("link %u: %s found %lu and not %lu", link_, what, found, r.number);
  }
  me_->atomics.add();
  me_->bytes_verified.add(sizeof found);
}

void ClientLink::received(const ibv_wc& wc, uint32_t slot) {
  --receives_;
  if (wc.status == IBV_WC_WR_FLUSH_ERR) {
    broken_ = true;
    return;
  }
  if (wc.status != IBV_WC_SUCCESS) {
    ledger_->complain("link %u: a receive of the client completed with '%s'", link_,
                      ibv_wc_status_str(wc.status));
    broken_ = true;
    return;
  }
  const Pattern p(link_, MessageKind::to_client, replies_);
  const size_t n = p.length(MessageKind::to_client);
  const std::byte* const from = at(kReceived + slot * kMostBytes);
  uint64_t count = 0;
  std::memcpy(&count, from, sizeof count);
  if (wc.byte_len != n || p.check(from, n, sizeof count) != n || count < acked_ ||
      count > messages_) {
    ledger_->complain(
        "link %u: reply %lu is wrong: %u bytes and not %zu, first wrong %zu, count %lu "
        "of %lu after %lu",
        link_, replies_, wc.byte_len, n, p.check(from, n, sizeof count), count, messages_, acked_);
  }
  ++replies_;
  acked_ = count;
  half().received.add();
  me_->messages_received.add();
  me_->bytes_verified.add(n);
  if (!broken_) post_receive(slot);
}

}  // namespace weft::soak
