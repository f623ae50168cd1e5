#pragma once
#include <memory>
#include <string>
#include <vector>
#include "geo/units.h"

#define GEO_EXPORT __attribute__((visibility("default")))

namespace geo::shapes {

class Visitor;

/// A class with everything that a class can have.
template <typename T, int N = 2>
class Stack : public Base<T>, private detail::Counter {
public:
    explicit Stack(int size = 8, std::string name = "stack");
    Stack(const Stack &) = delete;
    virtual ~Stack();

    T &top() { return items_.back(); }
    const T *data() const;
    virtual void accept(Visitor &visitor, ...) = 0;
    bool operator==(const Stack &other) const { return size() == other.size(); }
    T &operator[](std::size_t index);
    explicit operator bool() const { return size() > 0; }
    auto size() const -> std::size_t { return items_.size(); }
    template <typename... Args>
    void emplace(Args &&...args);
    static std::unique_ptr<Stack> make(T (&values)[N]);
    friend std::ostream &operator<<(std::ostream &out, const Stack &stack);

    enum class Mode : unsigned char { Fast, Safe = 3 };
    struct Iterator {
        T *at = nullptr;
    };
    using value_type = T;

protected:
    std::vector<T> items_;
    int count_ = 0, *cursor_;
    static constexpr int kLimit = 64;
};

template <>
class Stack<bool, 1> {
    unsigned bits_ : 8;
};

class GEO_EXPORT Circle : public Shape {
public:
    Circle(double radius);
    double area() const override;

private:
    double radius_;
};

template <typename T>
concept Drawable = requires(T shape) { shape.draw(); };

template <typename T>
using Pair = std::pair<T, T>;

inline constexpr double kPi = 3.14;

template <Drawable T>
void draw(const T &shape, int times = 1)
{
    for (int i = 0; i < times; ++i) shape.draw();
}

union Value {
    int whole;
    float part;
};

}  // namespace geo::shapes
