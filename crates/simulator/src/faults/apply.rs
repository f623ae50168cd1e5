//! Applies faults to the bytes of an answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::{ActiveFaults, Fault};
use crate::reply::{Body, BodyEnding, Chunk};
use crate::server_codec::ServerCodec;
use crate::wire::{EventKind, StreamEvent};

/// Bytes that are neither UTF-8 nor an event.
const GARBAGE: &[u8] = b"\n\ndata: {\"\xff\xfe\x00 garbage \x80\n\n";

impl ActiveFaults {
    /// Applies the faults to a stream. `error` is the body of an injected error event.
    pub fn apply_to_stream(
        &self,
        server: &dyn ServerCodec,
        mut events: Vec<StreamEvent>,
        pace: Duration,
        error: &Value,
    ) -> Body {
        for fault in &self.0 {
            match fault {
                Fault::Duplicate => {
                    let twice = |event: StreamEvent| {
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
                    events.push(StreamEvent { kind: EventKind::Frame, bytes: server.error_event(error) });
                }
                _ => {}
            }
        }
        let chunk = |(index, event): (usize, StreamEvent)| Chunk {
            delay: if index == 0 { Duration::ZERO } else { pace },
            bytes: event.bytes,
        };
        self.apply_to_chunks(events.into_iter().enumerate().map(chunk).collect())
    }

    /// Applies the faults to a body that is not streamed.
    pub fn apply_to_body(&self, body: Bytes, error: &Value) -> Body {
        let fails = self.0.iter().any(|fault| matches!(fault, Fault::Error(_)));
        let body = if fails { error.to_string().into() } else { body };
        match self.apply_to_chunks(vec![Chunk { delay: Duration::ZERO, bytes: body.clone() }]) {
            Body::Stream(chunks, BodyEnding::Complete) if chunks.len() == 1 => {
                Body::Whole(chunks.into_iter().next().map_or(body, |chunk| chunk.bytes))
            }
            changed => changed,
        }
    }

    /// Applies the faults that work on bytes, not on events.
    fn apply_to_chunks(&self, mut chunks: Vec<Chunk>) -> Body {
        let mut ending = BodyEnding::Complete;
        for fault in &self.0 {
            match fault {
                Fault::Garbage(after) => insert_bytes(&mut chunks, *after, GARBAGE),
                Fault::Cut(after) if ending == BodyEnding::Complete => {
                    truncate_chunks(&mut chunks, *after);
                    ending = BodyEnding::Cut;
                }
                Fault::Stall { after, lasts } if ending == BodyEnding::Complete => {
                    truncate_chunks(&mut chunks, *after);
                    ending = BodyEnding::Stall(*lasts);
                }
                _ => {}
            }
        }
        for fault in &self.0 {
            if let Fault::Drip { bytes, interval } = fault {
                chunks = split_into_drops(&chunks, *bytes, *interval);
            }
        }
        Body::Stream(chunks, ending)
    }
}

fn truncate_chunks(chunks: &mut Vec<Chunk>, size: usize) {
    let mut left = size;
    for chunk in chunks.iter_mut() {
        chunk.bytes.truncate(left);
        left -= chunk.bytes.len();
    }
    chunks.retain(|chunk| !chunk.bytes.is_empty());
}

fn insert_bytes(chunks: &mut Vec<Chunk>, at: usize, bytes: &'static [u8]) {
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

fn split_into_drops(chunks: &[Chunk], size: usize, interval: Duration) -> Vec<Chunk> {
    let all: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect();
    all.chunks(size).map(|piece| Chunk { delay: interval, bytes: Bytes::copy_from_slice(piece) }).collect()
}
