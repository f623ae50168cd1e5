#include "geo/shape.hpp"
#include <iostream>

using namespace geo;

namespace geo::shapes {

template <typename T, int N>
Stack<T, N>::Stack(int size, std::string name) : count_(size), cursor_(nullptr) {}

template <typename T, int N>
Stack<T, N>::~Stack() = default;

template <typename T, int N>
T &Stack<T, N>::operator[](std::size_t index) { return items_[index]; }

template <typename T, int N>
const T *Stack<T, N>::data() const { return items_.data(); }

namespace {
int helper(int value) { return value; }
}

double Circle::area() const
{
    auto square = [](double x) { return x * x; };
    return kPi * square(radius_) + helper(1);
}

std::ostream &operator<<(std::ostream &out, const Length &length) { return out << length.metres; }

}  // namespace geo::shapes

geo::Length geo::Length::operator+(geo::Length other) const { return {metres + other.metres}; }

extern "C" int geo_version() { return 3; }

int main()
{
    auto *circle = new shapes::Circle(2.0);
    shapes::draw(*circle);
    return static_cast<int>(circle->area());
}
