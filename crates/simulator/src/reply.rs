//! [`Reply`]: what the simulator sends back, with the delays of its parts.

use std::time::Duration;

use bytes::Bytes;
use hardpan_economy::cache;
use hardpan_prompt::Hash;

use crate::request_log::AnswerBill;

/// A response, ready to be sent.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// How long to wait before the headers are sent.
    pub delay: Duration,
    /// The body, with its own delays.
    pub body: Body,
    /// What the answer is billed; `None` for errors and for everything that is free.
    pub bill: Option<Box<AnswerBill>>,
    /// What to write to the cache once the headers are sent; `None` for errors.
    pub(crate) cache_write: Option<Box<CacheWrite>>,
}

impl Reply {
    /// The value of the header `name`, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// A response body, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// All bytes at once.
    Whole(Bytes),
    /// Chunk by chunk, with delays; it may end badly.
    Stream(Vec<Chunk>, BodyEnding),
}

impl Body {
    /// All bytes of the body, without delays.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Body::Whole(bytes) => bytes.to_vec(),
            Body::Stream(chunks, _) => chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect(),
        }
    }
}

/// A piece of a streamed body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How long to wait before these bytes are sent.
    pub delay: Duration,
    /// The bytes: usually one event.
    pub bytes: Bytes,
}

/// How a streamed body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnding {
    /// Completely, with the end of the HTTP body.
    Complete,
    /// By closing the connection.
    Cut,
    /// By sending nothing for this long, then closing the connection.
    Stall(Duration),
}

/// A request that is to be written to the cache of its organisation.
#[derive(Debug)]
pub(crate) struct CacheWrite {
    pub organisation: Hash,
    pub rules: cache::CacheRules,
    pub request: cache::CacheRequest,
}
