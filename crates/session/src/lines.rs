//! [`lines`]: splits a file of JSON lines.

/// The lines of a file, each with its line end; the last one may have none.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends() {
        let all = |text: &'static str| lines(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all("a\n\r\nb"), [&b"a\n"[..], b"\r\n", b"b"]);
        assert_eq!(all("\n\n"), [b"\n", b"\n"]);
        assert_eq!(all("").len(), 0);
    }
}
