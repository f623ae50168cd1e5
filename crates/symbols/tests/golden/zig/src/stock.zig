pub fn reserve(id: u32, args: anytype) error{Missing}!void {
    _ = id;
    _ = args;
}
