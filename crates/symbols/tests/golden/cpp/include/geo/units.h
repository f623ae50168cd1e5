#ifndef GEO_UNITS_H
#define GEO_UNITS_H
namespace geo {
constexpr unsigned long long operator""_km(unsigned long long n) { return n * 1000; }
struct Length {
    double metres;
    Length operator+(Length other) const;
};
typedef struct Point { int x, y; } Point;
}
#endif
