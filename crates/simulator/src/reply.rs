//! What a simulator sends back: decided at once, sent in its time.

use std::time::Duration;

use bytes::Bytes;
use hardpan_economy::cache;
use hardpan_prompt::Hash;

/// An answer as it is to be sent.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// How long to wait before the head is sent.
    pub delay: Duration,
    /// The body.
    pub body: Body,
    /// What the cache keeps of the request once this answer has begun.
    pub(crate) kept: Option<Box<Kept>>,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// A body as it is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In one piece.
    Whole(Bytes),
    /// In pieces.
    Stream(Vec<Chunk>, Ending),
}

impl Body {
    /// All bytes that are ever sent.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Body::Whole(bytes) => bytes.to_vec(),
            Body::Stream(chunks, _) => chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect(),
        }
    }
}

/// A piece of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How long to wait before it is sent.
    pub delay: Duration,
    /// The piece.
    pub bytes: Bytes,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Complete,
    /// The connection is closed.
    Cut,
    /// Nothing comes for so long; then the connection is closed.
    Stall(Duration),
}

/// A request that was answered, for the cache.
#[derive(Debug)]
pub(crate) struct Kept {
    pub organisation: Hash,
    pub rules: cache::Rules,
    pub request: cache::Request,
}
