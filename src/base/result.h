// Result<T, E>: a value or the error that kept it from being. Ok is the value of "nothing to say".
#pragma once

#include <cstdint>
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

// How an error fits into a word. Enumerations do; other small ones say how by a specialisation.
template <class E>
struct ErrorBits;
template <class E>
requires std::is_enum_v<E>
struct ErrorBits<E> {
  static constexpr uint32_t pack(E e) { return static_cast<uint32_t>(e); }
  static constexpr E unpack(uint32_t bits) { return static_cast<E>(bits); }
};
template <class E>
concept Packs = requires(E e) {
  ErrorBits<E>::unpack(ErrorBits<E>::pack(e));
};

// Value and error in a register each. (A variant or a struct of bytes is put together in memory,
// byte by byte, and reading it back whole stalls the processor; the data path returns several of
// these for every segment.)
template <class T, class E>
class PlainResult {
 protected:
  constexpr explicit PlainResult(std::in_place_index_t<0>, T v) : value_(v) {}
  constexpr explicit PlainResult(std::in_place_index_t<1>, E e)
      : why_(kFailed | ErrorBits<E>::pack(e)) {}
  constexpr bool has_failed() const { return why_ != 0; }
  constexpr T* value() { return &value_; }
  constexpr const T* value() const { return &value_; }
  constexpr E why() const { return ErrorBits<E>::unpack(static_cast<uint32_t>(why_)); }

 private:
  static constexpr uint64_t kFailed = uint64_t{1} << 32;
  [[no_unique_address]] T value_{};
  uint64_t why_ = 0;
};

template <class T, class E>
class RichResult {
 protected:
  constexpr explicit RichResult(std::in_place_index_t<0> i, T v) : v_(i, std::move(v)) {}
  constexpr explicit RichResult(std::in_place_index_t<1> i, E e) : v_(i, std::move(e)) {}
  constexpr bool has_failed() const { return v_.index() != 0; }
  constexpr T* value() { return std::get_if<0>(&v_); }
  constexpr const T* value() const { return std::get_if<0>(&v_); }
  constexpr const E& why() const { return *std::get_if<1>(&v_); }

 private:
  std::variant<T, E> v_;
};

template <class T>
inline constexpr bool kPlain =
    std::is_trivially_copyable_v<T>&& std::is_default_constructible_v<T> && sizeof(T) <= 8;

template <class T, class E>
class [[nodiscard]] Result
    : private std::conditional_t<kPlain<T> && Packs<E>, PlainResult<T, E>, RichResult<T, E>> {
  using Base = std::conditional_t<kPlain<T> && Packs<E>, PlainResult<T, E>, RichResult<T, E>>;

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
  constexpr decltype(auto) error() const { return this->why(); }
};

}  // namespace weft
