const std = @import("std");
const stock = @import("stock.zig");
const Allocator = std.mem.Allocator;

pub const limit: u32 = 100;
var counter: usize = 0;
threadlocal var scratch: [8]u8 = undefined;

pub const Order = struct {
    id: u32,
    lines: []const Line = &.{},

    const Self = @This();
    pub const empty: Self = .{ .id = 0 };

    pub fn init(allocator: Allocator, id: u32) !Self {
        _ = allocator;
        return .{ .id = id };
    }

    pub inline fn ship(self: *Self, comptime T: type, args: anytype) error{Missing}!T {
        const Local = struct {
            fn hidden() void {}
        };
        Local.hidden();
        return stock.reserve(self.id, args);
    }
};

const Line = packed struct(u32) { price: u16, count: u16 };

pub const Status = enum(u8) {
    open,
    closed = 2,
    _,

    pub fn word(self: Status) []const u8 {
        return @tagName(self);
    }
};

const Value = union(enum) { whole: i64, part: f64, none };
pub const Failure = error{ Missing, TooMany };

pub fn List(comptime T: type) type {
    return struct {
        items: []T,
        pub fn len(self: @This()) usize {
            return self.items.len;
        }
    };
}

extern "c" fn printf(format: [*:0]const u8, ...) c_int;
export fn add(a: i32, b: i32) i32 {
    return a + b;
}

test "an order ships" {
    try std.testing.expect(limit == 100);
}
