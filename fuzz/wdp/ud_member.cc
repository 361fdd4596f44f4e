#include "fuzz/wdp/ud_member.h"

#include "wire/grh.h"

namespace weft::fuzz {

using wire::Grh;
using wire::WdpUd;
using work::Receive;
using work::Status;

// --- the program

void UdMember::post_receive(size_t size) {
  if (receives() > 50) return;
  Area& a = rooms_.emplace_back(size);
  const auto address = reinterpret_cast<uintptr_t>(a.data());
  const Stag key{kReceiveKeys + static_cast<uint32_t>(posted_)};
  host_.regions[key] = {a.data(), address, size, 1};
  // In two pieces, cut in the middle of the GRH where it is long enough.
  const auto cut = static_cast<uint32_t>(std::min<size_t>(size, 30));
  host_.post_receive(
      posted_++, {{address, cut, key}, {address + cut, static_cast<uint32_t>(size) - cut, key}});
}

void UdMember::post_send(uint8_t bits, size_t size) {
  if (requests() > 50) return;
  Area& a = sources_.emplace_back(size);
  const auto address = reinterpret_cast<uintptr_t>(a.data());
  const Stag key{kRequestKeys + static_cast<uint32_t>(posted_sends_)};
  if ((bits & 3) == 0) host_.regions[key] = {a.data(), address, size, 1};
  host_.post(
      {.wr_id = posted_sends_++,
       .operation = (bits & 4) != 0 ? work::Operation::send_immediate : work::Operation::send,
       .signaled = true},
      {{address, static_cast<uint32_t>(size), key}});
}

void UdMember::hold(bool on) {
  held_ = on;
  queue_.hold(on);
}

void UdMember::fill() {
  if (train_waits()) return;
  const bool stands = held_ || failed_;
  queue_.fill(train_, {});
  FUZZ_CHECK(!stands || train_.empty());
  train_.each_datagram([](std::span<const IoVec> pieces) {
    std::vector<std::byte> d;
    for (const IoVec& v : pieces) {
      const auto* p = static_cast<const std::byte*>(v.iov_base);
      d.insert(d.end(), p, p + v.iov_len);
    }
    FUZZ_CHECK(WdpUd::parse(d).ok());
  });
}

void UdMember::send() {
  fill();
  train_.clear();
  queue_.llp_took_all({});
}

void UdMember::own_memory_lost() {
  fill();
  if (!train_waits()) return;
  train_.clear();
  queue_.own_memory_lost({});
}

void UdMember::resume() {
  if (!failed_) return;
  host_.flush();
  done_sends_ = posted_sends_;
  failed_ = false;
  queue_.resume(0);
}

void UdMember::flush() {
  host_.receives.clear();
  done_ = posted_;
}

// --- what must hold

void UdMember::receive_done(const Receive& r, Status s, const wdp::UdArrival& a) {
  // Any order would be a mistake but that of posting.
  FUZZ_CHECK(r.wr_id >= done_);
  done_ = r.wr_id + 1;
  if (s != Status::success) return;
  FUZZ_CHECK(a.length >= Grh::kSize && a.length <= r.length);
  std::vector<std::byte> got;
  for (uint32_t i = 0; i < r.segments; ++i) {
    const auto* p = reinterpret_cast<const std::byte*>(r.segment[i].address);
    got.insert(got.end(), p, p + r.segment[i].length);
  }
  const Grh grh = Grh::parse(got.data());
  FUZZ_CHECK(grh.payload_length == a.length - Grh::kSize);
  FUZZ_CHECK(grh.source == said_.how.from.address && a.from == said_.how.from);
  FUZZ_CHECK(grh.destination == said_.how.to);
  const Bytes payload = Bytes{said_.bytes}.subspan(WdpUd::kSize);
  FUZZ_CHECK(same(payload, Bytes{got}.subspan(Grh::kSize, a.length - Grh::kSize)));
  FUZZ_CHECK(load_be<uint32_t>(said_.bytes.data() + 4) == queue_.q_key().value());
  // spec/wdp-ud 5.2: its own comes back, unless it is blocked.
  FUZZ_CHECK(!(blocks_own_ && said_.to_group && said_.how.from_own_address && a.source == qpn_));
}

void UdMember::check() {
  uint64_t i = 0;
  for (const Area& a : rooms_) {
    FUZZ_CHECK(a.guards_intact());
    if (i++ >= done_) FUZZ_CHECK(a.untouched());
  }
  for (const Area& a : sources_) FUZZ_CHECK(a.guards_intact() && a.untouched());
  // Between calls no receive is the queue pair's own.
  FUZZ_CHECK(host_.receives.size() == receives());
}

}  // namespace weft::fuzz
