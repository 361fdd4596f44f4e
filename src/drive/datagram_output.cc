// Trains out: whose turn it is, and what the kernel makes of it.

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "drive/datagram_driver.h"

namespace weft::drive {
namespace {

// Bytes that go out in one visit before other sockets have their turn.
constexpr size_t kSendBudget = 2 * 1024 * 1024;

// UDP payloads that common paths carry: loopback, jumbo frames, Ethernet over IPv4 and IPv6, and
// what every path of IPv6 and of IPv4 does (RFC 8200 section 5, RFC 791 section 3.2).
constexpr std::array<size_t, 7> kSteps = {16'332, 8972, 8952, 1472, 1452, 1232, 548};

// Of `pieces` what is behind the first `skip` bytes.
void cut_front(std::span<const IoVec> pieces, size_t skip, std::vector<IoVec>& out) {
  out.clear();
  for (const IoVec& v : pieces) {
    const size_t gone = std::min(skip, v.iov_len);
    skip -= gone;
    if (gone == v.iov_len) continue;
    out.push_back({static_cast<std::byte*>(v.iov_base) + gone, v.iov_len - gone});
  }
}

}  // namespace

// Those whose turn was too early may have had to wait long enough.
void DatagramDriver::call_paced(Token& token) {
  if (paced_until_.is_never() || token.now() < paced_until_) return;
  paced_until_ = Time::never();
  while (DatagramSender* s = paced_.pop_front()) sending_.push_back(*s);
}

void DatagramDriver::send(Token& token) {
  call_paced(token);
  if (sending_.empty() && train_.empty() && !port_.ready()) return;  // as after most receives
  size_t sent = 0;
  while (!blocked_ && open_) {
    if (sent >= kSendBudget) {
      // The others have their turn; epoll says at once that there is room.
      blocked_ = true;
      token.runtime().more_to_send(token, *this);
      return;
    }
    if (train_.empty() && !next_train(token)) return;
    sent += train_.bytes();
    push_train(token);
  }
}

// The port's own first: they are few, and somebody waits for each. Then one train of each sender
// by turns. False when nobody has anything to say.
bool DatagramDriver::next_train(Token& token) {
  sent_ = 0;
  filler_ = nullptr;
  fragments_ = false;
  filling_ = true;
  while (train_.empty() && port_.ready()) port_.fill(train_);
  while (train_.empty()) {
    DatagramSender* s = sending_.pop_front();
    if (s == nullptr) break;
    settling_.push_back(*s);
    if (s->pacer_.waits() && token.now() < s->pacer_.next() && !s->urgent(token)) {
      paced_until_ = std::min(paced_until_, s->pacer_.next());
      paced_.push_back(*s);
      continue;
    }
    train_.limit(s->pacer_.most());
    current_ = s;
    // An empty train is an answer, too: a request was at fault, a probe was over.
    for (int i = 0; i < 2 && train_.empty() && s->ready(token); ++i) s->fill(token, train_);
    current_ = nullptr;
    if (train_.empty()) {
      train_.clear();
      continue;
    }
    filler_ = s;
    fragments_ = s->fragments();
    sending_.push_back(*s);
  }
  filling_ = false;
  return !train_.empty();
}

void DatagramDriver::push_train(Token& token) {
  if (train_.lost()) return source_lost(token);
  const wdp::Path& path = train_.path();
  const uint32_t scope = interface_of(path.from, path.to.address);
  const port::Address to =
      properties_.ipv6 ? port::Address::from_gid_as_ipv6(path.to.address, path.to.port, scope)
                       : port::Address::from_gid(path.to.address, path.to.port, scope);
  std::span<const IoVec> pieces = train_.pieces();
  if (sent_ > 0) {
    cut_front(pieces, sent_, rest_);
    pieces = rest_;
  }
  auto& counters = token.runtime().counters();
  const auto r = socket_->send({.to = &to,
                                .from = path.from,
                                .interface = scope,
                                .tos = path.traffic_class,
                                .hop_limit = path.hop_limit,
                                .fragments = fragments_,
                                .segment = train_.segment_size(),
                                .pieces = pieces},
                               filler_ != nullptr ? filler_->segmentation_ : segmentation_);
  counters.send_calls.add();
  sent_ += r.bytes;
  if (r.bytes > 0) {
    spoke_ = true;
    counters.datagrams_sent.add((r.bytes + train_.segment_size() - 1) / train_.segment_size());
  }
  if (sent_ >= train_.bytes()) {
    train_gone(token, true);
  } else if (r.would_block) {
    // spec/wdp 2.7: ENOBUFS/EAGAIN: wait for writability (do not drop).
    blocked_ = true;
    counters.sends_cut.add();
    token.runtime().want_write(token, *this, true);
  } else if (r.too_big) {
    refused_as_too_big(token, std::min(train_.segment_size(), train_.bytes() - sent_));
  } else if (r.error == EFAULT) {
    // Copied here the bytes are there after all, once a handler of the program's has made them
    // accessible; or they are gone.
    if (!train_.detach()) source_lost(token);
  } else if (r.error != 0) {
    // No route, no permission: lost on its way, as anywhere further on. Of what goes one by one the
    // next datagram may fare better.
    const auto& segmentation = filler_ != nullptr ? filler_->segmentation_ : segmentation_;
    const size_t gone = segmentation.refused() ? train_.segment_size() : train_.bytes() - sent_;
    counters.datagrams_unsent.add((gone + train_.segment_size() - 1) / train_.segment_size());
    sent_ += gone;
    if (sent_ >= train_.bytes()) train_gone(token, true);
  }
}

// The program has unmapped memory that is registered (docs/design/06).
void DatagramDriver::source_lost(Token& token) {
  DatagramSender* s = filler_;
  train_gone(token, false);
  if (s != nullptr) s->own_memory_lost(token);
}

// `sent`: its requests are complete.
void DatagramDriver::train_gone(Token& token, bool sent) {
  DatagramSender* s = std::exchange(filler_, nullptr);
  if (s != nullptr && s->pacer_.paces(train_.path().rate)) {
    s->pacer_.sent(train_.bytes(), token.now(), train_.path().rate);
  }
  train_.clear();
  sent_ = 0;
  if (s == nullptr || !sent) return;
  current_ = s;
  s->llp_took_all(token);
  current_ = nullptr;
}

// The message is lost, later ones are cut smaller.
void DatagramDriver::refused_as_too_big(Token& token, size_t size) {
  token.runtime().counters().datagrams_too_big.add();
  const auto* step = std::find_if(kSteps.begin(), kSteps.end(), [&](size_t s) { return s < size; });
  if (filler_ != nullptr && step != kSteps.end()) {
    current_ = filler_;
    filler_->path_carries(token, *step);
    current_ = nullptr;
  }
  train_gone(token, true);
}

}  // namespace weft::drive
