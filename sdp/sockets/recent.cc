#include "sdp/sockets/recent.h"

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "sdp/sockets/look.h"
#include "sdp/sockets/stream.h"

namespace weft::sdp {
namespace {

using Clock = std::chrono::steady_clock;

// A server with more clients looks at none of them for long.
constexpr size_t kMost = 16;
// How often a thread that looks asks for what else it waits for.
constexpr std::chrono::microseconds kOthers{10};

// Of one thread.
class Streams {
 public:
  Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() {
    for (const Known& known : streams_) leave(known);
  }

  void note(Stream& stream) {
    for (const Known& known : streams_) {
      if (known.address == &stream && !known.stream.expired()) return;
    }
    Known& place = streams_[next_++ % kMost];
    leave(place);
    place = {&stream, stream.weak_from_this()};
    stream.looked_at(true);
  }
  std::vector<std::shared_ptr<Stream>> all() const {
    std::vector<std::shared_ptr<Stream>> found;
    for (const Known& known : streams_) {
      if (auto stream = known.stream.lock()) found.push_back(std::move(stream));
    }
    return found;
  }
  bool any() const { return next_ > 0; }
  void forget() {
    streams_ = {};
    next_ = 0;
  }

  LookTime look_time;

 private:
  struct Known {
    const Stream* address = nullptr;  // compared alone
    std::weak_ptr<Stream> stream;
  };
  static void leave(const Known& known) {
    if (const auto stream = known.stream.lock()) stream->looked_at(false);
  }

  std::array<Known, kMost> streams_;
  size_t next_ = 0;
};

Streams& mine() {
  thread_local Streams streams;
  return streams;
}

}  // namespace

void Recent::note(Stream& stream) {
  mine().note(stream);
}

bool Recent::any() {
  return mine().any();
}

bool Recent::look(const std::function<bool()>& other_news) {
  const auto streams = mine().all();
  if (streams.empty()) return false;
  const auto any_news = [&] {
    bool news = false;
    for (const auto& stream : streams) news = stream->look_for_news() || news;
    return news;
  };
  // Once in any case: news that is there already needs no event, each of which wakes the loop.
  if (any_news()) return true;
  LookTime& look_time = mine().look_time;
  const auto time = look_time.next();
  if (time.count() == 0) return false;
  if (other_news()) return true;
  auto others = Clock::now() + kOthers;
  return look_for(look_time, time, [&] {
    if (any_news()) return true;
    const auto now = Clock::now();
    if (now < others) return false;
    others = now + kOthers;
    return other_news();
  });
}

void Recent::forget_in_child() {
  mine().forget();
}

// A stream that ends meanwhile is not kept for it.
Recent::Sleep::Sleep() {
  for (const auto& stream : mine().all()) {
    stream->about_to_sleep();
    streams_.push_back(stream);
  }
}

Recent::Sleep::~Sleep() {
  for (const auto& still : streams_) {
    if (const auto stream = still.lock()) stream->awake();
  }
}

}  // namespace weft::sdp
