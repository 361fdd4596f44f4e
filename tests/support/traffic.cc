#include "tests/support/traffic.h"

#include <gtest/gtest.h>

#include "tests/support/traffic_flow.h"

namespace weft::test {

Traffic::Traffic(Pair& pair, const TrafficOptions& options)
    : forth_(std::make_unique<Flow>(pair, pair.a, pair.b, options, 100)),
      back_(std::make_unique<Flow>(pair, pair.b, pair.a, options, 200)) {}
Traffic::~Traffic() = default;

void Traffic::expect_complete() const {
  {
    SCOPED_TRACE("from the Initiator to the Responder");
    forth_->expect_complete();
  }
  SCOPED_TRACE("from the Responder to the Initiator");
  back_->expect_complete();
}

void Traffic::expect_sound() const {
  {
    SCOPED_TRACE("from the Initiator to the Responder");
    forth_->expect_sound();
  }
  SCOPED_TRACE("from the Responder to the Initiator");
  back_->expect_sound();
}

const Traffic::Flow& Traffic::flow(const Side& side) const {
  return forth_->of(side) ? *forth_ : *back_;
}
size_t Traffic::posted(const Side& side) const {
  return flow(side).posted();
}
size_t Traffic::succeeded(const Side& side) const {
  return flow(side).succeeded();
}

}  // namespace weft::test
