// Datagrams in: into a buffer, or straight to their places, and on to whom they are for.

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/guarded.h"
#include "drive/datagram_driver.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using port::DatagramPort;

// Bytes that come in before the other sockets have their turn.
constexpr size_t kBudget = size_t{256} << 10;
// Datagrams above this size that come alone, as on loopback, are worth two system calls: they go
// straight to their places. Those of trains are not (design/17).
constexpr size_t kLarge = 16'000;
// More is no answer that its asker waits for with nothing else under way.
constexpr size_t kAnswer = 4096;

wdp::Endpoint sender_of(const DatagramPort::Received& r) {
  return {.address = r.from.gid(), .port = r.from.port()};
}

// `bytes` came uncalled for in one datagram or train, into a socket with such a buffer.
void count_unsolicited(Token& token, size_t receive_buffer, size_t bytes) {
  constexpr size_t kEach = 768;  // the kernel's own, of a small one
  token.runtime().unsolicited(token, bytes + kEach, receive_buffer);
}

bool is_large(const DatagramPort::Received& r) {
  return r.bytes >= kLarge && r.segment == r.bytes;
}

// After the kernel could not: a handler of the program's may have made them accessible by now, for
// the next datagram; this one is lost.
bool reachable(const PieceList& places) {
  constexpr uintptr_t kPage = 4096;  // the least of any machine
  for (const IoVec& v : places.pieces()) {
    const auto begin = reinterpret_cast<uintptr_t>(v.iov_base);
    for (uintptr_t at = begin; at < begin + v.iov_len; at = (at / kPage + 1) * kPage) {
      // A word of this page: written as it is.
      auto* word = reinterpret_cast<uint64_t*>(at / sizeof(uint64_t) * sizeof(uint64_t));
      uint64_t zero = 0;
      if (compare_exchange_guarded(word, zero, 0) == Exchange::unreachable) return false;
    }
  }
  return true;
}

}  // namespace

// Returns how often something came; `calls`: of the system, at most.
size_t DatagramDriver::receive(Token& token, size_t calls) {
  if (pause_.lasts(token.now())) return 0;
  Visit visit{*this, token};
  small_ = 0;
  size_t moved = 0;
  size_t came = 0;
  for (; calls > 0 && moved < kBudget && !pause_.begun; --calls) {
    const auto bytes = receive_one(token, visit);
    if (!bytes) {
      token.runtime().counters().receives_empty.add();
      token.runtime().received(token, moved - std::min(moved, small_));
      return came;
    }
    if (*bytes == 0) continue;
    // A small datagram behind one of ours is an answer, and the next will be.
    if (!output_.spoke_since() || *bytes > kAnswer) {
      count_unsolicited(token, properties_.receive_buffer, *bytes);
    }
    ++came;
    moved += *bytes;
  }
  token.runtime().received(token, moved - std::min(moved, small_));
  if ((calls == 0 && came <= 1) || pause_.begun) return came;
  token.runtime().again(token, *this);
  return came;
}

// Nothing: there was none. 0: what came has no bytes, or it was only the news that some datagram of
// ours could not be delivered.
std::optional<size_t> DatagramDriver::receive_one(Token& token, Visit& visit) {
  auto& counters = token.runtime().counters();
  std::array<std::byte, wire::WdpData::kLook> front;
  if (const auto next = look_ahead_.pays() ? socket_->look(front) : std::nullopt) {
    counters.receive_calls.add();
    if (next->would_block) return {};
    if (next->error != 0) return 0;
    PieceList places;
    const Bytes seen = Bytes{front}.first(std::min(next->bytes, front.size()));
    const bool alone = next->segment == next->bytes;
    auto* const session =
        alone ? wdp_socket_.direct(seen, next->bytes, sender_of(*next), places) : nullptr;
    if (session != nullptr) return receive_in_place(token, *session, places, seen);
    if (is_large(*next)) look_ahead_.in_vain();
  }
  // Afresh each time, for what was delivered may have used it.
  const MutableBytes bounce = token.runtime().bounce(token);
  const auto r = socket_->receive(bounce);
  counters.receive_calls.add();
  if (r.would_block) return {};
  if (r.error != 0) return 0;
  look_ahead_.came(is_large(r));
  counters.bytes_received_copied.add(r.bytes);
  deliver(token, visit, bounce.first(std::min(r.bytes, bounce.size())), r);
  return r.bytes;
}

