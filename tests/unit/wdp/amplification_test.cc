// spec/threats 4: an unvalidated REQ never draws more than 3x its size, and nothing else draws
// more either. Each kind of datagram is said to a port in three ways:
//
//   stranger     to a port whose program takes, or refuses, whoever calls, with 512 bytes of
//                private data; nothing is answered, and 20 s pass
//   near         to the port of a session that stands, with its token, from another address
//   forged       the same from the peer's own address, which takes knowing all of it; to both sides
//
// and the bytes that leave are counted; near a session those that would have left anyhow do not
// count. It prints the table of docs/reliability.md. What a peer with a session asks for, RDMA
// Read, is no answer to a stranger and not bounded by this.

#include <algorithm>
#include <cstdio>

#include "tests/unit/wdp/wdp_socket_fixture.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_data.h"
#include "wire/wdp_ud.h"

namespace weft::wdp {
namespace {

using wire::Opcode;
using wire::WdpData;
using wire::WdpUd;

constexpr double kMost = 3;
constexpr Duration kApart = 1ms;
constexpr size_t kFresh = 48 + 64;  // payload of the data that is said

enum class Program : uint8_t { takes, takes_late, refuses, full };

// Whoever says something, as far as the datagram tells.
struct Speaker {
  SessionToken token;
  uint8_t didx = 0;
  uint8_t sidx = 0;
  Psn psn;
  Random& random;
};

struct Row {
  const char* name;
  std::function<Buffer(const Speaker&)> make;
  Program program = Program::takes;
  int count = 1;
};

Buffer encoded(const WdpCtl& c) {
  Buffer b(c.size());
  c.encode(b.data());
  return b;
}

Row ctl(const char* name, CtlType type, size_t private_data = 0,
        const std::function<void(WdpCtl&)>& more = {}) {
  return {.name = name, .make = [=](const Speaker& s) {
            const Buffer text = pattern_bytes(private_data, 1);
            const Buffer offending(WdpCtl::kOffendingSize);
            WdpCtl c{.type = type,
                     .didx = s.didx,
                     .sidx = s.sidx,
                     .token = s.token,
                     .source_token = SessionToken{5},
                     .source = make_qpn(kA.port, s.sidx),
                     .xid = Xid{77},
                     .service = wire::CtlService::uc,
                     .max_payload = 1472,
                     .private_data = text,
                     .highest_psn = s.psn};
            if (type == CtlType::req) c.token = SessionToken{};
            if (type == CtlType::err) c.offending = offending;
            if (more) more(c);
            return encoded(c);
          }};
}

Row request(const char* name, Program program, const std::function<void(WdpCtl&)>& more = {},
            int count = 1) {
  Row r = ctl(name, CtlType::req, 0, more);
  r.program = program;
  r.count = count;
  return r;
}

Row data(const char* name, Opcode opcode, size_t payload, bool immediate = false) {
  return {.name = name, .make = [=](const Speaker& s) {
            const bool read = opcode == Opcode::read_request;
            WdpData d{.flags = {.immediate = immediate},
                      .didx = s.didx,
                      .sidx = s.sidx,
                      .token = s.token,
                      .psn = s.psn,
                      .msn = Msn{1},
                      .mlen = static_cast<uint32_t>(payload),
                      .last = true,
                      .opcode = opcode,
                      .stride = 1424,
                      .stag = Stag{0xdead00},
                      .to = TaggedOffset{0x1000}};
            Buffer b(WdpData::kSize);
            d.encode(b.data());
            b.resize(WdpData::kSize + (read ? 8 : payload));
            if (read) store_be(b.data() + WdpData::kSize, static_cast<uint32_t>(payload));
            return b;
          }};
}

Row ud(const char* name, Qpn to) {
  return {
      .name = name, .make = [=](const Speaker&) {
        WdpUd u{
            .q_key = QKey{7}, .source = make_qpn(kA.port, 9), .destination = to, .length = kFresh};
        Buffer b(WdpUd::kSize + kFresh);
        u.encode(b.data());
        return b;
      }};
}

Row reserved(const char* name, int first, int last) {
  return {.name = name,
          .make =
              [=](const Speaker& s) {
                Buffer b = pattern_bytes(kFresh, 3);
                const int c = first + static_cast<int>(s.random.next() % (last - first + 1));
                b[0] = std::byte{0xd1};
                b[1] = static_cast<std::byte>(c << 4);
                store_be(b.data() + 4, s.token.value());
                return b;
              },
          .count = 64};
}

Buffer random_bytes(const Speaker& s) {
  Buffer b(16 + s.random.next() % 1457);
  for (std::byte& x : b) x = static_cast<std::byte>(s.random.next());
  return b;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      request("REQ, taken", Program::takes),
      request("REQ, 7 times, taken", Program::takes, {}, 7),
      request("REQ, taken after 5 s", Program::takes_late),
      request("REQ, 7 times, taken after 5 s", Program::takes_late, {}, 7),
      request("REQ, refused by the program", Program::refuses),
      request("REQ, 128 half open: COOKIE", Program::full),
      request("REQ to a queue pair", Program::takes,
              [](WdpCtl& c) {
                c.ib_style = true;
                c.destination = make_qpn(kB.port, 5);
              }),
      request("REQ for a UD queue pair", Program::takes,
              [](WdpCtl& c) { c.service = wire::CtlService::ud_resolution; }),
      request("REQ, service that is not there", Program::takes,
              [](WdpCtl& c) { c.service = wire::CtlService::rd_channel; }),
      {.name = "REQ, another version",
       .make =
           [](const Speaker&) {
             Buffer b(32);
             b[0] = std::byte{0xd2};
             b[8] = std::byte{1};
             return b;
           }},
      {.name = "REQ, not padded",
       .make =
           [](const Speaker& s) {
             Buffer b = ctl("", CtlType::req).make(s);
             b.resize(64);
             store_be(b.data() + 10, uint16_t{64});
             wire::seal_wdp(b);
             return b;
           }},
      ctl("REP", CtlType::rep),
      ctl("REP, 512 bytes of private data", CtlType::rep, 512),
      ctl("RTU", CtlType::rtu),
      ctl("REJ", CtlType::rej),
      ctl("COOKIE", CtlType::cookie),
      ctl("WAIT", CtlType::wait),
      ctl("DREQ", CtlType::dreq),
      ctl("DREP", CtlType::drep),
      ctl("KA", CtlType::ka),
      ctl("KAA", CtlType::kaa),
      ctl("PROBE", CtlType::probe),
      ctl("PROBEA", CtlType::probea),
      ctl("ERR", CtlType::err),
      data("UC Write of nothing", Opcode::write, 0),
      data("UC Write, 1 byte, no such STag", Opcode::write, 1),
      data("UC Write with immediate, no such STag", Opcode::write, 1, true),
      data("UC Send, no receive", Opcode::send, 64),
      data("UC Read Request, no such STag", Opcode::read_request, 1 << 20),
      data("UC Read Response, none asked for", Opcode::read_response, 64),
      ud("UD, no such queue pair", make_qpn(kB.port, 77)),
      ud("UD, multicast", wire::kMulticastQpn),
      reserved("RD and RDACK, classes 3 and 4", 3, 4),
      reserved("classes 5 to 15", 5, 15),
      {.name = "2000 random ones", .make = random_bytes, .count = 2000},
      {.name = "2000 random ones behind a right head",
       .make =
           [](const Speaker& s) {
             Buffer b = random_bytes(s);
             b[0] = std::byte{0xd1};
             b[1] = static_cast<std::byte>(s.random.next() % 3 << 4);
             b[2] = std::byte{s.didx};
             store_be(b.data() + 4, s.token.value());
             if (b[1] == std::byte{}) {
               b[8] = static_cast<std::byte>(1 + s.random.next() % 13);
               store_be(b.data() + 10, static_cast<uint16_t>(b.size()));
               wire::seal_wdp(b);
             }
             return b;
           },
       .count = 2000},
  };
  return all;
}

// One port, or two with a session between them.
struct Scene final : PortTest {
  explicit Scene(Program what) : program(what) {}
  void TestBody() override {}

