#include "tests/support/uc_flow.h"

#include <algorithm>

namespace weft::test {

using work::Arrival;
using work::Operation;
using work::Status;

namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr uint32_t kNameSize = 4;  // a Send begins with its number

}  // namespace

UcTraffic::Flow::Flow(UcPair& pair, UcSide& from, UcSide& to, const UcTrafficOptions& options,
                      uint64_t salt, std::vector<std::string>& wrong)
    : pair_(pair),
      from_(from),
      to_(to),
      options_(options),
      wrong_(wrong),
      sources_(salt * 4),
      sinks_(salt * 4 + 1),
      targets_(salt * 4 + 2),
      rooms_(salt * 4 + 3) {
  SeededRandom random(options.seed * 1'000'003 + salt);
  for (size_t i = 0; i < options.requests; ++i) plan_message(random);
  uint32_t longest = 0;
  for (const Message& m : messages_) {
    if (work::is_send(m.operation)) longest = std::max(longest, m.length);
  }
  for (const Message& m : messages_) {
    if (takes_receive(m)) plan_room(random, longest);
  }
  sources_.make(from.host(), 1);
  sinks_.make(from.host(), 3);
  targets_.make(to.host(), 15);
  rooms_.make(to.host(), 3);
  for (size_t i = 0; i < messages_.size(); ++i) {
    Message& m = messages_[i];
    if (m.operation == Operation::send) {
      store_be(sources_.at(m.source), static_cast<uint32_t>(i));
    } else if (m.operation == Operation::send_invalidate) {
      windows_.push_back(pattern_bytes(8, i));
      m.invalidates = to.host().add_region(windows_.back());
    }
  }
  // What the numbers changed is how it was before.
  sources_.before = sources_.memory;
  windows_.reserve(messages_.size());
  to.consumer.on_receive = [this](const auto& r, Status s, const Arrival& a) { arrived(r, s, a); };
  from.consumer.on_send = [this](const auto& w, Status s) { completed(w.wr_id, s); };
  schedule(random);
}

bool UcTraffic::Flow::takes_receive(const Message& m) const {
  return work::is_send(m.operation) || m.operation == Operation::write_immediate;
}

void UcTraffic::Flow::plan_message(Random& random) {
  constexpr Operation kinds[] = {Operation::write, Operation::write_immediate, Operation::send,
                                 Operation::send_immediate, Operation::send_invalidate};
  Message m{.operation = kinds[draw_below(random, std::size(kinds))]};
  if (draw_chance(random, options_.reads)) m.operation = Operation::read;
  const bool huge = draw_chance(random, options_.huge_share);
  m.length = static_cast<uint32_t>(draw_size(random, huge ? options_.huge : options_.most));
  if (draw_chance(random, 0.05)) m.length = 0;
  if (m.operation == Operation::send) m.length = std::max(m.length, kNameSize);
  m.solicited = draw_chance(random, 0.3);
  if (m.operation == Operation::read) {
    m.source = targets_.place(m.length);
    m.target = sinks_.place(m.length);
    ++totals_.reads;
  } else {
    m.source = sources_.place(m.length);
    if (work::is_write(m.operation)) m.target = targets_.place(m.length);
    if (takes_receive(m)) ++totals_.messages;
  }
  messages_.push_back(m);
}

// A receive in one to four pieces.
void UcTraffic::Flow::plan_room(Random& random, size_t least) {
  Room r{.length = static_cast<uint32_t>(least + draw_below(random, 64))};
  if (options_.scarce && draw_chance(random, 0.3)) {
    r.length = static_cast<uint32_t>(draw_below(random, least + 1));
  }
  const uint64_t pieces = 1 + draw_below(random, 4);
  for (uint32_t left = r.length, i = 0; left > 0; ++i) {
    uint32_t n = left;
    if (i + 1 < pieces) n = static_cast<uint32_t>(1 + draw_below(random, left));
    r.pieces.emplace_back(rooms_.place(n), n);
    left -= n;
  }
  room_.push_back(std::move(r));
}

