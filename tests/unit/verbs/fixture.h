// The adapter of this process for tests of verbs, without anything above it: queue pairs are
// connected by hand.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>

#include "port/tcp_listener.h"
#include "tests/support/hex.h"
#include "verbs/context.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {

using test::Buffer;
using test::pattern;

inline Adapter& adapter() {
  const auto a = Adapter::get([] { return std::unique_ptr<BringUp>{}; });
  if (!a.ok()) std::abort();  // no descriptors left: nothing here could work
  return **a;
}

class VerbsTest : public ::testing::Test {
 protected:
  VerbsTest() : context(adapter(), device::Device{}), pd(context) {}

  // Polls until `count` completions are there, or twenty seconds are over.
  static std::vector<Completion> poll(CompletionQueue& cq, size_t count) {
    std::vector<Completion> all;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (all.size() < count && std::chrono::steady_clock::now() < end) {
      Completion c[16];
      const size_t n = cq.poll(c);
      all.insert(all.end(), c, c + n);
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }
  Region* registered(Buffer& b, uint32_t flags = access::kLocalWrite | access::kRemoteWrite |
                                                 access::kRemoteRead | access::kRemoteAtomic) {
    auto r = adapter().memory().add(pd, b.data(), b.size(), reinterpret_cast<uintptr_t>(b.data()),
                                    flags);
    EXPECT_TRUE(r.ok());
    return r.ok() ? *r : nullptr;
  }
  static LocalSegment segment(const Region& r) {
    return {r.iova, static_cast<uint32_t>(r.length), r.stag};
  }

  Context context;
  ProtectionDomain pd;
};

}  // namespace weft::verbs
