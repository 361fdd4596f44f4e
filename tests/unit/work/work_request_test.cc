#include "work/work_request.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace weft::work {
namespace {

TEST(WorkRequest, EveryOperationIsOfOneKind) {
  for (int i = 0; i <= static_cast<int>(Operation::bind_window); ++i) {
    const auto op = static_cast<Operation>(i);
    EXPECT_EQ(is_send(op) + is_write(op) + has_response(op) + is_local(op), 1) << i;
    if (is_atomic(op)) {
      EXPECT_TRUE(has_response(op));
    }
  }
}

TEST(WorkRequest, EveryStatusHasAName) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Status::general); ++i)
    names.insert(to_string(static_cast<Status>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Status::general) + 1);
  EXPECT_FALSE(names.contains("?"));
}

TEST(WorkRequest, ThePayloadStandsBehindTheRequest) {
  alignas(64) std::byte slot[sizeof(SendWqe) + 64];
  auto* w = new (slot) SendWqe;
  EXPECT_EQ(w->payload(), slot + sizeof(SendWqe));
  EXPECT_EQ(reinterpret_cast<std::byte*>(w->segment()), w->payload());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w->segment()) % alignof(LocalSegment), 0U);
}

}  // namespace
}  // namespace weft::work
