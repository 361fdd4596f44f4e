// Result<T, E>: a value or the error that kept it from being. Ok is the value of "nothing to say".
#pragma once

#include <utility>
#include <variant>

namespace weft {

struct Ok {};

template <class E>
struct Failure {
  E error;
};
template <class E>
constexpr Failure<std::decay_t<E>> fail(E&& e) {
  return {std::forward<E>(e)};
}

template <class T, class E>
class [[nodiscard]] Result {
 public:
  constexpr Result(T v)
      : v_(std::in_place_index<0>, std::move(v)) {}  // NOLINT(google-explicit-constructor)
  template <class F>
  constexpr Result(Failure<F> f)  // NOLINT(google-explicit-constructor)
      : v_(std::in_place_index<1>, std::move(f.error)) {}

  constexpr bool ok() const { return v_.index() == 0; }
  constexpr explicit operator bool() const { return ok(); }
  // Only when ok().
  constexpr T& operator*() { return *std::get_if<0>(&v_); }
  constexpr const T& operator*() const { return *std::get_if<0>(&v_); }
  constexpr T* operator->() { return std::get_if<0>(&v_); }
  constexpr const T* operator->() const { return std::get_if<0>(&v_); }
  // Only when not ok().
  constexpr E& error() { return *std::get_if<1>(&v_); }
  constexpr const E& error() const { return *std::get_if<1>(&v_); }

 private:
  std::variant<T, E> v_;
};

}  // namespace weft
