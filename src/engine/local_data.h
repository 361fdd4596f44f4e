// What the handlers of one kind share on an engine, such as a pool of their buffers. The engine
// knows no more of it than that it goes when the engine goes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace weft::engine {

// One object for each type that somebody has asked for. Engine holder only.
class LocalData {
 public:
  // Makes it when it is first asked for. There are one or two types: the search costs nothing.
  // Throws std::bad_alloc.
  template <class T>
  T& get() {
    for (const auto& [key, object] : objects_) {
      if (key == &kKey<T>) return *static_cast<T*>(object.get());
    }
    auto made = std::make_shared<T>();
    T& object = *made;
    objects_.emplace_back(&kKey<T>, std::move(made));
    return object;
  }

 private:
  template <class T>
  static constexpr char kKey = 0;  // its address stands for the type

  std::vector<std::pair<const void*, std::shared_ptr<void>>> objects_;
};

}  // namespace weft::engine
