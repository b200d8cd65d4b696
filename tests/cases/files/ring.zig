const std = @import("std");

/// A ring of bytes.
pub const Ring = struct {
    items: []u8,
    first: usize = 0,
    count: usize = 0,

    pub fn push(self: *Ring, item: u8) error{Full}!void {
        if (self.count == self.items.len) return error.Full;
        self.items[(self.first + self.count) % self.items.len] = item;
        self.count += 1;
    }
};

const help =
    \\usage: ring "bytes" (
    \\
;

test "a ring is full" {
    var bytes: [2]u8 = .{ 'a', '\'' };
    var ring = Ring{ .items = &bytes };
    try ring.push(1); // the first
    try std.testing.expectError(error.Full, blk: {
        try ring.push(2);
        break :blk ring.push(3);
    });
}
