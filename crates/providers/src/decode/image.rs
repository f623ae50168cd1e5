//! Images in request bodies: base64 data or a URL.

use hardpan_prompt::{Image, MediaType};

/// The supported media types, in the order of Anthropic's error messages.
pub const MEDIA_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub fn media_type(name: &str) -> Option<MediaType> {
    [MediaType::Jpeg, MediaType::Png, MediaType::Gif, MediaType::Webp]
        .into_iter()
        .find(|kind| kind.name() == name)
}

/// An image from base64 data; `None` if the data is not valid base64. Only a PNG's size is read.
pub fn from_base64(media_type: MediaType, data: &str) -> Option<Image> {
    let digits = data.trim_end_matches('=');
    let padding = data.len() - digits.len();
    let is_whole = !digits.is_empty() && data.len().is_multiple_of(4) && padding <= 2;
    if !is_whole || !digits.bytes().all(|byte| digit(byte).is_some()) {
        return None;
    }
    let size = png_size(digits).filter(|_| media_type == MediaType::Png);
    let (width, height) = size.unzip();
    Some(Image { media_type, data: data.into(), width, height })
}

/// An image that the server would fetch. It is not fetched here: the URL stands in for its data,
/// and its size is unknown.
pub fn from_address(address: &str) -> Image {
    let path = address.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let media_type = match path.rsplit('.').next() {
        Some("jpg" | "jpeg") => MediaType::Jpeg,
        Some("gif") => MediaType::Gif,
        Some("webp") => MediaType::Webp,
        _ => MediaType::Png,
    };
    Image { media_type, data: address.into(), width: None, height: None }
}

/// An image from a `data:` URL; `None` if it is malformed or of an unsupported type.
pub fn from_data_url(address: &str) -> Option<Image> {
    let (name, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    from_base64(media_type(name)?, data)
}

/// Width and height from the header chunk of a PNG: the first 24 bytes, which are 32 base64 digits.
fn png_size(digits: &str) -> Option<(u32, u32)> {
    let digits = digits.as_bytes().first_chunk::<32>()?;
    let mut bytes = Vec::with_capacity(24);
    for four in digits.chunks_exact(4) {
        let bits = four.iter().try_fold(0, |bits, byte| Some(bits << 6 | digit(*byte)?))?;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let is_png = bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16)? == b"IHDR";
    if is_png { Some((number(16)?, number(20)?)) } else { None }
}

fn digit(byte: u8) -> Option<u32> {
    let digit = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(digit))
}
