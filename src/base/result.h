// Result<T, E>: a value or the error that kept it from being. Ok is the value of "nothing to say".
#pragma once

#include <type_traits>
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

// Value and error side by side where both are small and plain: that travels in registers. (A
// variant is put together in memory, byte by byte, and reading it back whole stalls the processor;
// the data path returns several of these for every segment.)
template <class T, class E>
class PlainResult {
 protected:
  constexpr explicit PlainResult(std::in_place_index_t<0>, T v) : value_(v) {}
  constexpr explicit PlainResult(std::in_place_index_t<1>, E e) : error_(e), failed_(true) {}
  constexpr bool has_failed() const { return failed_; }
  constexpr T* value() { return &value_; }
  constexpr const T* value() const { return &value_; }
  constexpr E* why() { return &error_; }
  constexpr const E* why() const { return &error_; }

 private:
  [[no_unique_address]] T value_{};
  [[no_unique_address]] E error_{};
  bool failed_ = false;
};

template <class T, class E>
class RichResult {
 protected:
  constexpr explicit RichResult(std::in_place_index_t<0> i, T v) : v_(i, std::move(v)) {}
  constexpr explicit RichResult(std::in_place_index_t<1> i, E e) : v_(i, std::move(e)) {}
  constexpr bool has_failed() const { return v_.index() != 0; }
  constexpr T* value() { return std::get_if<0>(&v_); }
  constexpr const T* value() const { return std::get_if<0>(&v_); }
  constexpr E* why() { return std::get_if<1>(&v_); }
  constexpr const E* why() const { return std::get_if<1>(&v_); }

 private:
  std::variant<T, E> v_;
};

template <class T>
inline constexpr bool kPlain =
    std::is_trivially_copyable_v<T>&& std::is_default_constructible_v<T> && sizeof(T) <= 8;

template <class T, class E>
class [[nodiscard]] Result
    : private std::conditional_t<kPlain<T> && kPlain<E>, PlainResult<T, E>, RichResult<T, E>> {
  using Base = std::conditional_t<kPlain<T> && kPlain<E>, PlainResult<T, E>, RichResult<T, E>>;

 public:
  constexpr Result(T v)  // NOLINT(google-explicit-constructor)
      : Base(std::in_place_index<0>, std::move(v)) {}
  template <class F>
  constexpr Result(Failure<F> f)  // NOLINT(google-explicit-constructor)
      : Base(std::in_place_index<1>, std::move(f.error)) {}

  constexpr bool ok() const { return !this->has_failed(); }
  constexpr explicit operator bool() const { return ok(); }
  // Only when ok().
  constexpr T& operator*() { return *this->value(); }
  constexpr const T& operator*() const { return *this->value(); }
  constexpr T* operator->() { return this->value(); }
  constexpr const T* operator->() const { return this->value(); }
  // Only when not ok().
  constexpr E& error() { return *this->why(); }
  constexpr const E& error() const { return *this->why(); }
};

}  // namespace weft
