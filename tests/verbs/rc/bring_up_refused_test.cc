// The answers of a bring-up by number (spec/addressing 5.2, 5.5) to Requests that come at the wrong
// moment, and what is made of the other side's answers. Each has its counter.

#include "tests/support/counted.h"
#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

using wire::MpaStart;
using wire::Wfrc;
using Code = Wfrc::Code;

constexpr size_t kBlock = MpaStart::kSize + wire::MpaEnhanced::kSize;

// The code of the Reply that says no; nothing when the connection closes without one.
std::optional<Code> refusal(RawPeer& peer) {
  const auto answer = peer.hears_the_end();
  EXPECT_TRUE(answer) << "not closed";
  if (!answer || answer->empty()) return {};
  EXPECT_GE(answer->size(), kBlock + Wfrc::kSize);
  EXPECT_TRUE(MpaStart::parse(MpaStart::Kind::reply, answer->data())->rejected);
  const auto block = Wfrc::parse(Bytes{*answer}.subspan(kBlock));
  EXPECT_TRUE(block);
  return block->code;
}

using BringUpRefused = HostilePeer;

TEST_F(BringUpRefused, in_error) {
  const Counted refusals("bring_up_refused");
  const QpPtr q = t.waiting_qp();
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  check_errno(ibv_modify_qp(q.get(), &error, IBV_QP_STATE), "ERR");
  RawPeer peer = t.dial(q);
  peer.says(t.request(q));
  EXPECT_EQ(refusal(peer), Code::qp_in_error);
  refusals.expect({{"qp_in_error", 1}});
}

// A late copy of the Request deserves no answer; any other hears that it comes too late. The
// connection that there is goes on.
TEST_F(BringUpRefused, connected) {
  const Counted refusals("bring_up_refused");
  const QpPtr q = t.waiting_qp();
  const RawPeer first = t.open(q);
  RawPeer copy = t.dial(q);
  copy.says(request_frame(t.gid, kPeerQpn, q->qp_num, t.nonce));
  EXPECT_EQ(refusal(copy), std::nullopt);
  RawPeer other = t.dial(q);
  other.says(t.request(q));
  EXPECT_EQ(refusal(other), Code::qp_in_error);
  refusals.expect({{"duplicate", 1}, {"already_connected", 1}});
  EXPECT_FALSE(first.has_news());
}

// --- this side dials

// A queue pair that dials the listener, and its Request.
class Dialing {
 public:
  Dialing(Target& t, RawListener& listener)
      : t_(t), own_(static_cast<uint32_t>(listener.port()) << 8 | 1), q_(t.qp()) {
    to_rtr(q_.get(), own_, t.gid, {.reads = kSomeReads});
    to_rts(q_.get(), {.reads = kSomeReads});
    peer_.emplace(listener.accept());
    EXPECT_EQ(peer_->hears(kBlock + Wfrc::kSize).size(), kBlock + Wfrc::kSize);
  }
  void answers(Code code, bool rejects = true) {
    const MpaStart start{.kind = MpaStart::Kind::reply, .rejected = rejects};
    peer_->says(start_frame(start, {.peer_to_peer = true, .rtr_write = true, .ird = 4, .ord = 4},
                            {.code = code,
                             .source_qpn = Qpn{own_},
                             .destination_qpn = Qpn{q_->qp_num},
                             .source_gid = gid_of(t_.gid),
                             .destination_gid = gid_of(t_.gid)}));
  }
  const QpPtr& qp() const { return q_; }
  uint32_t peer_qpn() const { return own_; }

 private:
  Target& t_;
  uint32_t own_;
  QpPtr q_;
  std::optional<RawPeer> peer_;
};

// The peer calls as well, though this side was to: its connection has to give way.
TEST_F(BringUpRefused, this_sides_own_connection_goes_first) {
  const Counted refusals("bring_up_refused");
  RawListener listener(t.gid);
  const Dialing dialing(t, listener);
  Buffer request = request_frame(t.gid, dialing.peer_qpn(), dialing.qp()->qp_num, 7);
  request[kBlock + 5] = std::byte{1};  // b0: the fallback's
  RawPeer peer = t.dial(dialing.qp());
  peer.says(request);
  EXPECT_EQ(refusal(peer), Code::role_conflict);
  refusals.expect({{"role_conflict", 1}});
}

TEST_F(BringUpRefused, what_the_other_side_says_is_counted) {
  const Counted answers("bring_up_answer");
  Counted::Kinds wanted;
  const auto hears = [&](Code code, bool rejects, const char* counted) {
    SCOPED_TRACE(counted);
    RawListener listener(t.gid);  // its own: it is dialled again after some
    Dialing dialing(t, listener);
    dialing.answers(code, rejects);
    ++wanted[counted];
    answers.expect(wanted);
  };
  hears(Code::not_ready, true, "not_ready");
  hears(Code::no_such_qp, true, "no_such_qp");
  hears(Code::not_your_peer, true, "not_your_peer");
  hears(Code::role_conflict, true, "role_conflict");
  hears(Code::bad_parameters, true, "bad_parameters");
  hears(Code::qp_in_error, true, "qp_in_error");
  hears(static_cast<Code>(7), true, "other");  // nobody knows it
  hears(Code::not_ready, false, "other");      // neither yes nor no
}

// Nobody is there yet: it is tried again, and each time counts.
TEST_F(BringUpRefused, nobody_listens) {
  const Counted failures("dial_failed");
  const QpPtr q = t.qp();
  uint32_t nobody = 0;
  { nobody = static_cast<uint32_t>(RawListener(t.gid).port()) << 8 | 1; }
  to_rtr(q.get(), nobody, t.gid, {.reads = kSomeReads});
  for (int i = 0; i < 500 && failures.grown().empty(); ++i) usleep(10'000);
  const auto grown = failures.grown();
  ASSERT_EQ(grown.size(), 1U);
  EXPECT_EQ(grown.begin()->first, "nobody_listens");
}

}  // namespace
}  // namespace weft::test
