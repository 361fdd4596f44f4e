#include "wdp/read_requester.h"

#include <algorithm>
#include <utility>

#include "wdp/pieces.h"
#include "wire/wdp_messages.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using wire::WdpDrop;
using wire::WdpReadRange;
using work::Access;
using work::SendWqe;
using work::Status;

ReadRequester::ReadRequester(UcConsumer& consumer, const UcParameters& parameters, UcWriter& writer,
                             Rtt& rtt, UcCounters& counters, uint32_t seed)
    : consumer_(consumer),
      parameters_(parameters),
      writer_(writer),
      rtt_(rtt),
      counters_(counters),
      next_id_(seed) {}

void ReadRequester::add(uint64_t request, const SendWqe& w) {
  auto read = std::make_unique<Read>();
  read->request = request;
  read->id = next_id_;
  next_id_ = ReadId{next_id_.value() + 1};
  read->length = w.length;
  read->stag = w.remote_stag;
  read->to = w.remote_to;
  reads_.push_back(std::move(read));
}

ReadRequester::Read* ReadRequester::find(ReadId id) {
  for (const auto& r : reads_) {
    if (r->id == id) return r.get();
  }
  return nullptr;
}

// --- asking

ReadRequester::Read* ReadRequester::next_to_ask() const {
  for (const auto& r : reads_) {
    if (r->asked < r->length || (r->length == 0 && r->asked == 0)) return r.get();
  }
  return nullptr;
}

// spec/wdp-uc 5.4: a quarter of the own SO_RCVBUF (nothing else paces it).
uint64_t ReadRequester::budget() const {
  return std::max<uint64_t>(parameters_.receive_buffer / 4, parameters_.stride());
}

bool ReadRequester::can_ask() const {
  return ranges_.size() < parameters_.ord &&
         (ranges_.bytes_out() < budget() || ranges_.none_out()) && next_to_ask() != nullptr;
}

bool ReadRequester::ready() const {
  return ranges_.any_lost() || can_ask();
}

void ReadRequester::fill(Train& train, Time now) {
  while (ranges_.any_lost()) {
    if (!writer_.fits(train, WdpReadRange::kSize)) return;
    ++counters_.ranges_repeated;
    ask(train, ranges_.take_lost(), now);
  }
  while (can_ask()) {
    if (parameters_.stride() == 0) return;  // the path has become too narrow for anything
    if (!writer_.fits(train, WdpReadRange::kSize)) return;
    Read& read = *next_to_ask();
    // Several ranges at a time, so that answers come while requests are under way; cut where the
    // responder is likely to cut.
    const uint64_t stride = read.stride != 0 ? read.stride : parameters_.stride();
    const uint64_t share = budget() / std::min<uint64_t>(parameters_.ord, 4);
    const uint64_t most = std::min<uint64_t>(share, WdpReadRange::kMaxUcRange);
    const uint64_t n = std::max(most / stride * stride, stride);
    const auto begin = static_cast<uint32_t>(read.asked);
    const auto end = static_cast<uint32_t>(std::min<uint64_t>(read.asked + n, read.length));
    read.asked = read.length == 0 ? 1 : end;
    ask(train, {.read = &read, .begin = begin, .end = end, .alone = ranges_.none_out()}, now);
  }
}

void ReadRequester::ask(Train& train, const Range& range, Time now) {
  Read& read = *range.read;
  std::byte payload[WdpReadRange::kSize];
  WdpReadRange{.length = range.end - range.begin, .attempt = read.attempt}.encode(payload);
  // "A re-request names the STRIDE seen."
  const WdpData d{.msn = writer_.aside(),
                  .mo = MessageOffset{range.begin},
                  .mlen = read.length,
                  .last = true,
                  .opcode = Opcode::read_request,
                  .stride = read.stride != 0 ? read.stride : parameters_.stride(),
                  .stag = read.stag,
                  .imm_or_read = read.id.value(),
                  .to = read.to};
  const IoVec piece{payload, sizeof payload};
  (void)writer_.write(train, d, {&piece, 1});
  if (ranges_.none_out()) rate_.begin(now);
  ranges_.add(range, now);
  if (read.expires.is_never()) {
    if (read.timeout == Duration{0}) read.timeout = timeout();
    read.expires = now + read.timeout;
  }
}

// --- answers

Result<ReadRequester::Read*, WdpDrop> ReadRequester::admit(const WdpData& d) {
  Read* const read = find(d.read_id());
  if (read == nullptr) return fail(WdpDrop::stale_read);
  if (d.mlen != read->length) return fail(WdpDrop::context_mismatch);
  if (read->stride == 0) {
    if (d.segment_count() > kMostSegmentsOfMessage) return fail(WdpDrop::too_many_segments);
    return read;
  }
  // "STRIDE must not change within one RID."
  if (d.stride != read->stride) return fail(WdpDrop::context_mismatch);
  if (read->came.test(d.segment_index())) return fail(WdpDrop::duplicate_segment);
  return read;
}

