// What must hold of a UC session, whatever was said to it: of what it says, of what it completes
// and of the program's memory.

#include "fuzz/wdp/uc_peer.h"
#include "wire/wdp_crc.h"

namespace weft::fuzz {

void UcPeer::listen(size_t trains) {
  for (size_t i = 0; i < trains && session_->ready(now_); ++i) {
    wdp::Train t;
    // A request may be found at fault behind its first segments.
    was_stopped_ = stopped();
    session_->fill(t, now_);
    FUZZ_CHECK(t.datagrams() <= wdp::Train::kMostDatagrams);
    t.each_datagram([&](std::span<const IoVec> pieces) {
      std::vector<std::byte> d;
      for (const IoVec& v : pieces) {
        const auto* p = static_cast<const std::byte*>(v.iov_base);
        d.insert(d.end(), p, p + v.iov_len);
      }
      FUZZ_CHECK(d.size() <= t.segment_size());
      judge(d);
    });
    session_->llp_took_all(now_);
  }
}

void UcPeer::hear_control() {
  while (session_->urgent(now_)) listen(1);
}

// All that the session says is right, whatever was said to it.
void UcPeer::judge(Bytes datagram) {
  const auto common = WdpCommon::parse(datagram);
  FUZZ_CHECK(common.ok());
  FUZZ_CHECK(common->token == session_->parameters().peer_token && common->didx == 5 &&
             common->sidx == 9);
  if (common->wdp_class == WdpClass::ctl) {
    const auto c = WdpCtl::parse(datagram);
    FUZZ_CHECK(c.ok());
    FUZZ_CHECK(!session_->parameters().is_static);
    if (c->type == wire::CtlType::ka) {
      asked_ = c->xid.value();
      ++questions_;
    }
    if (c->type == wire::CtlType::probe) {
      FUZZ_CHECK(datagram.size() <= session_->parameters().max_payload);
      if (datagram.size() > wdp::PathProbe::kSmall) probe_ = {datagram.size(), c->xid};
    }
    return;
  }
  const auto d = WdpData::parse(datagram);
  FUZZ_CHECK(d.ok());
  FUZZ_CHECK(d->flags.crc == crc_ && (!crc_ || wire::wdp_crc_matches(datagram)));
  FUZZ_CHECK(!last_psn_ || d->psn == next(*last_psn_));
  last_psn_ = d->psn;
  // Nothing but CTL goes to who has said goodbye; a send queue that is stopped sends nothing, and
  // what the peer asked for is answered all the same.
  FUZZ_CHECK(!goodbye_);
  FUZZ_CHECK(!was_stopped_ || d->opcode == Opcode::read_response);
  // What is known of the path holds for each message that is begun. Read Requests are small, and
  // the STRIDE of an answer under way stays.
  const bool of_read = d->opcode == Opcode::read_request || d->opcode == Opcode::read_response;
  FUZZ_CHECK(of_read || datagram.size() <= session_->parameters().max_payload);
  if (d->opcode == Opcode::read_request) heard_.push_back({d->read_id(), d->mlen});
  if (d->opcode == Opcode::read_response) {
    // Nothing but what the peer may read.
    const Bytes payload = datagram.subspan(WdpData::kSize);
    const auto inside = [&](const Area& a) {
      const Bytes all = a.bytes();
      return std::search(all.begin(), all.end(), payload.begin(), payload.end()) != all.end();
    };
    FUZZ_CHECK(payload.empty() || inside(readable_) || inside(writable_));
  }
}

void UcPeer::received(const Receive& r, Status status, const Arrival& a) {
  // In the order of posting, once.
  FUZZ_CHECK(r.wr_id == done_receives_);
  ++done_receives_;
  if (status != Status::success) return;
  const Area& room = *std::next(receives_.begin(), static_cast<ptrdiff_t>(r.wr_id));
  if (a.write_with_immediate) FUZZ_CHECK(a.has_immediate);
  const auto first_word = [&] { return load_be<uint32_t>(room.bytes().data()); };
  if (!a.has_immediate && a.length < 4) return;  // nobody knows which one it was
  const uint32_t msn = a.has_immediate ? a.immediate : first_word();
  // No completion before all bytes are there.
  const auto& said = said_[msn];
  for (uint32_t i = 0; i < a.length; ++i) FUZZ_CHECK(said.contains(i));
  if (a.write_with_immediate) return;
  FUZZ_CHECK(a.length <= room.size());
  for (uint32_t i = 0; i < a.length; ++i) FUZZ_CHECK(room.bytes()[i] == byte_of(msn, i));
}

void UcPeer::sent(const SendWqe& w) {
  FUZZ_CHECK(w.wr_id == done_);
  if (w.operation == Operation::read) freeze_request(done_);
  ++done_;
}

// What belongs to the program again stays as it is.
void UcPeer::freeze(const Area& a) {
  frozen_.push_back({&a, {a.bytes().begin(), a.bytes().end()}});
}

void UcPeer::freeze_request(uint64_t request) {
  freeze(*std::next(sinks_.begin(), static_cast<ptrdiff_t>(request)));
}

// The program has all requests back, without completions by the session.
void UcPeer::account_for_flushed() {
  auto& queue = host_.host.send_queue();
  if (queue.head() != queue.tail() || done_ == posted_) return;
  FUZZ_CHECK(stopped() || host_.host.end);
  while (done_ < posted_) freeze_request(done_++);
}

// Behind the end nothing of the peer's goes anywhere.
void UcPeer::freeze_all() {
  freeze(writable_);
  for (const Area& a : receives_) freeze(a);
  for (uint64_t i = done_; i < posted_; ++i) freeze_request(i);
  all_frozen_ = true;
}

// A path is found to carry less where the kernel says so, or where only small probes come through,
// in as many rounds (path_probe.h). It never widens.
void UcPeer::check_path() {
  const size_t carries = session_->parameters().max_payload;
  if (carries == carried_) return;
  FUZZ_CHECK(carries < carried_);
  FUZZ_CHECK(carries == kernel_carries_ || small_answers_ >= wdp::PathProbe::kTries);
  carried_ = carries;
  small_answers_ = 0;
}

void UcPeer::check() {
  for (const Area* a : {&writable_, &readable_, &foreign_}) FUZZ_CHECK(a->guards_intact());
  FUZZ_CHECK(readable_.untouched() && foreign_.untouched());
  for (const Area& a : receives_) FUZZ_CHECK(a.guards_intact());
  for (const Area& a : sinks_) FUZZ_CHECK(a.guards_intact());
  // Receives that nobody took are as they were; the next one may be half full.
  size_t i = 0;
  for (const Area& a : receives_) {
    if (i++ > done_receives_) FUZZ_CHECK(a.untouched());
  }
  account_for_flushed();
  if (session_->ended() && !all_frozen_) freeze_all();
  for (const auto& f : frozen_) FUZZ_CHECK(same(f.area->bytes(), f.bytes));
  check_path();
  FUZZ_CHECK(session_->deadline().is_never() ||
             session_->deadline() > now_ - std::chrono::hours{1});
}

// The program leaves, time passes, and nothing is left to do.
void UcPeer::finish() {
  if (!session_->ended()) abort();
  for (int i = 0; i < 40 && !session_->gone(); ++i) {
    listen(100);
    later(std::chrono::milliseconds{100});
  }
  FUZZ_CHECK(session_->gone());
  session_->give_back_receive();
  FUZZ_CHECK(host_.host.receives.size() == posted_receives_ - done_receives_);
  check();
}

}  // namespace weft::fuzz
