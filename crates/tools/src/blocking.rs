//! [`run`]: runs file operations on a thread that may block, and cancels them when their call is
//! dropped.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::Scope;
use crate::tool::{ToolInvocation, ToolOutcome, parse_arguments};

/// Says whether a call was dropped, so that its work should end.
#[derive(Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Whether the work should end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag when it is dropped, together with the future that holds it.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Parses the arguments of a call and runs `work` on a thread that may block. Work that can take
/// long must look at the [`CancelFlag`].
pub(crate) fn run<'a, A, W>(call: ToolInvocation<'a>, work: W) -> BoxFuture<'a, ToolOutcome>
where
    A: DeserializeOwned + Send + 'static,
    W: FnOnce(A, &Scope, &CancelFlag) -> Result<ToolOutcome, ToolOutcome> + Send + 'static,
{
    Box::pin(async move {
        let arguments: A = match parse_arguments(&call) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        let scope = call.scope.clone();
        let guard = CancelOnDrop(CancelFlag::default());
        let cancel = guard.0.clone();
        let task = spawn_blocking(move || work(arguments, &scope, &cancel).unwrap_or_else(|failure| failure));
        task.await.unwrap_or_else(|error| ToolOutcome::failed(format!("The tool itself failed: {error}")))
    })
}

/// A reader that fails once the work is cancelled, so that even the largest file is given up within
/// one buffer.
pub(crate) struct CancellableReader<'a, R> {
    pub reader: R,
    pub cancel: &'a CancelFlag,
}

impl<R: Read> Read for CancellableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_set() { Err(io::Error::other("cancelled")) } else { self.reader.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use hardpan_context::knowledge::FileKnowledge;
    use hardpan_prompt::Json;
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn dropping_the_future_ends_the_work() {
        let (started, has_started) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let (arguments, scope) = (Json::default(), Scope::new("/", "/"));
        let knowledge = FileKnowledge::default();
        let call = ToolInvocation {
            id: "1",
            arguments: &arguments,
            scope: &scope,
            knowledge: &knowledge,
            progress: &|_| {},
        };
        let mut future = run(call, move |_: Value, _, cancel| {
            started.send(()).unwrap();
            let mut endless = CancellableReader { reader: io::repeat(0), cancel };
            let error = io::copy(&mut endless, &mut io::sink()).unwrap_err();
            ended.send(error.to_string()).unwrap();
            Ok(ToolOutcome::text(""))
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
        let knowledge = FileKnowledge::default();
        let call = ToolInvocation {
            id: "1",
            arguments: &arguments,
            scope: &scope,
            knowledge: &knowledge,
            progress: &|_| {},
        };
        let outcome = run(call, |_: Value, _, _| panic!("on purpose")).await;
        assert!(outcome.is_error);
    }
}
