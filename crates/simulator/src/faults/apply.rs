//! What faults do to the bytes of an answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hardpan_models::Protocol;
use serde_json::Value;

use super::{Fault, Struck};
use crate::reply::{Body, Chunk, Ending};
use crate::wire::{self, EventKind, Sent};

/// Bytes that are neither text nor an event.
const GARBAGE: &[u8] = b"\n\ndata: {\"\xff\xfe\x00 garbage \x80\n\n";

impl Struck {
    /// A stream with the faults in it. `error` is the body that an error event carries.
    pub fn stream(&self, protocol: Protocol, mut events: Vec<Sent>, pace: Duration, error: &Value) -> Body {
        for fault in &self.0 {
            match fault {
                Fault::Duplicate => {
                    let twice = |event: Sent| {
                        if event.kind == EventKind::Delta { vec![event] } else { vec![event.clone(), event] }
                    };
                    events = events.into_iter().flat_map(twice).collect();
                }
                Fault::NoEnd => events.retain(|event| event.kind != EventKind::End),
                Fault::Error(after) => {
                    let mut sent = 0;
                    let keep = events.iter().take_while(|event| {
                        let begins = sent;
                        sent += event.bytes.len();
                        begins < *after
                    });
                    let keep = keep.count();
                    events.truncate(keep);
                    events.push(Sent { kind: EventKind::Frame, bytes: wire::error_event(protocol, error) });
                }
                _ => {}
            }
        }
        let chunk = |(index, event): (usize, Sent)| Chunk {
            delay: if index == 0 { Duration::ZERO } else { pace },
            bytes: event.bytes,
        };
        self.bytes(events.into_iter().enumerate().map(chunk).collect())
    }

    /// A body in one piece with the faults in it.
    pub fn whole(&self, body: Bytes, error: &Value) -> Body {
        let fails = self.0.iter().any(|fault| matches!(fault, Fault::Error(_)));
        let body = if fails { error.to_string().into() } else { body };
        match self.bytes(vec![Chunk { delay: Duration::ZERO, bytes: body.clone() }]) {
            Body::Stream(chunks, Ending::Complete) if chunks.len() == 1 => {
                Body::Whole(chunks.into_iter().next().map_or(body, |chunk| chunk.bytes))
            }
            changed => changed,
        }
    }

    /// The faults that know nothing of events.
    fn bytes(&self, mut chunks: Vec<Chunk>) -> Body {
        let mut ending = Ending::Complete;
        for fault in &self.0 {
            match fault {
                Fault::Garbage(after) => insert(&mut chunks, *after, GARBAGE),
                Fault::Cut(after) if ending == Ending::Complete => {
                    truncate(&mut chunks, *after);
                    ending = Ending::Cut;
                }
                Fault::Stall { after, lasts } if ending == Ending::Complete => {
                    truncate(&mut chunks, *after);
                    ending = Ending::Stall(*lasts);
                }
                _ => {}
            }
        }
        for fault in &self.0 {
            if let Fault::Drip { bytes, interval } = fault {
                chunks = drip(&chunks, *bytes, *interval);
            }
        }
        Body::Stream(chunks, ending)
    }
}

fn truncate(chunks: &mut Vec<Chunk>, size: usize) {
    let mut left = size;
    for chunk in chunks.iter_mut() {
        chunk.bytes.truncate(left);
        left -= chunk.bytes.len();
    }
    chunks.retain(|chunk| !chunk.bytes.is_empty());
}

fn insert(chunks: &mut Vec<Chunk>, at: usize, bytes: &'static [u8]) {
    let mut before = 0;
    for chunk in chunks.iter_mut() {
        let size = chunk.bytes.len();
        if before + size >= at {
            let mut joined = BytesMut::from(&chunk.bytes[..at - before]);
            joined.extend_from_slice(bytes);
            joined.extend_from_slice(&chunk.bytes[at - before..]);
            chunk.bytes = joined.freeze();
            return;
        }
        before += size;
    }
    chunks.push(Chunk { delay: Duration::ZERO, bytes: bytes.into() });
}

fn drip(chunks: &[Chunk], size: usize, interval: Duration) -> Vec<Chunk> {
    let all: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect();
    all.chunks(size).map(|piece| Chunk { delay: interval, bytes: Bytes::copy_from_slice(piece) }).collect()
}
