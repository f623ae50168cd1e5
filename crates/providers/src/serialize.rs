//! Serializers that codecs share for the parts of a request body.

use std::fmt;

use hardpan_models::{MarkerFormat, ProviderProfile};
use hardpan_prompt::{CacheLifetime, Image, Prompt, Segment};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// Serializes a body into a buffer of `room` bytes, which grows if needed. Serializing to memory
/// cannot fail: every key is a string and every value is valid.
pub fn to_bytes(body: &impl Serialize, room: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(room);
    match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

/// Serializes a message, to be kept and copied into several bodies. It cannot fail, as above.
pub fn to_raw_json(message: &impl Serialize) -> Box<RawValue> {
    to_raw_value(message).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Whether OpenAI's servers are to cache marked blocks only: `prompt_cache_options.mode` is
/// `explicit`.
///
/// By default the server also writes an entry at the end of the newest message, and reads at the
/// ends of earlier ones: for a conversation that only grows, nothing is cheaper. But a prompt that
/// ends with blocks that are different in each request would pay 1.25 times the price of input for
/// an entry that nobody reads. There the layout marks everything that stays, so its markers suffice,
/// and what follows them is plain input. A marker at the same place finds the entry of either mode.
pub fn caches_markers_only(prompt: &Prompt, profile: &ProviderProfile) -> bool {
    profile.markers == MarkerFormat::PromptCacheBreakpoint && prompt.ends_after_its_breakpoints()
}

/// Segments as one JSON string, escaped while they are written and never joined in memory.
pub struct JoinedSegments<'a>(pub &'a [Segment]);

impl fmt::Display for JoinedSegments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| f.write_str(&segment.text))
    }
}

impl Serialize for JoinedSegments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [only] => serializer.serialize_str(&only.text),
            _ => serializer.collect_str(self),
        }
    }
}

/// Several texts as one JSON string, with newlines between them.
pub struct JoinedLines<'a>(pub Vec<&'a [Segment]>);

impl fmt::Display for JoinedLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, segments)| {
            if index > 0 {
                f.write_str("\n")?;
            }
            JoinedSegments(segments).fmt(f)
        })
    }
}

impl Serialize for JoinedLines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [only] => JoinedSegments(only).serialize(serializer),
            _ => serializer.collect_str(self),
        }
    }
}

/// The value of `cache_control`, the cache marker of Anthropic.
pub struct CacheControl(pub CacheLifetime);

impl Serialize for CacheControl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "ephemeral")?;
        match self.0 {
            CacheLifetime::FiveMinutes => {} // the default
            CacheLifetime::OneHour => map.serialize_entry("ttl", "1h")?,
        }
        map.end()
    }
}

/// An image as a `data:` URL.
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

/// A JSON list whose elements an iterator produces while they are written, without a `Vec`.
pub struct LazyList<F>(pub F);

impl<F, I> Serialize for LazyList<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
