//! Work on files away from the async threads, which ends when nobody waits for it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::Scope;
use crate::tool::{Call, Outcome, arguments};

/// Says whether anybody still waits.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Whether the work is to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels when it is dropped: with the future that holds it.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a call's work on a thread that may block. The work looks at [`Cancel`] where it could take long.
pub(crate) fn run<'a, A, W>(call: Call<'a>, work: W) -> BoxFuture<'a, Outcome>
where
    A: DeserializeOwned + Send + 'static,
    W: FnOnce(A, &Scope, &Cancel) -> Result<Outcome, Outcome> + Send + 'static,
{
    Box::pin(async move {
        let arguments: A = match arguments(&call) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        let scope = call.scope.clone();
        let guard = CancelOnDrop(Cancel::default());
        let cancel = guard.0.clone();
        let task = spawn_blocking(move || work(arguments, &scope, &cancel).unwrap_or_else(|failure| failure));
        task.await.unwrap_or_else(|error| Outcome::failed(format!("The tool itself failed: {error}")))
    })
}

/// A reader that fails once its work is cancelled: the largest file is given up within one buffer.
pub(crate) struct Cancellable<'a, R> {
    pub reader: R,
    pub cancel: &'a Cancel,
}

impl<R: Read> Read for Cancellable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_set() { Err(io::Error::other("cancelled")) } else { self.reader.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use hardpan_prompt::Json;
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn dropping_the_future_ends_the_work() {
        let (started, has_started) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let (arguments, scope) = (Json::default(), Scope::new("/", "/"));
        let call = Call { id: "1", arguments: &arguments, scope: &scope, progress: &|_| {} };
        let mut future = run(call, move |_: Value, _, cancel| {
            started.send(()).unwrap();
            let mut endless = Cancellable { reader: io::repeat(0), cancel };
            let error = io::copy(&mut endless, &mut io::sink()).unwrap_err();
            ended.send(error.to_string()).unwrap();
            Ok(Outcome::text(""))
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut future).await.is_err());
        has_started.recv().unwrap();
        assert!(has_ended.try_recv().is_err());
        drop(future);
        assert_eq!(has_ended.recv_timeout(Duration::from_secs(60)).unwrap(), "cancelled");
    }

    #[tokio::test]
    async fn work_that_panics_is_a_failure_of_its_call_alone() {
        let (arguments, scope) = (Json::default(), Scope::new("/", "/"));
        let call = Call { id: "1", arguments: &arguments, scope: &scope, progress: &|_| {} };
        let outcome = run(call, |_: Value, _, _| panic!("on purpose")).await;
        assert!(outcome.is_error);
    }
}
