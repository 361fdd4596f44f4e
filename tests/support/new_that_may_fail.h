// operator new of a program whose tests take its memory away (WantOfMemory). In one source of it.
#pragma once

#include <cstdlib>
#include <new>

#include "tests/support/want_of_memory.h"

// All of this program's. Those of arrays too: a sanitizer's do not come to the others.
void* operator new(size_t size) {
  if (weft::test::WantOfMemory::fails()) throw std::bad_alloc{};
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc{};
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return weft::test::WantOfMemory::fails() ? nullptr : std::malloc(size);
}
void* operator new[](size_t size) {
  return ::operator new(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