  void serve() {
    if (program == Program::takes_late && now < started + 5s) return;
    for (; served < b.requests.size(); ++served) {
      const auto& r = b.requests[served];
      Offer o = offer_of_b();
      o.private_data = pattern_bytes(512, 1);
      if (program == Program::refuses) {
        b.port.reject(r.key, RejReason::application, o.private_data);
      } else if (r.service == wire::CtlService::ud_resolution) {
        b.port.tell(r.key, o, now);
      } else {
        b.port.accept(r.key, b.add_peer().connection, o, now);
      }
    }
  }
  void fill_up() {
    for (uint32_t i = 0; i < RequestGate::kMostHalfOpen; ++i) {
      b.hear(PortTest::request(1000 + i, i), {Gid::from_ipv4(0x0a000100 + i), 50000}, now);
    }
    b.said(now);
    served = b.requests.size();
  }
  // A queue pair that may be called by its number.
  void be_called() {
    b.callee = {&b.add_peer().connection, offer_of_b()};
    b.callee.offer.private_data = pattern_bytes(512, 1);
    b.callee_expects = make_qpn(kA.port, 9);
  }
  // What leaves `node` in this time, said by nobody to anybody.
  size_t leaves(WdpNode& node, Duration time) {
    size_t bytes = 0;
    for (const Time end = now + time; now < end; now = std::min(end, now + 5ms)) {
      node.tick(now);
      if (&node == &b) serve();
      for (const auto& d : node.said(now)) bytes += d.bytes.size();
    }
    return bytes;
  }

