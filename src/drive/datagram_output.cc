#include "drive/datagram_output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

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

void DatagramOutput::set_interface(const Gid& local, uint32_t interface) {
  if (!local.is_ipv4() && interface != 0) interfaces_[local] = interface;
}

uint32_t DatagramOutput::interface_of(const Gid& local, const Gid& remote) const {
  const bool group = !remote.is_ipv4() && remote.raw[0] == 0xff;
  if (!local.is_link_local() && !group) return 0;
  const auto it = interfaces_.find(local);
  return it != interfaces_.end() ? it->second : 0;
}

void DatagramOutput::remove(DatagramSender& sender) {
  detach_memory(sender);
  if (filler_ == &sender) filler_ = nullptr;
  sender.ListHook<SendingTag>::unlink();
  sender.ListHook<PacedTag>::unlink();
}

// The memory that it refers to is the program's again. Where there is none for a copy of it the
// train is lost, as datagrams are.
void DatagramOutput::detach_memory() {
  try {
    if (train_) (void)train_->detach();
  } catch (const std::bad_alloc&) {
    drop_train();
  }
}

void DatagramOutput::abandon_filling() {
  if (std::exchange(filling_, false)) drop_train();
}

void DatagramOutput::drop_train() {
  train_->clear();
  filler_ = nullptr;
  sent_ = 0;
}

// Those whose turn was too early may have had to wait long enough.
void DatagramOutput::call_paced(Token& token) {
  if (paced_until_.is_never() || token.now() < paced_until_) return;
  paced_until_ = Time::never();
  while (DatagramSender* s = paced_.pop_front()) sending_.push_back(*s);
}

void DatagramOutput::send(Token& token, engine::EventHandler& driver, SettlingList& asked) {
  call_paced(token);
  if (sending_.empty() && !train_ && !own_.ready()) return;  // as after most receives
  if (!train_) train_ = trains_.take();
  send_trains(token, driver, asked);
  if (train_->empty()) trains_.give(std::move(train_));
}

void DatagramOutput::send_trains(Token& token, engine::EventHandler& driver, SettlingList& asked) {
  size_t sent = 0;
  while (!blocked_) {
    if (sent >= kSendBudget) {
      // The others have their turn; epoll says at once that there is room.
      blocked_ = true;
      token.runtime().more_to_send(token, driver);
      return;
    }
    if (train_->empty() && !next_train(token, asked)) return;
    sent += train_->bytes();
    push_train(token, driver);
  }
}

// WDP's own first: they are few, and somebody waits for each. Then one train of each sender
// by turns. False when nobody has anything to say.
bool DatagramOutput::next_train(Token& token, SettlingList& asked) {
  sent_ = 0;
  filler_ = nullptr;
  fragments_ = false;
  filling_ = true;
  while (train_->empty() && own_.ready()) own_.fill(*train_);
  while (train_->empty()) {
    DatagramSender* s = sending_.pop_front();
    if (s == nullptr) break;
    asked.push_back(*s);
    if (s->pacer_.waits() && token.now() < s->pacer_.next() &&
        !(s->source_ != nullptr && s->source_->urgent(token.now()))) {
      paced_until_ = std::min(paced_until_, s->pacer_.next());
      paced_.push_back(*s);
      continue;
    }
    train_->limit(s->pacer_.most());
    // An empty train is an answer, too: a request was at fault, a probe was over.
    current_.call(*s, [&] {
      wdp::TrainSource* const source = s->source_;
      if (source == nullptr) return;
      for (int i = 0; i < 2 && train_->empty() && source->ready(token.now()); ++i) {
        source->fill(*train_, token.now());
      }
    });
    if (train_->empty()) {
      train_->clear();
      continue;
    }
    filler_ = s;
    fragments_ = s->fragments_ || train_->fragments();
    sending_.push_back(*s);
  }
  filling_ = false;
  return !train_->empty();
}

void DatagramOutput::push_train(Token& token, engine::EventHandler& driver) {
  // One that has lost its memory may end there, or have nothing before it.
  if (sent_ >= train_->bytes()) return train_gone(token);
  const wdp::Path& path = train_->path();
  const uint32_t scope = interface_of(path.from, path.to.address);
  const port::Address to =
      properties_.ipv6 ? port::Address::from_gid_as_ipv6(path.to.address, path.to.port, scope)
                       : port::Address::from_gid(path.to.address, path.to.port, scope);
  std::span<const IoVec> pieces = train_->pieces();
  if (sent_ > 0) {
    cut_front(pieces, sent_, rest_);
    pieces = rest_;
  }
  auto& counters = token.runtime().counters();
  const auto r = socket_.send({.to = &to,
                               .from = path.from,
                               .interface = scope,
                               .tos = path.traffic_class,
                               .hop_limit = path.hop_limit,
                               .fragments = fragments_,
                               .segment = train_->segment_size(),
                               .pieces = pieces},
                              filler_ != nullptr ? filler_->segmentation_ : segmentation_);
  counters.send_calls.add();
  sent_ += r.bytes;
  if (r.bytes > 0) {
    spoke_ = true;
    counters.datagrams_sent.add((r.bytes + train_->segment_size() - 1) / train_->segment_size());
  }
  if (sent_ >= train_->bytes()) {
    train_gone(token);
  } else if (r.would_block) {
    // spec/wdp 2.7: ENOBUFS/EAGAIN: wait for writability (do not drop).
    blocked_ = true;
    counters.sends_cut.add();
    token.runtime().want_write(token, driver, true);
  } else if (r.too_big) {
    refused_as_too_big(token, std::min(train_->segment_size(), train_->bytes() - sent_));
  } else if (r.error == EFAULT) {
    // Copied here the bytes are there after all, once a handler of the program's has made them
    // accessible; or the train ends before them.
    (void)train_->detach();
  } else if (r.error != 0) {
    // No route, no permission: lost on its way, as anywhere further on. Of what goes one by one the
    // next datagram may fare better.
    const auto& segmentation = filler_ != nullptr ? filler_->segmentation_ : segmentation_;
    const size_t gone = segmentation.refused() ? train_->segment_size() : train_->bytes() - sent_;
    counters.datagrams_unsent.add((gone + train_->segment_size() - 1) / train_->segment_size());
    sent_ += gone;
    if (sent_ >= train_->bytes()) train_gone(token);
  }
}

// Its requests are complete, up to one whose memory the program has unmapped (docs/design/06).
void DatagramOutput::train_gone(Token& token) {
  DatagramSender* s = std::exchange(filler_, nullptr);
  if (s != nullptr && s->pacer_.paces(train_->path().rate)) {
    s->pacer_.sent(train_->bytes(), token.now(), train_->path().rate);
  }
  const bool lost = train_->lost();
  train_->clear();
  sent_ = 0;
  if (s == nullptr) return;
  if (lost) return s->source_->own_memory_lost(token.now());
  current_.call(*s, [&] { s->source_->llp_took_all(token.now()); });
}

// The message is lost, later ones are cut smaller.
void DatagramOutput::refused_as_too_big(Token& token, size_t size) {
  token.runtime().counters().datagrams_too_big.add();
  const auto* step = std::find_if(kSteps.begin(), kSteps.end(), [&](size_t s) { return s < size; });
  if (filler_ != nullptr && step != kSteps.end()) {
    current_.call(*filler_, [&] { filler_->source_->path_carries(*step); });
  }
  train_gone(token);
}

}  // namespace weft::drive