void UcTraffic::Flow::schedule(Random& random) {
  std::vector<Duration> times;
  for (size_t i = 0; i < messages_.size(); ++i) {
    times.push_back(draw_up_to(random, options_.spread));
  }
  std::sort(times.begin(), times.end());
  for (const Duration d : times) {
    // Posted one by one or several at once, as they come.
    pair_.scheduler.after(d, [this] { post(next_message_++); });
  }
  for (size_t i = 0; i < room_.size(); ++i) {
    if (!options_.scarce) {
      post_room(i);
      continue;
    }
    const Duration d = draw_up_to(random, options_.spread * 2);
    pair_.scheduler.after(d, [this] { post_room(next_room_++); });
  }
}

void UcTraffic::Flow::post_room(size_t i) {
  std::vector<work::LocalSegment> segments;
  for (const auto& [place, n] : room_[i].pieces) {
    segments.push_back({rooms_.address(place), n, rooms_.stag});
  }
  room_[i].posted = true;
  to_.post_receive(i, segments);
}

void UcTraffic::Flow::post(size_t i) {
  Message& m = messages_[i];
  m.posted = true;
  const bool read = m.operation == Operation::read;
  const Arena& local = read ? sinks_ : sources_;
  const size_t at = read ? m.target : m.source;
  const size_t remote = read ? m.source : m.target;
  work::SendWqe w{.wr_id = i,
                  .operation = m.operation,
                  .signaled = true,
                  .solicited = m.solicited,
                  .remote_stag = targets_.stag,
                  .remote_to = TaggedOffset{targets_.address(remote)},
                  .immediate = static_cast<uint32_t>(i)};
  if (m.operation == Operation::send_invalidate) w.remote_stag = m.invalidates;
  // In two pieces, cut anywhere.
  const auto cut = static_cast<uint32_t>(m.length * (i % 7) / 7);
  from_.host().post(w, {{local.address(at), cut, local.stag},
                        {local.address(at) + cut, m.length - cut, local.stag}});
  from_.pump();
}

// --- while it goes on

void UcTraffic::Flow::complain(const std::string& what, size_t i) {
  wrong_.push_back((&from_ == &pair_.a ? "a to b, number " : "b to a, number ") +
                   std::to_string(i) + ": " + what);
}