  const Program program;
  const Time started = now;
  size_t served = 0;
};

struct Account {
  size_t came = 0;
  size_t went = 0;
  double ratio() const { return static_cast<double>(went) / static_cast<double>(came); }
};

Account say(Scene& s, WdpNode& to, const Endpoint& from, const Row& row, Speaker speaker,
            Duration time) {
  Account a;
  for (int i = 0; i < row.count; ++i) {
    speaker.psn = next(speaker.psn);
    const Buffer d = row.make(speaker);
    a.came += d.size();
    to.hear(d, from, s.now);
    a.went += s.leaves(to, kApart);
  }
  a.went += s.leaves(to, time);
  return a;
}

Account to_a_port(const Row& row) {
  Scene s{row.program};
  s.be_called();
  if (row.program == Program::full) s.fill_up();
  SeededRandom random{9};
  return say(s, s.b, kStranger, row,
             {.token = SessionToken{0x77}, .sidx = 9, .psn = Psn{100}, .random = random}, 20s);
}

Account to_a_session(const Row& row, bool forged, bool to_caller) {
  constexpr Duration kTime = 7s;
  Account a;
  size_t anyhow = 0;
  for (const bool quiet : {true, false}) {
    Scene s{row.program};
    s.stand();
    s.later(1s);
    s.served = s.b.requests.size();
    WdpNode& to = to_caller ? s.a : s.b;
    const auto& p = (to_caller ? s.caller : s.callee)->connection.session()->parameters();
    if (quiet) {
      anyhow = s.leaves(to, kTime + row.count * kApart);
      continue;
    }
    SeededRandom random{9};
    const Speaker speaker{.token = p.own_token,
                          .didx = p.own_index(),
                          .sidx = p.peer_index(),
                          .psn = Psn{p.peer_first_psn->value() - 1},
                          .random = random};
    a = say(s, to, forged ? (to_caller ? kB : kA) : kStranger, row, speaker, kTime);
  }
  a.went -= std::min(a.went, anyhow);
  return a;
}

struct AmplificationTest : ::testing::TestWithParam<size_t> {
  static Account worse(const Account& a, const Account& b) { return a.ratio() < b.ratio() ? b : a; }
};

TEST_P(AmplificationTest, IsThreeAtMost) {
  const Row& row = rows()[GetParam()];
  const Account stranger = to_a_port(row);
  const Account near = worse(to_a_session(row, false, false), to_a_session(row, false, true));
  const Account forged = worse(to_a_session(row, true, false), to_a_session(row, true, true));
  std::printf("| %s | %zu | %.2f | %.2f | %.2f |\n", row.name, stranger.came / row.count,
              stranger.ratio(), near.ratio(), forged.ratio());
  for (const Account& a : {stranger, near, forged}) {
    EXPECT_GT(a.came, 0U);
    EXPECT_LE(a.ratio(), kMost) << row.name << ": " << a.came << " bytes drew " << a.went;
  }
}

INSTANTIATE_TEST_SUITE_P(EachKind, AmplificationTest, ::testing::Range<size_t>(0, rows().size()));

}  // namespace
}  // namespace weft::wdp
