// What is to be sent is put together in an area of its own. The areas of one engine are in a pool:
// a stream or a socket has one only while the kernel has no room for what is in it, so that a
// thousand at rest have none.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace weft::drive {

// Engine holder only.
template <class Area>
class AreaPool {
 public:
  AreaPool() { areas_.reserve(kKept); }

  // An empty one. Throws std::bad_alloc.
  std::unique_ptr<Area> take() {
    if (areas_.empty()) return std::make_unique<Area>();
    auto area = std::move(areas_.back());
    areas_.pop_back();
    return area;
  }
  // Whatever is in it is dropped.
  void give(std::unique_ptr<Area> area) {
    area->clear();
    if (areas_.size() < kKept) areas_.push_back(std::move(area));
  }

 private:
  // Who goes on takes back what he has just given.
  static constexpr size_t kKept = 2;
  std::vector<std::unique_ptr<Area>> areas_;
};

}  // namespace weft::drive
