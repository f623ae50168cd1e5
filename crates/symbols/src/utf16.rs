//! [`utf16_units`]: tells UTF-16 files from others.

/// The code units of a file that begins with UTF-16's byte order mark, without the mark. `None` for
/// any other file; an odd byte at the end is left out.
pub fn utf16_units(content: &[u8]) -> Option<impl ExactSizeIterator<Item = u16>> {
    let (unit, rest): (fn([u8; 2]) -> u16, _) = match content {
        [0xFF, 0xFE, rest @ ..] => (u16::from_le_bytes, rest),
        [0xFE, 0xFF, rest @ ..] => (u16::from_be_bytes, rest),
        _ => return None,
    };
    Some(rest.as_chunks::<2>().0.iter().map(move |pair| unit(*pair)))
}
