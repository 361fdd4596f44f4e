// Every reason to refuse what a peer sends has a counter of its own (spec/errors 3), and
// what a stream says and hears is counted as it is on the wire.

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/conformance/answers.h"
#include "tests/support/fault_catcher.h"

namespace weft::conformance {
namespace {

using stats::Kind;
using wire::Refusal;

struct Offence {
  Refusal why;
  bool extension;
  std::function<void(Peer&)> commit;
};

Buffer with_byte(Buffer u, size_t at, unsigned value) {
  u[at] = static_cast<std::byte>(value);
  return u;
}

// From the FPDU to the opcode.
std::vector<Offence> against_headers() {
  return {
      {Refusal::crc, true,
       [](Peer& p) {
         Buffer frame = test::make_fpdu(tagged({.stag = p.open, .to = p.to}, Buffer(8)));
         frame.back() ^= std::byte{0x10};
         p.hears_bytes(frame);
       }},
      {Refusal::empty_ulpdu, true, [](Peer& p) { p.hears(Buffer{}); }},
      {Refusal::header_cut, true, [](Peer& p) { p.hears(Bytes{untagged({})}.first(17)); }},
      {Refusal::ulpdu_too_short, true,
       [](Peer& p) { p.hears(untagged({.op = Opcode::read_request, .qn = 1}, Buffer(27))); }},
      {Refusal::ulpdu_too_long, true,
       [](Peer& p) {
         p.stream.goes_by_memory();
         p.hears_bytes(test::from_hex("00100041"));
       }},
      {Refusal::ddp_version, true,
       [](Peer& p) { p.hears(with_byte(tagged({.stag = p.open, .to = p.to}), 0, 0xc2)); }},
      {Refusal::rdmap_version, true,
       [](Peer& p) { p.hears(with_byte(tagged({.stag = p.open, .to = p.to}), 1, 0x80)); }},
      {Refusal::queue_number, true, [](Peer& p) { p.hears(untagged({.qn = 4})); }},
      {Refusal::queue_number, true, [](Peer& p) { p.hears(untagged({.qn = 1})); }},
      {Refusal::msn, true, [](Peer& p) { p.hears(untagged({.msn = 2})); }},
      {Refusal::message_offset, true, [](Peer& p) { p.hears(untagged({.mo = 1})); }},
      {Refusal::unknown_opcode, true, [](Peer& p) { p.hears(untagged({.op = Opcode{15}})); }},
      {Refusal::opcode_not_negotiated, false,
       [](Peer& p) { p.hears(untagged({.op = Opcode::immediate}, Buffer(8))); }},
      {Refusal::opcode_in_wrong_segment, true,
       [](Peer& p) { p.hears(untagged({.op = Opcode::write})); }},
      {Refusal::opcode_changed, true,
       [](Peer& p) {
         p.hears(untagged({.last = false}, Buffer(8)));
         p.hears(untagged({.op = Opcode::send_se, .mo = 8}));
       }},
      {Refusal::behind_terminate, true,
       [](Peer& p) {
         p.hears({test::terminate({.error = term::kMpaCrc}), tagged({.stag = Stag{1}})});
       }},
      {Refusal::terminate_malformed, true,
       [](Peer& p) {
         p.hears(untagged({.op = Opcode::terminate, .qn = 2, .last = false}, Buffer(4)));
       }},
      {Refusal::delivered_malformed, true,
       [](Peer& p) { p.hears(tagged({.op = Opcode::delivered}, Buffer(1))); }},
      {Refusal::delivered_beyond_sent, true, [](Peer& p) { p.hears(test::delivered(1)); }},
      {Refusal::write_inside_send, true,
       [](Peer& p) {
         p.hears(untagged({.last = false}, Buffer(8)));
         p.hears(tagged({.stag = Stag{1}}));
       }},
      {Refusal::request_inside_send, false,
       [](Peer& p) {
         p.hears(untagged({.last = false}, Buffer(8)));
         p.hears(test::read_request(1, reading(Stag{1}, 0, 0)));
       }},
      {Refusal::request_malformed, false,
       [](Peer& p) {
         Buffer u = test::read_request(1, reading(p.open, p.to, 8));
         u.push_back({});
         p.hears(u);
       }},
  };
}

// The program has taken away the memory of the open region.
class Gone {
 public:
  explicit Gone(Peer& p)
      : memory_(::mmap(nullptr, Peer::kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
    p.host.regions.at(p.open).base = static_cast<std::byte*>(memory_);
  }
  ~Gone() { ::munmap(memory_, Peer::kSize); }
  Gone(const Gone&) = delete;
  Gone& operator=(const Gone&) = delete;

 private:
  const test::FaultCatcher faults_;
  void* memory_;
};

std::vector<Offence> against_memory() {
  const auto write = [](Stag Peer::*stag, uint64_t ahead) {
    return [=](Peer& p) { p.hears(tagged({.stag = p.*stag, .to = p.to + ahead}, Buffer(16))); };
  };
  const auto read = [](Stag Peer::*stag, uint64_t ahead) {
    return [=](Peer& p) { p.hears(test::read_request(1, reading(p.*stag, p.to + ahead, 8))); };
  };
  return {
      {Refusal::write_invalid_stag, true,
       [](Peer& p) { p.hears(tagged({.stag = Peer::kUnknown, .to = p.to}, Buffer(1))); }},
      {Refusal::write_bounds, true, write(&Peer::open, Peer::kSize - 15)},
      {Refusal::write_access, false, write(&Peer::read_only, 0)},
      {Refusal::write_not_on_stream, true, write(&Peer::foreign, 0)},
      {Refusal::write_wrap, true,
       [](Peer& p) { p.hears(tagged({.stag = p.open, .to = UINT64_MAX - 2}, Buffer(16))); }},
      {Refusal::read_invalid_stag, true,
       [](Peer& p) { p.hears(test::read_request(1, reading(Peer::kUnknown, p.to, 8))); }},
      {Refusal::read_bounds, true, read(&Peer::open, Peer::kSize - 7)},
      {Refusal::read_access, false, read(&Peer::write_only, 0)},
      {Refusal::read_not_on_stream, true, read(&Peer::foreign, 0)},
      {Refusal::read_wrap, true,
       [](Peer& p) { p.hears(test::read_request(1, reading(p.open, UINT64_MAX - 2, 8))); }},
      {Refusal::write_gone, true,
       [=](Peer& p) {
         const Gone memory(p);
         write(&Peer::open, 0)(p);
       }},
      {Refusal::read_gone, true,
       [=](Peer& p) {
         const Gone memory(p);
         read(&Peer::open, 0)(p);
         p.says();
       }},
      {Refusal::read_gone, true,
       [](Peer& p) {
         const Gone memory(p);
         p.hears(test::atomic_request(1, adding(p.open, p.to)));
       }},
      {Refusal::invalidate_not_allowed, true,
       [](Peer& p) { p.hears(untagged({.op = Opcode::send_inv, .word = p.foreign.value()})); }},
      {Refusal::invalidate_impossible, true,
       [](Peer& p) {
         p.hears(untagged({.op = Opcode::send_inv, .word = Peer::kUnknown.value()}));
       }},
      {Refusal::own_receive_memory, true,
       [](Peer& p) {
         p.host.receives.clear();
         p.host.post_receive(2, {{p.to, 64, Peer::kUnknown}});
         p.hears(untagged({}, Buffer(8)));
       }},
      {Refusal::own_sink_memory, true,
       [](Peer& p) {
         Buffer into(32);
         const auto sink = test::segment(p.host, into);
         p.host.post({.operation = work::Operation::read}, {sink});
         const auto request = wire::ReadRequest::parse(p.says().at(0).payload.data());
         p.host.regions.erase(sink.lkey);
         p.hears(tagged({.op = Opcode::read_response, .stag = request.sink_stag}, Buffer(32)));
       }},
  };
}

std::vector<Offence> against_order() {
  return {
      {Refusal::no_receive_in_time, false,
       [](Peer& p) {
         p.hears(untagged({.msn = 1}));
         p.hears(untagged({.msn = 2}));
         p.later(std::chrono::seconds{10});
       }},
      {Refusal::receive_too_short, true, [](Peer& p) { p.hears(untagged({}, Buffer(65))); }},
      {Refusal::credit_exceeded, true,
       [](Peer& p) {
         p.hears(untagged({.msn = 1}));
         for (uint32_t msn = 2; !p.host.end && msn < 300; ++msn) {
           p.hears(untagged({.msn = msn}, Buffer(60'000)));
         }
       }},
      {Refusal::reads_beyond_ird, true,
       [](Peer& p) {
         for (uint32_t msn = 1; msn <= 5; ++msn) {
           p.hears(test::read_request(msn, reading(p.open, p.to, 8)));
         }
       }},
      {Refusal::atomic_code, true,
       [](Peer& p) {
         auto r = adding(p.open, p.to);
         r.code = static_cast<wire::AtomicRequest::Code>(7);
         p.hears(test::atomic_request(1, r));
       }},
      {Refusal::atomic_misaligned, true,
       [](Peer& p) { p.hears(test::atomic_request(1, adding(p.open, p.to | 4))); }},
      {Refusal::read_response_unasked, false,
       [](Peer& p) { p.hears(tagged({.op = Opcode::read_response, .stag = p.open})); }},
      {Refusal::read_response_misfit, true,
       [](Peer& p) {
         Buffer into(32);
         p.host.post({.operation = work::Operation::read}, {test::segment(p.host, into)});
         const auto request = wire::ReadRequest::parse(p.says().at(0).payload.data());
         p.hears(tagged({.op = Opcode::read_response, .stag = request.sink_stag}, Buffer(33)));
       }},
      {Refusal::atomic_response_unasked, true,
       [](Peer& p) { p.hears(untagged({.op = Opcode::atomic_response, .qn = 3}, Buffer(12))); }},
  };
}

TEST(Counters, EachReasonToRefuseHasItsOwn) {
  std::set<Refusal> seen;
  for (const auto& rows : {against_headers(), against_memory(), against_order()}) {
    for (const Offence& o : rows) {
      SCOPED_TRACE(wire::counter_name(o.why));
      Peer p(o.extension);
      o.commit(p);
      EXPECT_TRUE(p.host.end);
      const stats::EngineCounters& c = p.engine_counters.counters;
      EXPECT_EQ(c.refused[static_cast<size_t>(o.why)].value(), 1U);
      EXPECT_EQ(sum(c.refused), 1U);
      seen.insert(o.why);
    }
  }
  for (size_t i = 0; i < wire::kRefusalCount; ++i) {
    const auto why = static_cast<Refusal>(i);
    // The first is for reasons without a counter; the second takes 4 GB: long_message_test.cc.
    if (why == Refusal::other || why == Refusal::message_too_long) continue;
    EXPECT_TRUE(seen.contains(why)) << wire::counter_name(why) << " has no test";
  }
}

// A region that goes while its answer goes out.
TEST(Counters, AReadThatLosesItsSource) {
  Peer p;
  p.hears(test::read_request(1, reading(p.open, p.to, 8)));
  p.host.regions.erase(p.open);
  p.says();
  EXPECT_EQ(
      p.engine_counters.counters.refused[static_cast<size_t>(Refusal::read_invalid_stag)].value(),
      1U);
}

TEST(Counters, TerminatesThatCome) {
  for (size_t i = 0; i < wire::kTermErrorCount; ++i) {
    const wire::TermError e = wire::term_error(i).error;
    SCOPED_TRACE(e.to_string());
    Peer p;
    p.hears(test::terminate({.error = e}));
    const stats::EngineCounters& c = p.engine_counters.counters;
    EXPECT_EQ(c.terminate_received[i].value(), 1U);
    EXPECT_EQ(sum(c.terminate_received), 1U);
    EXPECT_EQ(sum(c.terminate_sent) + sum(c.refused), 0U);
    const auto last = stats::LastTerminate::unpack(p.qp_counters.last_terminate);
    EXPECT_TRUE(last.received);
    EXPECT_EQ(last.error, e);
  }
  Peer p;
  p.hears(test::terminate({.error = {wire::Layer::ddp, 7, 0x77}}));
  EXPECT_EQ(p.engine_counters.counters.terminate_received[wire::kOtherTermError].value(), 1U);
}

uint64_t of(const auto& family, Kind kind) {
  return family[static_cast<size_t>(kind)].value();
}

TEST(Counters, MessagesThatCome) {
  Peer p;
  const stats::QpCounters& c = p.qp_counters.counters;
  p.hears(untagged({.last = false}, Buffer(10)));
  EXPECT_EQ(of(c.messages_received, Kind::send), 0U) << "half of one";
  p.hears(untagged({.mo = 10}, Buffer(20)));
  p.hears({tagged({.stag = p.open, .to = p.to}, Bytes{p.memory()}.first(100)),
           tagged({.stag = Stag{1}}), test::read_request(1, reading(p.open, p.to, 8)),
           test::atomic_request(2, adding(p.open, p.to))});
  EXPECT_EQ(of(c.messages_received, Kind::send), 1U);
  EXPECT_EQ(of(c.bytes_received, Kind::send), 30U);
  EXPECT_EQ(of(c.messages_received, Kind::write), 2U);
  EXPECT_EQ(of(c.bytes_received, Kind::write), 100U);
  EXPECT_EQ(of(c.messages_received, Kind::read), 1U);
  EXPECT_EQ(of(c.messages_received, Kind::atomic), 1U);
  EXPECT_EQ(c.fpdus_received.value(), 6U);
  p.says();
  EXPECT_EQ(of(c.bytes_sent, Kind::read), 8U) << "the answer";
  EXPECT_EQ(sum(c.messages_sent), 0U);

  p.hears(test::read_request(3, reading(p.write_only, p.to, 8)));
  EXPECT_TRUE(p.host.end);
  EXPECT_EQ(c.fpdus_received.value(), 6U) << "this one was refused";
}

TEST(Counters, MessagesThatGo) {
  Peer p;
  const stats::QpCounters& c = p.qp_counters.counters;
  Buffer from = pattern_bytes(100'000, 4);
  Buffer into(64);
  const auto source = test::segment(p.host, from);
  p.host.post({.operation = work::Operation::write, .remote_stag = Stag{5}}, {source});
  p.host.post({.operation = work::Operation::write_immediate, .remote_stag = Stag{5}},
              {{source.address, 70, source.lkey}});
  p.host.post({.operation = work::Operation::send}, {{source.address, 50, source.lkey}});
  p.host.post({.operation = work::Operation::read}, {test::segment(p.host, into)});
  p.host.post({.operation = work::Operation::fetch_add},
              {{test::address_of(into).value(), 8, p.host.add_region(into)}});
  const auto frames = p.says();
  EXPECT_EQ(of(c.messages_sent, Kind::write), 2U) << "the Immediate belongs to its Write";
  EXPECT_EQ(of(c.bytes_sent, Kind::write), 100'070U);
  EXPECT_EQ(of(c.messages_sent, Kind::send), 1U);
  EXPECT_EQ(of(c.bytes_sent, Kind::send), 50U);
  EXPECT_EQ(of(c.messages_sent, Kind::read), 1U);
  EXPECT_EQ(of(c.messages_sent, Kind::atomic), 1U);
  EXPECT_EQ(c.fpdus_sent.value(), frames.size());
  const auto request = std::find_if(frames.begin(), frames.end(),
                                    [](const auto& f) { return f.op() == Opcode::read_request; });
  ASSERT_NE(request, frames.end());
  const auto wanted = wire::ReadRequest::parse(request->payload.data());
  p.hears(
      tagged({.op = Opcode::read_response, .stag = wanted.sink_stag, .to = wanted.sink_to.value()},
             Buffer(64)));
  EXPECT_EQ(of(c.bytes_received, Kind::read), 64U);
  EXPECT_EQ(sum(c.messages_received), 0U);
}

// spec/rdmap 4
TEST(Counters, ReceiverNotReady) {
  Peer p;
  p.hears({untagged({.msn = 1}), untagged({.msn = 2}), untagged({.msn = 3})});
  EXPECT_EQ(p.engine_counters.counters.early_arrivals.value(), 2U);
  EXPECT_EQ(p.qp_counters.counters.rnr_sent.value(), 0U);
  p.says();
  EXPECT_EQ(p.qp_counters.counters.rnr_sent.value(), 1U) << "one report for all that wait";

  p.host.post({.operation = work::Operation::send}, {});
  p.says();
  p.hears(test::delivered(0, wire::kDeliveredWaiting | 5));
  EXPECT_EQ(p.qp_counters.counters.rnr_received.value(), 1U);
  p.hears(test::delivered(1));
  EXPECT_EQ(p.qp_counters.counters.rnr_received.value(), 1U);
}

// spec/mpa 2.5.5
TEST(Counters, Kicks) {
  Peer p(false);
  p.host.post({.operation = work::Operation::send}, {});
  p.says();
  p.later(std::chrono::milliseconds{100});
  p.says();
  EXPECT_EQ(p.engine_counters.counters.kicks.value(), 3U);
}

TEST(Counters, HowAStreamEnds) {
  using End = work::StreamEnd::Kind;
  const std::pair<End, std::function<void(Peer&)>> rows[] = {
      {End::peer_closed, [](Peer& p) { p.stream.peer_closed(p.now); }},
      {End::closed,
       [](Peer& p) {
         p.stream.close(p.now);
         p.says();
         p.stream.write_side_shut(p.now);
         p.stream.peer_closed(p.now);
       }},
      {End::terminated, [](Peer& p) { p.hears(test::terminate({.error = term::kMpaCrc})); }},
      {End::protocol_error, [](Peer& p) { p.hears(untagged({.msn = 9})); }},
      {End::local_error,
       [](Peer& p) {
         p.host.post({.operation = work::Operation::send}, {{p.to, 8, Peer::kUnknown}});
         p.says();
       }},
      {End::lost, [](Peer& p) { p.stream.connection_lost(); }},
      {End::unanswered, [](Peer& p) { p.stream.connection_lost(true); }},
  };
  for (const auto& [kind, way] : rows) {
    Peer p;
    way(p);
    ASSERT_TRUE(p.host.end);
    EXPECT_EQ(p.host.end->kind, kind);
    const auto& ends = p.engine_counters.counters.stream_end;
    EXPECT_EQ(ends[static_cast<size_t>(kind)].value(), 1U) << static_cast<int>(kind);
    EXPECT_EQ(sum(ends), 1U);
  }
}

}  // namespace
}  // namespace weft::conformance
