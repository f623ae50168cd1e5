//! Immutable text that is hashed once and shared.
//!
//! The principal types are [`Text`] and [`Json`]. Both know their [`Hash`], so that comparing,
//! counting and caching never look at the bytes twice.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A content hash: the first 16 bytes of BLAKE3. The same on every machine and in every run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 16]);

impl Hash {
    /// Hashes `bytes`. The empty slice has a hash, too.
    pub fn of(bytes: &[u8]) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Hash(short)
    }

    /// Hashes a sequence of hashes; their order matters.
    pub fn chain(hashes: impl IntoIterator<Item = Hash>) -> Self {
        let mut chain = HashChain::default();
        hashes.into_iter().for_each(|hash| chain.add(hash));
        chain.hash()
    }

    /// Derives the hash of the same content in another role: every `mark` but 0 gives a different
    /// hash.
    pub fn with_mark(self, mark: u8) -> Self {
        Hash(self.0.map(|byte| byte ^ mark))
    }

    /// The hash that has these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Hash(bytes)
    }

    /// The 16 bytes, as they are compared and written in hexadecimal.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// A hash over a growing sequence, which can be read at any point without ending it.
#[derive(Clone, Debug, Default)]
pub struct HashChain(blake3::Hasher);

impl HashChain {
    /// Appends a hash to the sequence.
    pub fn add(&mut self, hash: Hash) {
        self.0.update(&hash.0);
    }

    /// Appends a short text with its length, so that neighbouring texts cannot run into each other.
    pub fn add_text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> Hash {
        let mut short = [0; 16];
        short.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        Hash(short)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("expected a hash of 32 hexadecimal digits");
        if text.len() != 32 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Hash(bytes))
    }
}

/// Text that never changes. Cloning shares it, and its hash is computed once, when it is made.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    hash: Hash,
    text: Box<str>,
}

impl Text {
    /// Takes ownership of the text and hashes it.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        Text(Arc::new(Inner { hash: Hash::of(text.as_bytes()), text }))
    }

    /// The hash of the bytes.
    pub fn hash(&self) -> Hash {
        self.0.hash
    }

    /// The text as a string slice, like `Deref`.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::new("")
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash
    }
}

impl Eq for Text {}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::new(text)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Text::new)
    }
}

impl schemars::JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// A JSON value kept as its compact bytes, so that it is sent back exactly as it was received.
#[derive(Clone)]
pub struct Json {
    raw: Arc<RawValue>,
    hash: Hash,
}

impl Json {
    /// Writes `value` in its compact form; object keys keep their order.
    pub fn new(value: &serde_json::Value) -> Self {
        let raw = serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()); // a Value always serialises
        let hash = Hash::of(raw.get().as_bytes());
        Json { raw: Arc::from(raw), hash }
    }

    /// The compact JSON, as it is sent.
    pub fn as_str(&self) -> &str {
        self.raw.get()
    }

    /// The hash of the compact text.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Parses the compact JSON into a new value.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.raw.get()).unwrap_or_default()
    }

    /// Whether the value is an object, as tool arguments must be.
    pub fn is_object(&self) -> bool {
        self.raw.get().starts_with('{')
    }
}

impl Default for Json {
    fn default() -> Self {
        Json::new(&serde_json::Value::Object(serde_json::Map::new()))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    // Through a Value, because messages are internally tagged and raw values cannot be read from
    // serde's buffer.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(|value| Json::new(&value))
    }
}

impl schemars::JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_survives_its_written_form() {
        let hash = Hash::of(b"abc");
        let written = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<Hash>(&written).unwrap(), hash);
        assert!(serde_json::from_str::<Hash>("\"abc\"").is_err());
    }

    #[test]
    fn json_keeps_the_order_of_its_keys() {
        let value: serde_json::Value = serde_json::from_str(r#"{ "b": 1, "a": [ 1.0 ] }"#).unwrap();
        assert_eq!(Json::new(&value).as_str(), r#"{"b":1,"a":[1.0]}"#);
    }
}
