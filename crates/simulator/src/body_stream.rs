//! Streams a [`Body`] with its delays, for the server and for the in-process transport alike.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use thiserror::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::reply::{Body, BodyEnding, Chunk};

/// How long written bytes get to leave the socket before the connection is closed.
const FLUSH_TIME: Duration = Duration::from_millis(5);

/// The simulator cut the connection in the middle of a body, because a fault says so or the server
/// stops.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the simulator closed the connection, as it was told to")]
pub struct ConnectionCut;

/// The chunks of a body, each after its delay. Ends early when `stop` is cancelled.
pub fn stream_body(
    body: Body,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Bytes, ConnectionCut>> + Send {
    let (chunks, ending) = match body {
        Body::Whole(bytes) => (vec![Chunk { delay: Duration::ZERO, bytes }], BodyEnding::Complete),
        Body::Stream(chunks, ending) => (chunks, ending),
    };
    unfold((VecDeque::from(chunks), Some(ending), stop), |(mut chunks, ending, stop)| async move {
        let ending = ending?;
        if let Some(Chunk { delay, bytes }) = chunks.pop_front() {
            let item =
                if sleep_unless_cancelled(delay, &stop).await { Ok(bytes) } else { Err(ConnectionCut) };
            let ending = Some(ending).filter(|_| item.is_ok());
            return Some((item, (chunks, ending, stop)));
        }
        match ending {
            BodyEnding::Complete => return None,
            BodyEnding::Cut => sleep(FLUSH_TIME).await,
            BodyEnding::Stall(lasts) => {
                sleep_unless_cancelled(lasts, &stop).await;
            }
        }
        Some((Err(ConnectionCut), (chunks, None, stop)))
    })
}

/// Sleeps. Returns whether the time has passed: `false` if `stop` was cancelled first.
pub async fn sleep_unless_cancelled(time: Duration, stop: &CancellationToken) -> bool {
    if time.is_zero() {
        return !stop.is_cancelled();
    }
    tokio::select! {
        () = sleep(time) => true,
        () = stop.cancelled() => false,
    }
}
