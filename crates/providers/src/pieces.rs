//! What both codecs write.

use std::fmt;

use hardpan_prompt::{Image, Lifetime, Segment};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Serialises a body, which is expected to take about `room` bytes. Serialising to memory cannot fail: every key is a string, and every value is known.
pub fn to_bytes(body: &impl Serialize, room: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(room);
    match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

/// Segments as one string, escaped as they are written and never put together in memory.
pub struct Joined<'a>(pub &'a [Segment]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| f.write_str(&segment.text))
    }
}

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [only] => serializer.serialize_str(&only.text),
            _ => serializer.collect_str(self),
        }
    }
}

/// Several texts as one string, a newline between them.
pub struct Lines<'a>(pub Vec<&'a [Segment]>);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, segments)| {
            if index > 0 {
                f.write_str("\n")?;
            }
            Joined(segments).fmt(f)
        })
    }
}

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [only] => Joined(only).serialize(serializer),
            _ => serializer.collect_str(self),
        }
    }
}

/// `cache_control`.
pub struct CacheControl(pub Lifetime);

impl Serialize for CacheControl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "ephemeral")?;
        match self.0 {
            Lifetime::FiveMinutes => {} // the default
            Lifetime::OneHour => map.serialize_entry("ttl", "1h")?,
        }
        map.end()
    }
}

/// An image as a `data:` address.
pub struct DataUrl<'a>(pub &'a Image);

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.0.media_type.name(), self.0.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A list made by a function: `serde` writes what it is given, one after the other.
pub struct List<F>(pub F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
