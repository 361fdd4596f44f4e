#include "fuzz/rdmap/session.h"

namespace weft::fuzz {

using rdmap::Stream;
using test::Buffer;
using wire::Opcode;
using work::Access;
using work::Operation;
using work::Status;
using namespace std::chrono_literals;

namespace {

constexpr size_t kRegion = 24 * 1024;  // larger than what is received straight to its place
constexpr size_t kProtected = 256;
constexpr uint32_t kQueue = 16;
// Nothing that these targets post or ask for is larger in sum.
constexpr size_t kMostSaid = 8U << 20;
// An input is to run in less than a millisecond or two.
constexpr size_t kMostByPeer = 128 * 1024;
constexpr size_t kManyBytes = 2048;

constexpr uint8_t rights(Access a) {
  return static_cast<uint8_t>(a);
}

}  // namespace

Session::Session(const rdmap::StreamConfig& config)
    : config_(config),
      host_(kQueue),
      stream_(host_, config, 5, now_),
      listener_(config),
      regions_{Registered{Area{kRegion}}, Registered{Area{kProtected}},
               Registered{Area{kProtected}}, Registered{Area{kProtected}}},
      source_(kRegion),
      sink_(kRegion) {
  constexpr std::array<uint8_t, 4> kRights = {15, rights(Access::remote_read),
                                              rights(Access::remote_write), 15};
  uint32_t stag = 0x100;
  const auto add = [&](Area& a, uint8_t allowed) {
    a.stag = Stag{stag += 0x101};
    host_.regions[a.stag] = {a.data(), kAddress, a.size(), allowed};
  };
  for (size_t i = 0; i < regions_.size(); ++i) add(regions_[i].area, kRights[i]);
  host_.regions[this->stag(Region::foreign)].foreign = true;
  add(source_, rights(Access::local_read));
  add(sink_, rights(Access::local_write));
}

Stag Session::stag(Region r) const {
  return r == Region::none ? Stag{0x00bad000} : regions_[static_cast<size_t>(r)].area.stag;
}

// As ibv_dereg_mr: after this nothing reads or writes the region.
void Session::deregister(Region r) {
  host_.regions.erase(stag(r));
  (void)batch_.detach();
}

// --- the peer

void Session::say_bytes(Bytes bytes) {
  if ((said_by_peer_ += bytes.size()) > kMostByPeer) return;
  peer_.insert(peer_.end(), bytes.begin(), bytes.end());
}

void Session::say_message(Buffer ulpdu) {
  if (damage_ != 0 && !ulpdu.empty())
    ulpdu[damage_at_ % ulpdu.size()] ^= static_cast<std::byte>(damage_);
  damage_ = 0;
  say(ulpdu);
}

void Session::damage_next(uint8_t at, uint8_t mask) {
  damage_at_ = at;
  damage_ = mask;
}

void Session::hand_over(size_t n, size_t piece) {
  size_t done = 0;
  n = std::min(n, peer_.size());
  if (n > kManyBytes) piece = std::max<size_t>(piece, 512 | (piece & 7));
  while (done < n && !fin_ && !closed_ && stream_.wants_bytes()) {
    PieceList places;
    if (stream_.direct() && !stream_.direct_places(places, now_)) break;
    Buffer bytes = exact(Bytes{peer_}.subspan(done), std::min(piece, n - done));
    done += bytes.size();
    heard_ += bytes.size();
    size_t direct = 0;
    for (const IoVec& place : places.pieces()) {
      const size_t part = std::min(place.iov_len, bytes.size() - direct);
      std::memcpy(place.iov_base, bytes.data() + direct, part);
      direct += part;
    }
    if (direct > 0) stream_.direct_received(direct, now_);
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(direct));
    if (!bytes.empty()) stream_.received(exact(bytes, bytes.size()), now_);
  }
  peer_.erase(peer_.begin(), peer_.begin() + static_cast<ptrdiff_t>(done));
}

