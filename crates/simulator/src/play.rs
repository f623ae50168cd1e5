//! Sending a body in its time: the same for a socket and within the process.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use thiserror::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::reply::{Body, Chunk, Ending};

/// What has been written is given this long to leave before the connection is closed.
const FLUSH: Duration = Duration::from_millis(5);

/// The body breaks off here.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the simulator closed the connection, as it was told to")]
pub struct Broken;

/// The pieces of a body as they are due. Ends early when `stop` is cancelled.
pub fn play(body: Body, stop: CancellationToken) -> impl Stream<Item = Result<Bytes, Broken>> + Send {
    let (chunks, ending) = match body {
        Body::Whole(bytes) => (vec![Chunk { delay: Duration::ZERO, bytes }], Ending::Complete),
        Body::Stream(chunks, ending) => (chunks, ending),
    };
    unfold((VecDeque::from(chunks), Some(ending), stop), |(mut chunks, ending, stop)| async move {
        let ending = ending?;
        if let Some(Chunk { delay, bytes }) = chunks.pop_front() {
            let item = if pause(delay, &stop).await { Ok(bytes) } else { Err(Broken) };
            let ending = Some(ending).filter(|_| item.is_ok());
            return Some((item, (chunks, ending, stop)));
        }
        match ending {
            Ending::Complete => return None,
            Ending::Cut => sleep(FLUSH).await,
            Ending::Stall(lasts) => {
                pause(lasts, &stop).await;
            }
        }
        Some((Err(Broken), (chunks, None, stop)))
    })
}

/// Waits. Whether the time has passed: not if `stop` was cancelled before.
pub async fn pause(time: Duration, stop: &CancellationToken) -> bool {
    if time.is_zero() {
        return !stop.is_cancelled();
    }
    tokio::select! {
        () = sleep(time) => true,
        () = stop.cancelled() => false,
    }
}