Buffer UcTraffic::Flow::content_of(const Room& room, size_t n) const {
  Buffer all;
  for (const auto& [place, length] : room.pieces) {
    const Bytes piece = rooms_.now(place, std::min<size_t>(length, n - all.size()));
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

size_t UcTraffic::Flow::which(const Room& room, const Arrival& a) const {
  if (a.has_immediate) return a.immediate;
  if (a.invalidated) {
    const auto it = std::find_if(messages_.begin(), messages_.end(), [&](const Message& m) {
      return m.operation == Operation::send_invalidate && m.invalidates == a.invalidated_stag;
    });
    return it == messages_.end() ? kNone : static_cast<size_t>(it - messages_.begin());
  }
  const Buffer name = content_of(room, kNameSize);
  return name.size() < kNameSize ? kNone : load_be<uint32_t>(name.data());
}

void UcTraffic::Flow::arrived(const work::Receive& r, Status status, const Arrival& a) {
  if (r.wr_id != next_used_ || r.wr_id >= room_.size()) {
    complain("receives complete out of order", r.wr_id);
    return;
  }
  ++next_used_;
  Room& room = room_[r.wr_id];
  room.used = true;
  if (status != Status::success) return complain("a receive failed", r.wr_id);
  const size_t i = which(room, a);
  if (i >= messages_.size() || !messages_[i].posted) return complain("nobody sent that", i);
  Message& m = messages_[i];
  if (std::exchange(m.delivered, true)) return complain("delivered twice", i);
  ++totals_.delivered;
  const bool right = takes_receive(m) && a.length == m.length && a.solicited == m.solicited &&
                     a.write_with_immediate == (m.operation == Operation::write_immediate) &&
                     a.has_immediate == (m.operation == Operation::write_immediate ||
                                         m.operation == Operation::send_immediate) &&
                     a.invalidated == (m.operation == Operation::send_invalidate);
  if (!right) return complain("delivered as something else", i);
  // No completion before all bytes are placed.
  const Bytes sent = sources_.initially(m.source, m.length);
  if (m.operation == Operation::write_immediate) {
    const Bytes now = targets_.now(m.target, m.length);
    if (!std::equal(sent.begin(), sent.end(), now.begin(), now.end())) {
      complain("an immediate before all bytes are placed", i);
    }
  } else if (const Buffer now = content_of(room, m.length);
             !std::equal(sent.begin(), sent.end(), now.begin(), now.end())) {
    complain("a Send before all bytes are placed", i);
  }
  if (last_delivered_ && *last_delivered_ > i && !options_.disorderly) {
    complain("delivered behind a later one", i);
  }
  last_delivered_ = std::max(i, last_delivered_.value_or(0));
}

void UcTraffic::Flow::completed(uint64_t wr_id, Status status) {
  if (wr_id != next_completed_) complain("requests complete out of order", wr_id);
  next_completed_ = wr_id + 1;
  if (wr_id >= messages_.size()) return complain("was never posted", wr_id);
  Message& m = messages_[wr_id];
  if (std::exchange(m.completed, true)) return complain("completed twice", wr_id);
  if (m.operation == Operation::read) {
    if (status == Status::retry_exceeded && options_.lossy) {
      ++totals_.reads_failed;
      return;
    }
    if (status != Status::success) return complain("a Read failed", wr_id);
    const Bytes there = targets_.initially(m.source, m.length);
    const Bytes here = sinks_.now(m.target, m.length);
    if (!std::equal(there.begin(), there.end(), here.begin(), here.end())) {
      complain("a Read before all bytes are placed", wr_id);
    }
  } else if (status != Status::success) {
    complain("a request failed", wr_id);
  }
}

// --- in the end

void UcTraffic::Flow::finish() {
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Message& m = messages_[i];
    // What the end of its session flushes is not told one by one.
    if (!m.completed && !from_.host().end) complain("did not complete", i);
    const bool certain = !options_.lossy && !options_.disorderly && !options_.scarce;
    if (certain && takes_receive(m) && !m.delivered) complain("did not arrive", i);
  }
  check_targets();
  check_rooms();
  if (sources_.memory != sources_.before) complain("sources were written", 0);
}

void UcTraffic::Flow::check_targets() {
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Message& m = messages_[i];
    if (work::is_write(m.operation)) {
      targets_.expect(m.target, sources_.initially(m.source, m.length));
    } else if (m.operation == Operation::read) {
      sinks_.expect(m.target, targets_.initially(m.source, m.length));
    }
  }
  const bool all = !options_.lossy && !options_.disorderly;
  if (all ? !targets_.as_expected() : !targets_.nothing_foreign()) {
    complain("Writes left something wrong", 0);
  }
  if (all ? !sinks_.as_expected() : !sinks_.nothing_foreign()) {
    complain("Reads left something wrong", 0);
  }
}

// Outside of the receives that were taken nothing has changed. What stands in a receive beyond its
// message may be left from an incomplete one.
void UcTraffic::Flow::check_rooms() {
  Buffer expected = rooms_.before;
  const auto forgive = [&](const Room& r, size_t from) {
    for (const auto& [place, n] : r.pieces) {
      for (size_t k = 0; k < n; ++k) {
        if (from > 0) {
          --from;
          continue;
        }
        expected[rooms_.base + place + k] = rooms_.memory[rooms_.base + place + k];
      }
    }
  };
  const bool clean = !options_.lossy && !options_.disorderly && !options_.scarce;
  for (size_t i = 0; i < room_.size(); ++i) {
    // What is in a used one was looked at when it completed. The next one may be half full.
    if (room_[i].used || (i == next_used_ && !clean)) forgive(room_[i], 0);
  }
  if (rooms_.memory != expected) complain("receives left something wrong", 0);
}

}  // namespace weft::test
