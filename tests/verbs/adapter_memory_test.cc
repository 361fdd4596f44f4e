// Which Terminate answers which memory, by the adapter's own rules: protection domains, rights of
// the region and of the queue pair, windows, invalidation (spec/rdmap 2.4 to 2.6). A raw peer asks,
// so that the code that goes over the wire is seen.

#include <functional>

#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

using wire::Opcode;
namespace term = wire::term;

using AdapterMemory = HostilePeer;

// Memory that a case makes and the peer names.
struct Named {
  Buffer bytes = pattern(4096, 2);
  PdPtr pd;
  MrPtr mr;
  std::unique_ptr<ibv_mw, Freer<ibv_mw, ibv_dealloc_mw>> window;
  QpPtr other;
  std::optional<RawPeer> other_peer;
  Stag stag;
  uint64_t to() const { return reinterpret_cast<uintptr_t>(bytes.data()); }
};
using Make = std::function<void(Target&, const QpPtr&, Named&)>;

Make region(int access) {
  return [access](Target& t, const QpPtr&, Named& n) {
    n.mr = t.adapter.reg(n.bytes.data(), n.bytes.size(), access);
    n.stag = Stag{n.mr->rkey};
  };
}

void of_another_domain(Target& t, const QpPtr&, Named& n) {
  n.pd.reset(ibv_alloc_pd(t.adapter.context.get()));
  n.mr.reset(ibv_reg_mr(n.pd.get(), n.bytes.data(), n.bytes.size(), kAllAccess));
  n.stag = Stag{n.mr->rkey};
}
void unknown(Target&, const QpPtr&, Named& n) {
  n.stag = Stag{0x00bad000};
}
void deregistered(Target& t, const QpPtr& q, Named& n) {
  region(kAllAccess)(t, q, n);
  n.mr.reset();
}

