// Terminates of the peer: both layouts (spec/errors 1.2), the status that each code gives, and the
// request that gets it (spec/errors 4.2).

#include "tests/conformance/peer.h"
#include "tests/support/spec_example.h"

namespace weft::conformance {
namespace {

using work::Operation;
using work::Status;
using work::StreamEnd;

// A Write, a Read (MSN 1), a Send; none of them complete.
struct Requester : test::ScriptPeer {
  explicit Requester(bool extension) : ScriptPeer(test::script_config(extension)), data(100) {
    const auto local = test::segment(host, data);
    if (extension)
      host.post({.wr_id = 1, .operation = Operation::write, .signaled = true}, {local});
    host.post({.wr_id = 2, .operation = Operation::read, .signaled = true}, {local});
    host.post({.wr_id = 3, .operation = Operation::send, .signaled = true}, {local});
    requests = says();
  }
  std::string statuses() const {
    std::string text;
    for (const auto& d : host.sent)
      text += std::to_string(d.wr_id) + " " + work::to_string(d.status) + "; ";
    return text;
  }
  Buffer data;
  std::vector<test::Frame> requests;
};

struct Row {
  wire::TermError error;
  const char* status;
};
// spec/errors 4.3: RDMAP/1 and DDP tagged: access; DDP untagged 02: RNR, 05: invalid request;
// RDMAP/2: operation; others fatal, general.
constexpr Row kRows[] = {
    {{wire::Layer::rdmap, 0, 0x00}, "general error"},
    {{wire::Layer::rdmap, 0, 0xff}, "general error"},
    {{wire::Layer::rdmap, 1, 0x00}, "remote access error"},
    {{wire::Layer::rdmap, 1, 0x01}, "remote access error"},
    {{wire::Layer::rdmap, 1, 0x02}, "remote access error"},
    {{wire::Layer::rdmap, 1, 0x03}, "remote access error"},
    {{wire::Layer::rdmap, 1, 0x04}, "remote access error"},
    {{wire::Layer::rdmap, 1, 0x09}, "remote access error"},
    {{wire::Layer::rdmap, 1, 0xff}, "remote access error"},
    {{wire::Layer::rdmap, 2, 0x05}, "remote operation error"},
    {{wire::Layer::rdmap, 2, 0x06}, "remote operation error"},
    {{wire::Layer::rdmap, 2, 0x07}, "remote operation error"},
    {{wire::Layer::rdmap, 2, 0x08}, "remote operation error"},
    {{wire::Layer::rdmap, 2, 0x09}, "remote operation error"},
    {{wire::Layer::rdmap, 2, 0xff}, "remote operation error"},
    {{wire::Layer::ddp, 0, 0x00}, "fatal error"},
    {{wire::Layer::ddp, 1, 0x00}, "remote access error"},
    {{wire::Layer::ddp, 1, 0x01}, "remote access error"},
    {{wire::Layer::ddp, 1, 0x02}, "remote access error"},
    {{wire::Layer::ddp, 1, 0x03}, "remote access error"},
    {{wire::Layer::ddp, 1, 0x04}, "remote access error"},
    {{wire::Layer::ddp, 2, 0x01}, "fatal error"},
    {{wire::Layer::ddp, 2, 0x02}, "receiver-not-ready retry exceeded"},
    {{wire::Layer::ddp, 2, 0x03}, "fatal error"},
    {{wire::Layer::ddp, 2, 0x04}, "fatal error"},
    {{wire::Layer::ddp, 2, 0x05}, "remote invalid request"},
    {{wire::Layer::ddp, 2, 0x06}, "fatal error"},
    {{wire::Layer::llp, 0, 0x01}, "fatal error"},
    {{wire::Layer::llp, 0, 0x02}, "fatal error"},
    {{wire::Layer::llp, 0, 0x03}, "fatal error"},
    {{wire::Layer::llp, 0, 0x06}, "fatal error"},
};

// The whole of what siw sends instead (spec/errors 1.2): nibbles swapped, header bits reversed,
// length of the payload alone.
Buffer siw_terminate(wire::TermError e, const Buffer& quoted) {
  Buffer body;
  body.push_back(static_cast<std::byte>(e.etype << 4 | static_cast<unsigned>(e.layer)));
  body.push_back(static_cast<std::byte>(e.code));
  body.push_back(static_cast<std::byte>(quoted.empty() ? 0 : 0x03));
  body.push_back(std::byte{0});
  if (!quoted.empty()) {
    body.push_back(std::byte{0});
    body.push_back(static_cast<std::byte>(100));
    body.insert(body.end(), quoted.begin(), quoted.begin() + 18);
  }
  return untagged({.op = Opcode::terminate, .qn = 2}, body);
}

TEST(ReceivedTerminate, EveryCodeHasItsStatus) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.error.to_string());
    Requester weft(true);
    weft.hears(test::terminate({.error = row.error}));
    EXPECT_EQ(weft.statuses(), std::string("1 ") + row.status + "; 2 flushed; 3 flushed; ");
    ASSERT_TRUE(weft.host.end);
    EXPECT_EQ(weft.host.end->kind, StreamEnd::Kind::terminated);
    EXPECT_EQ(weft.host.end->error, row.error);
    EXPECT_EQ(test::names(weft.says()), "") << "no Terminate is ever answered";
  }
}