bool ReadRequester::direct(const WdpData& d, PieceList& places) {
  const auto read = admit(d);
  if (!read.ok() || (*read)->stride == 0) return false;
  return local_pieces(consumer_.memory(), consumer_.send_queue().at((*read)->request), d.mo.value(),
                      d.payload_size(), Access::local_write, places)
      .ok();
}

Result<Ok, WdpDrop> ReadRequester::received(const WdpData& d, Bytes payload, bool in_place,
                                            Time now) {
  const auto admitted = admit(d);
  if (!admitted.ok()) return fail(admitted.error());
  Read& read = **admitted;
  if (!in_place) {
    PieceList places;
    if (!local_pieces(consumer_.memory(), consumer_.send_queue().at(read.request), d.mo.value(),
                      d.payload_size(), Access::local_write, places)
             .ok() ||
        !place(payload, places)) {
      return fail(lose_sink(read));
    }
  }
  counters_.bytes_placed += d.payload_size();
  if (read.stride == 0) {
    read.stride = d.stride;
    read.came.reset(d.segment_count());
  }
  read.came.set(d.segment_index());
  rate_.came(d.payload_size(), now);
  progress(read, d, now);
  return Ok{};
}

// The memory that its bytes were to go to is gone.
WdpDrop ReadRequester::lose_sink(Read& read) {
  own_memory_gone_ = true;
  finish(read, Status::local_protection);
  return WdpDrop::own_memory;
}

Result<Ok, WdpDrop> ReadRequester::unreachable(const WdpData& d) {
  const auto read = admit(d);
  return fail(read.ok() ? lose_sink(**read) : read.error());
}

void ReadRequester::progress(Read& read, const WdpData& d, Time now) {
  if (read.came.full()) {
    finish(read, Status::success);
    return;
  }
  if (const auto asked = ranges_.answered(read, d, now)) rtt_.sample(now - *asked);
  read.expiries = 0;
  read.timeout = timeout();
  read.expires = now + read.timeout;
  ranges_.tick(now);
}

void ReadRequester::finish(Read& read, Status status) {
  SendWqe& w = consumer_.send_queue().at(read.request);
  w.answered = true;
  w.status = status;
  news_ = true;
  ++(status == Status::success ? counters_.reads_complete : counters_.reads_failed);
  ranges_.forget(read);
  std::erase_if(reads_, [&read](const auto& r) { return r.get() == &read; });
}

// --- time

void ReadRequester::expire(Read& read, Time now) {
  if (!ranges_.is_out(read)) {
    // It waits for its turn, here or in the socket.
    read.expires = ranges_.is_lost(read) ? now + read.timeout : Time::never();
    return;
  }
  if (++read.expiries >= std::max<uint32_t>(parameters_.retry_count, 1)) {
    finish(read, Status::retry_exceeded);
    return;
  }
  ranges_.lose(read);
  read.timeout = std::min(read.timeout * 2, kMostDoubledTimeout);
  read.expires = now + read.timeout;
}

// spec/wdp-uc 5.5: what is under way takes its time to come, besides.
Duration ReadRequester::timeout() const {
  return rtt_.read_timeout() + rate_.of(ranges_.bytes_out(), kMostReadTimeout);
}

Time ReadRequester::deadline() const {
  Time first = ranges_.deadline();
  for (const auto& r : reads_) first = std::min(first, r->expires);
  return first;
}

void ReadRequester::tick(Time now) {
  ranges_.tick(now);
  for (size_t i = 0; i < reads_.size();) {
    Read& read = *reads_[i];
    if (now >= read.expires) {
      const size_t count = reads_.size();
      expire(read, now);
      if (reads_.size() < count) continue;
    }
    ++i;
  }
}

// spec/wdp-uc 5.2: STRIDE must not change within one RID, so they get another one. What came of
// them comes again.
void ReadRequester::path_narrowed() {
  for (const auto& r : reads_) {
    if (r->asked == 0 || (r->stride != 0 && r->stride <= parameters_.stride())) continue;
    ranges_.forget(*r);
    r->id = std::exchange(next_id_, ReadId{next_id_.value() + 1});
    r->asked = 0;
    r->stride = 0;
    r->attempt = r->expiries = 0;
    r->timeout = Duration{0};
    r->expires = Time::never();
  }
}

void ReadRequester::stop() {
  ranges_.clear();
  reads_.clear();
  own_memory_gone_ = false;
}

bool ReadRequester::refused(ReadId id) {
  Read* const read = find(id);
  if (read == nullptr) return false;
  finish(*read, Status::remote_access);
  return true;
}

}  // namespace weft::wdp