void Session::fin() {
  hand_over(SIZE_MAX, SIZE_MAX);
  if (fin_ || closed_ || !peer_.empty()) return;  // it leaves bytes in the socket
  fin_ = true;
  stream_.peer_closed(now_);
}

void Session::reset() {
  if (fin_ || closed_) return;
  fin_ = true;
  peer_.clear();
  batch_.clear();
  stream_.connection_lost();
}

void Session::write(const Tagged& w) {
  say_message(test::tagged({.stag = stag(w.region),
                            .to = kAddress + w.offset + write_at_,
                            .last = w.last,
                            .ack_wanted = w.ack_wanted},
                           test::pattern(w.size, 9)));
  write_at_ = w.last ? 0 : write_at_ + w.size;
}

void Session::send(Opcode op, size_t size, bool last, uint32_t word, bool ack_wanted) {
  say_message(test::untagged({.op = op,
                              .msn = send_msn_,
                              .mo = send_mo_,
                              .last = last,
                              .word = word,
                              .ack_wanted = ack_wanted},
                             test::pattern(size, 5)));
  send_mo_ = last ? 0 : send_mo_ + static_cast<uint32_t>(size);
  if (last) ++send_msn_;
}

void Session::read(Region r, uint64_t offset, uint32_t size) {
  say_message(test::read_request(read_msn_++, {.sink_stag = Stag{0x123456},
                                               .sink_to = TaggedOffset{64},
                                               .size = size,
                                               .source_stag = stag(r),
                                               .source_to = TaggedOffset{kAddress + offset}}));
}

void Session::atomic(Region r, uint64_t offset, uint8_t code) {
  wire::AtomicRequest request{.request_id = 77,
                              .stag = stag(r),
                              .to = TaggedOffset{kAddress + offset},
                              .add_swap = 3,
                              .add_swap_mask = code > 2 ? 0x8000000080000000U : 0,
                              .compare_mask = 0xff};
  request.code = static_cast<wire::AtomicRequest::Code>(code & 3);
  say_message(test::atomic_request(read_msn_++, request));
}

void Session::immediate(bool solicited) {
  Buffer u = test::immediate(send_msn_++, 0x01020304);
  if (solicited) u[1] = std::byte{0x49};
  say_message(std::move(u));
}

void Session::respond(size_t most) {
  if (listener_.requests.empty()) return;
  Listener::Request& r = listener_.requests.front();
  if (r.atomic) {
    say_message(
        test::untagged({.op = Opcode::atomic_response, .qn = 3, .msn = answer_msn_++},
                       test::encoded(wire::AtomicResponse{.request_id = r.id, .original = 41})));
  } else {
    const size_t n = std::min<size_t>(most, r.left);
    const bool last = n == r.left;
    say_message(
        test::tagged({.op = Opcode::read_response, .stag = r.sink, .to = r.to, .last = last},
                     test::pattern(n, 7)));
    r.to += n;
    r.left -= static_cast<uint32_t>(n);
    if (!last) return;
  }
  listener_.requests.pop_front();
}

void Session::terminate(Bytes payload) {
  say_message(test::untagged({.op = Opcode::terminate, .qn = 2}, payload));
}

void Session::delivered(uint64_t less, uint32_t stag) {
  const uint64_t all = listener_.messages();
  say_message(test::delivered(all - std::min(less, all), stag));
}

// --- the program

void Session::post_receive(size_t size) {
  if (receives_.size() == kMostReceives || ended_ || gone_) return;
  Area& a = receives_.emplace_back(size);
  a.stag = Stag{static_cast<uint32_t>(0x10000 + receives_.size())};
  host_.regions[a.stag] = {a.data(), kAddress, size, rights(Access::local_write)};
  // Two segments, so that a message may be cut between them.
  const auto half = static_cast<uint32_t>(size / 2);
  host_.post_receive(
      receives_.size() - 1,
      {{kAddress, half, a.stag}, {kAddress + half, static_cast<uint32_t>(size) - half, a.stag}});
  stream_.receives_posted(now_);
}