// With a quoted header its bits tell the layouts apart, so that every code is understood in either.
TEST(ReceivedTerminate, BothLayoutsWithAQuotedHeader) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.error.to_string());
    Requester plain(false);
    const Buffer read = plain.requests.at(0).ulpdu;
    wire::Terminate rfc{.error = row.error,
                        .has_segment_length = true,
                        .segment_length = 46,
                        .ddp_header_size = 18};
    std::copy_n(read.begin(), 18, rfc.ddp_header.begin());
    plain.hears(test::terminate(rfc));
    // Towards a plain peer the Send completed when the kernel took it, but behind the Read.
    EXPECT_EQ(plain.statuses(), std::string("2 ") + row.status + "; 3 flushed; ");

    Requester siw(false);
    siw.hears(siw_terminate(row.error, siw.requests.at(0).ulpdu));
    EXPECT_EQ(siw.statuses(), std::string("2 ") + row.status + "; 3 flushed; ");
    EXPECT_EQ(siw.host.end->error, row.error);
  }
}

// spec/errors 1.2: without headers the first byte and the code decide.
TEST(ReceivedTerminate, SiwsWithoutAHeader) {
  struct Bare {
    const char* bytes;
    wire::TermError meant;
  };
  constexpr Bare kBare[] = {
      {"02 02 00 00", {wire::Layer::llp, 0, 0x02}},    // siw: CRC
      {"02 05 00 00", {wire::Layer::rdmap, 2, 0x05}},  // RFC: siw's LLP codes end at 4
      {"20 06 00 00",
       {wire::Layer::rdmap, 2,
        0x06}},  // siw: unexpected opcode, the stream being past its start-up
      {"20 02 00 00", {wire::Layer::llp, 0, 0x02}},    // RFC: CRC
      {"21 02 00 00", {wire::Layer::ddp, 2, 0x02}},    // siw: no buffer
      {"12 02 00 00", {wire::Layer::ddp, 2, 0x02}},    // RFC: the same
      {"01 00 00 00", {wire::Layer::rdmap, 1, 0x00}},  // RFC: protection
      {"10 00 00 00", {wire::Layer::ddp, 0, 0x00}},    // RFC: DDP catastrophic
      {"11 01 00 00", {wire::Layer::ddp, 1, 0x01}},    // the same in both
      {"00 ff 00 00", {wire::Layer::rdmap, 0, 0xff}},
  };
  for (const Bare& b : kBare) {
    SCOPED_TRACE(b.bytes);
    Requester plain(false);
    plain.hears(untagged({.op = Opcode::terminate, .qn = 2}, test::from_hex(b.bytes)));
    ASSERT_TRUE(plain.host.end);
    EXPECT_EQ(plain.host.end->error.to_string(), b.meant.to_string());
  }
  // Between wefts it is the RFC's, whatever it looks like.
  Requester weft(true);
  weft.hears(untagged({.op = Opcode::terminate, .qn = 2}, test::from_hex("20 06 00 00")));
  EXPECT_EQ(weft.host.end->error, (wire::TermError{wire::Layer::llp, 0, 0x06}));
}

// spec/examples 8: what siw really sent.
TEST(ReceivedTerminate, TheCapturedFrames) {
  const auto heard = [](std::string_view example) {
    Requester p(false);
    p.hears_bytes(test::example(example));
    EXPECT_TRUE(p.host.end);
    return p.statuses();
  };
  EXPECT_EQ(heard("E8 siw no buffer"), "2 receiver-not-ready retry exceeded; 3 flushed; ");
  EXPECT_EQ(heard("E8 weft no buffer"), "2 receiver-not-ready retry exceeded; 3 flushed; ");
  EXPECT_EQ(heard("E8 siw bad CRC"), "2 fatal error; 3 flushed; ");
  EXPECT_EQ(heard("E8 siw opcode 8"), "2 remote operation error; 3 flushed; ");
  // siw reports the read's size as its MSN: then it is the oldest one.
  EXPECT_EQ(heard("E8 siw bad Read STag"), "2 remote access error; 3 flushed; ");
}