// The datagram that was looked at, for nobody else reads the socket.
size_t DatagramDriver::receive_in_place(Token& token, wdp::UcSession& session,
                                        const PieceList& places, Bytes seen) {
  std::array<std::byte, wire::WdpData::kSize> header;
  std::array<IoVec, 1 + PieceList::kMost> pieces;
  pieces[0] = {header.data(), header.size()};
  std::copy(places.pieces().begin(), places.pieces().end(), pieces.begin() + 1);
  const auto r = socket_->receive_into({pieces.data(), 1 + places.pieces().size()});
  auto& counters = token.runtime().counters();
  counters.receive_calls.add();
  if (r.error == EFAULT && !reachable(places)) {
    // The program has unmapped its region (docs/design/06).
    session.direct_unreachable(token.now());
    current_.set(nullptr);
    return 0;
  }
  if (r.would_block || r.error != 0) return 0;
  if (r.bytes != header.size() + places.bytes() ||
      !std::equal(header.begin(), header.end(), seen.begin())) {
    return 0;
  }
  look_ahead_.came(is_large(r));
  look_ahead_.in_place();
  overruns_.poll_soon(token.now());
  counters.datagrams_received.add();
  counters.bytes_received_in_place.add(places.bytes());
  session.direct_received(token.now());
  current_.set(nullptr);
  return r.bytes;
}

// What WDP wants to know of a datagram besides its bytes.
wdp::UdReception DatagramDriver::reception_of(Token& token, const DatagramPort::Received& r) {
  wdp::UdReception how{.from = sender_of(r),
                       .to = r.to,
                       .traffic_class = r.tos,
                       .hop_limit = r.hop_limit != 0 ? r.hop_limit : uint8_t{64}};
  if (group_) {
    how.to = *group_;
    how.from_own_address = owner_ != nullptr && owner_->group_heard(token, *this, how.from.address);
  }
  return how;
}

void DatagramDriver::deliver(Token& token, Visit& visit, Bytes bytes,
                             const DatagramPort::Received& r) {
  if (r.to.is_link_local()) set_interface(r.to, r.interface);
  const wdp::UdReception how = reception_of(token, r);
  const size_t segment = std::max<size_t>(r.segment, 1);
  auto& counters = token.runtime().counters();
  overruns_.poll_soon(token.now());
  do {
    counters.datagrams_received.add();
    const Bytes datagram = bytes.first(std::min(segment, bytes.size()));
    bytes = bytes.subspan(datagram.size());
    if (group_) {
      wdp_socket_.received_by_group(datagram, how);
    } else {
      wdp_socket_.received(datagram, how, token.now(), visit);
    }
    current_.set(nullptr);
  } while (!bytes.empty() && !pause_.begun);
  if (bytes.empty()) return;
  rest_.bytes.assign(bytes.begin(), bytes.end());
  rest_.how = r;
}

// --- receives that are used up

void DatagramDriver::wait_for_receives(DatagramSender& sender) {
  if (std::exchange(sender.lacks_receives_, true) || pause_.begun) return;
  pause_ = {.sender = &sender, .begun = true};
}

void DatagramDriver::receives_posted(Token& token, DatagramSender& sender) {
  sender.lacks_receives_ = false;
  if (pause_.sender == &sender) wait_no_longer(token);
}

void DatagramDriver::wait_no_longer(Token& token) {
  pause_ = {};
  token.runtime().want_read(token, *this, true);
  if (rest_.bytes.empty()) return;
  Visit visit{*this, token};
  const Undelivered rest = std::exchange(rest_, {});
  deliver(token, visit, rest.bytes, rest.how);
}

}  // namespace weft::drive