// All of the memory, through a window that `q` binds.
void bind_window(Target& t, const QpPtr& q, Named& n, ibv_mw_type type) {
  n.mr = t.adapter.reg(n.bytes.data(), n.bytes.size(), kAllAccess | IBV_ACCESS_MW_BIND);
  n.window.reset(ibv_alloc_mw(t.adapter.pd.get(), type));
  check(n.window != nullptr, "ibv_alloc_mw");
  const ibv_mw_bind_info info{n.mr.get(), n.to(), n.bytes.size(),
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  if (type == IBV_MW_TYPE_1) {
    ibv_mw_bind request{};
    request.send_flags = IBV_SEND_SIGNALED;
    request.bind_info = info;
    check_errno(ibv_bind_mw(q.get(), n.window.get(), &request), "ibv_bind_mw");
  } else {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw = {n.window.get(), ibv_inc_rkey(n.window->rkey), info};
    check_errno(post_send(q.get(), wr), "bind");
    n.window->rkey = wr.bind_mw.rkey;
  }
  const auto done = collect(t.cq.get(), 1);
  check(done.size() == 1 && done[0].status == IBV_WC_SUCCESS, "the window is not bound");
  n.stag = Stag{n.window->rkey};
}
void window_1(Target& t, const QpPtr& q, Named& n) {
  bind_window(t, q, n, IBV_MW_TYPE_1);
}
void window_2(Target& t, const QpPtr& q, Named& n) {
  bind_window(t, q, n, IBV_MW_TYPE_2);
}
void window_2_of_another_queue_pair(Target& t, const QpPtr&, Named& n) {
  n.other = t.waiting_qp();
  n.other_peer.emplace(t.open(n.other));
  bind_window(t, n.other, n, IBV_MW_TYPE_2);
}
// What the peer hears when it says `ulpdu` about memory that `make` makes.
std::vector<Frame> answer(Target& t, const Make& make,
                          const std::function<Buffer(const Named&)>& ulpdu, const QpPtr& q) {
  RawPeer peer = t.open(q);
  Named n;
  make(t, q, n);
  peer.says_ulpdu(ulpdu(n));
  // Answered or not, this ends it.
  peer.says_ulpdu(untagged({.op = Opcode::terminate, .qn = 2}, Buffer(4)));
  const auto end = peer.hears_the_end();
  EXPECT_TRUE(end);
  ibv_wc wc;
  while (ibv_poll_cq(t.cq.get(), 1, &wc) > 0) {
  }
  return parse_stream(end.value_or(Buffer{}));
}

struct Row {
  const char* name;
  Make make;
  std::optional<wire::TermError> error;  // nothing: it is allowed
};

void expect(Target& t, const Row& row, const std::function<Buffer(const Named&)>& ulpdu) {
  SCOPED_TRACE(row.name);
  const QpPtr q = t.waiting_qp();
  const auto frames = answer(t, row.make, ulpdu, q);
  if (!row.error) {
    EXPECT_TRUE(frames.empty() || frames.back().op() != Opcode::terminate) << names(frames);
    return;
  }
  ASSERT_FALSE(frames.empty());
  ASSERT_EQ(frames.back().op(), Opcode::terminate) << names(frames);
  const auto told = wire::Terminate::parse(frames.back().payload, true, true);
  EXPECT_EQ(told.error.to_string(), row.error->to_string());
}

TEST_F(AdapterMemory, writes) {
  const Row rows[] = {
      {"allowed", region(kAllAccess), {}},
      {"through a window", window_1, {}},
      {"unknown STag", unknown, term::kTaggedInvalidStag},
      {"deregistered", deregistered, term::kTaggedInvalidStag},
      {"no right", region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
       term::kProtectionAccess},
      {"other domain", of_another_domain, term::kTaggedNotOnStream},
      {"another queue pair's window", window_2_of_another_queue_pair, term::kTaggedNotOnStream},
  };
  for (const Row& row : rows) {
    expect(t, row,
           [](const Named& n) { return tagged({.stag = n.stag, .to = n.to()}, pattern(8, 7)); });
  }
}

TEST_F(AdapterMemory, reads) {
  const Row rows[] = {
      {"allowed", region(kAllAccess), {}},
      {"unknown STag", unknown, term::kProtectionInvalidStag},
      {"no right", region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
       term::kProtectionAccess},
      {"other domain", of_another_domain, term::kProtectionNotOnStream},
      {"another queue pair's window", window_2_of_another_queue_pair, term::kProtectionNotOnStream},
  };
  for (const Row& row : rows) {
    expect(t, row, [](const Named& n) {
      return read_request(1, {.sink_stag = Stag{5},
                              .size = 8,
                              .source_stag = n.stag,
                              .source_to = TaggedOffset{n.to()}});
    });
  }
}

TEST_F(AdapterMemory, atomics) {
  const Row rows[] = {
      {"allowed", region(kAllAccess), {}},
      {"no right",
       region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
       term::kProtectionAccess},
      {"a window without the right", window_1, term::kProtectionAccess},
      {"other domain", of_another_domain, term::kProtectionNotOnStream},
  };
  for (const Row& row : rows) {
    expect(t, row, [](const Named& n) {
      return atomic_request(1, {.stag = n.stag, .to = TaggedOffset{(n.to() + 7) & ~uint64_t{7}}});
    });
  }
}

// spec/rdmap 2.5: 0/1/09 for what belongs to somebody else, 0/2/09 for all else. Of this program's
// memory only a window of type 2 can be invalidated; regions never (InfiniBand 10.6.2).
TEST_F(AdapterMemory, invalidations_from_afar) {
  const Row rows[] = {
      {"a window of type 2", window_2, {}},
      {"unknown STag", unknown, term::kOperationCannotInvalidate},
      {"deregistered", deregistered, term::kOperationCannotInvalidate},
      {"a region", region(kAllAccess), term::kOperationCannotInvalidate},
      {"a window of type 1", window_1, term::kOperationCannotInvalidate},
      {"other domain", of_another_domain, term::kProtectionCannotInvalidate},
      {"another queue pair's window", window_2_of_another_queue_pair,
       term::kProtectionCannotInvalidate},
  };
  for (const Row& row : rows) {
    expect(t, row, [](const Named& n) {
      return untagged({.op = Opcode::send_inv, .word = n.stag.value()}, pattern(8, 7));
    });
  }
}

// The queue pair's own rights come first.
TEST_F(AdapterMemory, a_queue_pair_that_allows_nothing) {
  const QpPtr q = t.waiting_qp();
  ibv_qp_attr attr{};
  attr.qp_access_flags = 0;
  ASSERT_EQ(ibv_modify_qp(q.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
  const auto frames = answer(
      t, region(kAllAccess),
      [](const Named& n) { return tagged({.stag = n.stag, .to = n.to()}, pattern(8, 7)); }, q);
  ASSERT_FALSE(frames.empty());
  ASSERT_EQ(frames.back().op(), Opcode::terminate);
  EXPECT_EQ(wire::Terminate::parse(frames.back().payload, true, true).error,
            term::kProtectionAccess);
}

// It works once, and the receive tells which.
TEST_F(AdapterMemory, an_invalidated_window_is_closed) {
  const QpPtr q = t.waiting_qp();
  RawPeer peer = t.open(q);
  Named n;
  window_2(t, q, n);
  const Buffer before = n.bytes;
  peer.says_ulpdu(untagged({.op = Opcode::send_inv, .word = n.stag.value()}, pattern(8, 7)));
  const auto done = collect(t.cq.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_NE(done[0].wc_flags & IBV_WC_WITH_INV, 0U);
  EXPECT_EQ(done[0].invalidated_rkey, n.stag.value());
  peer.says_ulpdu(tagged({.stag = n.stag, .to = n.to()}, pattern(8, 7)));
  const auto frames = parse_stream(peer.hears_the_end().value_or(Buffer{}));
  ASSERT_FALSE(frames.empty());
  ASSERT_EQ(frames.back().op(), Opcode::terminate);
  EXPECT_EQ(wire::Terminate::parse(frames.back().payload, true, true).error,
            term::kTaggedInvalidStag);
  EXPECT_TRUE(n.bytes == before);
}

}  // namespace
}  // namespace weft::test