// spec/errors 4.2: the WR blamed: by the read's MSN, else the oldest that is not complete.
TEST(ReceivedTerminate, WhoIsToBlame) {
  Requester read(true);
  wire::Terminate t{.error = term::kProtectionInvalidStag,
                    .has_segment_length = true,
                    .segment_length = 46,
                    .ddp_header_size = 18,
                    .rdmap_header_size = 28};
  const Buffer& ulpdu = read.requests.at(1).ulpdu;
  std::copy_n(ulpdu.begin(), 18, t.ddp_header.begin());
  std::copy_n(ulpdu.begin() + 18, 28, t.rdmap_header.begin());
  read.hears(test::terminate(t));
  EXPECT_EQ(read.statuses(), "1 flushed; 2 remote access error; 3 flushed; ");

  // A Delivered before the Terminate leaves the first request that is not covered (spec/rdmap 4.3).
  Requester write(true);
  write.hears({test::delivered(1), test::terminate({.error = term::kTaggedBounds})});
  EXPECT_EQ(write.statuses(), "1 success; 2 remote access error; 3 flushed; ");
}

// Several reads of `size` bytes towards a plain peer, nothing answered.
struct Reader : test::ScriptPeer {
  Reader(uint16_t reads, uint32_t size)
      : ScriptPeer({.mpa = {.ird = reads, .ord = reads}, .initiator = true}), data(size) {
    for (size_t i = 1; i <= reads; ++i) {
      host.post({.wr_id = i, .operation = Operation::read, .signaled = true},
                {test::segment(host, data)});
    }
    requests = says();
  }
  // Those that did more than be flushed.
  std::string blamed() const {
    std::string text;
    for (const auto& d : host.sent) {
      if (d.status == Status::flushed) continue;
      text += std::to_string(d.wr_id) + " " + work::to_string(d.status) + "; ";
    }
    return text;
  }
  Buffer data;
  std::vector<test::Frame> requests;
};

// What siw says of a read that it cannot answer: its MSN is the size (spec/errors 1.2). With
// `rdmap_header` it quotes the Read Request as well, sink STag and all.
Buffer siw_terminate_of_read(const Buffer& request, bool rdmap_header) {
  const size_t quoted = rdmap_header ? 46 : 18;
  Buffer body = test::from_hex(rdmap_header ? "10 00 07 00 00 00" : "10 00 03 00 00 00");
  body.insert(body.end(), request.begin(), request.begin() + static_cast<ptrdiff_t>(quoted));
  // The size is 12 bytes into the Read Request, behind 18 of DDP; the MSN 10 into DDP's header.
  std::copy_n(request.begin() + 18 + 12, 4, body.begin() + 6 + 10);
  return untagged({.op = Opcode::terminate, .qn = 2}, body);
}

// The size of the reads is the MSN of one of them, which is not at fault.
TEST(ReceivedTerminate, SiwsMsnIsTheSizeOfTheRead) {
  constexpr uint16_t kReads = 8;
  for (const bool rdmap_header : {false, true}) {
    for (uint32_t size = 1; size <= kReads; ++size) {
      SCOPED_TRACE(std::to_string(size) + (rdmap_header ? " bytes, sink quoted" : " bytes"));
      Reader siw(kReads, size);
      ASSERT_EQ(siw.requests.size(), kReads);
      siw.hears(siw_terminate_of_read(siw.requests[0].ulpdu, rdmap_header));
      EXPECT_EQ(siw.blamed(), "1 remote access error; ");
    }
  }
  // siw finds some faults when a Request comes in, with those before it not answered yet.
  Reader siw(kReads, 2);
  siw.hears(siw_terminate_of_read(siw.requests.at(4).ulpdu, true));
  EXPECT_EQ(siw.blamed(), "5 remote access error; ");
}

TEST(ReceivedTerminate, HeadersThatAreCutOffDoNoHarm) {
  const Buffer whole = test::example("E8 siw bad Read STag");
  const Buffer ulpdu{whole.begin() + 2, whole.end() - 4};
  for (size_t n = 22; n <= ulpdu.size(); ++n) {
    Requester p(false);
    p.hears(Bytes{ulpdu}.first(n));
    ASSERT_TRUE(p.host.end) << n;
    EXPECT_EQ(p.host.end->kind, StreamEnd::Kind::terminated);
    EXPECT_EQ(p.host.sent.size(), 2U);
  }
}

TEST(ReceivedTerminate, WithNothingToBlame) {
  test::ScriptPeer p;
  p.hears(test::terminate({.error = term::kMpaCrc}));
  EXPECT_EQ(p.host.end->kind, StreamEnd::Kind::terminated);
  EXPECT_TRUE(p.host.sent.empty());
  EXPECT_EQ(p.stream.wish(), rdmap::Stream::Wish::shutdown_write);
}

}  // namespace
}  // namespace weft::conformance
