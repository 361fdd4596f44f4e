#include "work/faults.h"

#include <gtest/gtest.h>

namespace weft::work {
namespace {

using Fault = MemoryFault;
namespace term = wire::term;

// spec/errors 3, row by row.
TEST(Faults, OfAWrite) {
  EXPECT_EQ(write_fault(Fault::invalid_stag), term::kTaggedInvalidStag);
  EXPECT_EQ(write_fault(Fault::bounds), term::kTaggedBounds);
  EXPECT_EQ(write_fault(Fault::not_on_stream), term::kTaggedNotOnStream);
  EXPECT_EQ(write_fault(Fault::wraps), term::kTaggedToWrap);
  EXPECT_EQ(write_fault(Fault::access), term::kProtectionAccess);
}

TEST(Faults, OfAReadOrAtomic) {
  EXPECT_EQ(read_fault(Fault::invalid_stag), term::kProtectionInvalidStag);
  EXPECT_EQ(read_fault(Fault::bounds), term::kProtectionBounds);
  EXPECT_EQ(read_fault(Fault::access), term::kProtectionAccess);
  EXPECT_EQ(read_fault(Fault::not_on_stream), term::kProtectionNotOnStream);
  EXPECT_EQ(read_fault(Fault::wraps), term::kProtectionToWrap);
}

TEST(Faults, OfAnInvalidation) {
  EXPECT_EQ(invalidate_fault(Fault::not_on_stream), term::kProtectionCannotInvalidate);
  EXPECT_EQ(invalidate_fault(Fault::access), term::kProtectionCannotInvalidate);
  EXPECT_EQ(invalidate_fault(Fault::invalid_stag), term::kOperationCannotInvalidate);
  EXPECT_EQ(invalidate_fault(Fault::cannot_invalidate), term::kOperationCannotInvalidate);
}

}  // namespace
}  // namespace weft::work