void Session::post(const Post& p) {
  if (ended_ || gone_ || host_.send_queue().reserve(0) == nullptr) return;
  const bool into = has_response(p.operation);
  const auto size = static_cast<uint32_t>(is_atomic(p.operation) ? work::kAtomicBytes : p.size);
  work::SendWqe w{.wr_id = posted_++,
                  .operation = p.operation,
                  .signaled = p.signaled,
                  .fence = p.fence,
                  .remote_stag = Stag{0x4711},
                  .remote_to = TaggedOffset{64}};
  if (is_local(p.operation)) {
    host_.post(w);
  } else if (p.inlined && !into) {
    w.inlined = true;
    w.length = std::min<uint32_t>(size, 64);
    std::memset(host_.post(w).payload(), 0x33, w.length);
  } else {
    const Stag key = p.bad_key ? Stag{0x00bad000} : into ? sink_.stag : source_.stag;
    host_.post(w, {{kAddress, size / 2, key}, {kAddress + size / 2, size - size / 2, key}});
  }
}

void Session::close() {
  if (gone_) return;
  closing_ = true;
  stream_.close(now_);
}
void Session::abort() {
  if (gone_) return;
  stream_.abort(now_);
  let_go();
}
void Session::leave() {
  if (gone_) return;
  stream_.leave(now_);
  let_go();
}

// As a queue pair does that goes to error or away.
void Session::let_go() {
  gone_ = true;
  if (const auto r = stream_.abandon_receive()) host_.receive_done(*r, Status::flushed, {});
  stream_.detach();
  (void)batch_.detach();
  host_.flush();
}

// --- the kernel and the clock

void Session::listen(size_t most) {
  size_t said = 0;
  while (!closed_ && said < most) {
    if (batch_.empty()) {
      if (stream_.output() == Stream::Output::none) break;
      stream_.fill(batch_, now_);
      if (batch_.empty()) break;
    }
    size_t taken = 0;
    for (const IoVec& v : batch_.pieces()) {
      const size_t n = std::min(v.iov_len, most - said - taken);
      listener_.listen({static_cast<const std::byte*>(v.iov_base), n}, heard_);
      taken += n;
    }
    // A Responder may say nothing before the first FPDU but why it was none (spec/mpa 2.4).
    const bool spoken_to = host_.ready || (closing_ && heard_ >= wire::fpdu_size(0));
    FUZZ_CHECK(config_.initiator || spoken_to || stream_.ended());
    FUZZ_CHECK(!shut_ && taken > 0);
    batch_.consumed(taken);
    said += taken;
    FUZZ_CHECK(said < kMostSaid);
    if (batch_.empty()) stream_.llp_took_all(now_);
  }
  grant_wish();
}

// What the stream wants done with its connection, in the way of StreamDriver.
void Session::grant_wish() {
  using Wish = Stream::Wish;
  if (closed_) return;
  const Wish wish = stream_.wish();
  const bool at_once = wish == Wish::reset || (wish == Wish::close && stream_.hopeless());
  if (wish == Wish::none || (!batch_.empty() && !at_once)) return;
  if (wish == Wish::shutdown_write) {
    shut_ = true;
    stream_.write_side_shut(now_);
  } else {
    closed_ = true;
  }
}

void Session::later(Duration d) {
  const Time end = now_ + d;
  // A deadline that stays in the past would keep its keeper busy for ever.
  for (int turns = 0; !closed_ && stream_.deadline() <= end; ++turns) {
    FUZZ_CHECK(turns < 100);
    now_ = std::max(now_, stream_.deadline());
    stream_.tick(now_);
  }
  now_ = end;
}

void Session::finish(bool abortively) {
  hand_over(SIZE_MAX, SIZE_MAX);
  check();
  if (abortively) {
    abort();
  } else {
    leave();
  }
  for (int turn = 0; turn < 8 && !closed_; ++turn) {
    listen();
    check();
    later(11s);
  }
  FUZZ_CHECK(closed_);
}

}  // namespace weft::fuzz
