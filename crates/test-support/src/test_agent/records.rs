//! What happened: events, requests, messages, bills.

use std::sync::Arc;

use hardpan_agent::events::CacheVerdict;
use hardpan_agent::{AgentEvent, Event, session_ledger};
use hardpan_economy::Verdict;
use hardpan_prompt::TokenUsage;
use hardpan_session::{RequestRecord, Session};

use crate::{EventLog, NoteLog, SentRequest, TestAgent, line, request_lines};

impl TestAgent {
    /// The agent's events as they come.
    pub fn event_log(&self) -> &EventLog {
        self.seen.as_ref().expect("this agent records nothing")
    }

    /// Every event so far.
    pub fn events(&self) -> Vec<AgentEvent> {
        self.event_log().all()
    }

    /// The events of one type, in order.
    pub fn events_of<E: Event<Reply = ()>>(&self) -> Vec<E> {
        self.event_log().of()
    }

    /// Forgets the events so far.
    pub fn clear_events(&self) {
        self.event_log().clear();
    }

    /// The names of the events so far, in order, without `message_update` and `cache_verdict`.
    pub fn order(&self) -> Vec<String> {
        let names = self.events().into_iter().map(|event| event.name().to_owned());
        names.filter(|name| name != "message_update" && name != "cache_verdict").collect()
    }

    /// Every request so far, of all agents that share the provider.
    pub fn sent_requests(&self) -> Vec<SentRequest> {
        self.environment.traffic.sent.lock().expect("the requests").clone()
    }

    /// How many requests there were.
    pub fn request_count(&self) -> usize {
        self.environment.traffic.sent.lock().expect("the requests").len()
    }

    /// The last request.
    pub fn last_sent(&self) -> SentRequest {
        self.sent_requests().pop().expect("a request")
    }

    /// The bodies of all requests, to the byte.
    pub fn sent_bodies(&self) -> Vec<String> {
        self.sent_requests().into_iter().map(|sent| sent.body).collect()
    }

    /// The conversation that each request held: see [`request_lines`].
    pub fn request_lines(&self) -> Vec<Vec<String>> {
        self.sent_requests().iter().map(|sent| request_lines(&sent.body)).collect()
    }

    /// The conversation, one line per message: see [`line`](crate::line).
    pub fn transcript_lines(&self) -> Vec<String> {
        self.agent.messages().iter().map(line).collect()
    }

    /// How many calls of `slow` ran at the same time, at most.
    pub fn most_parallel_calls(&self) -> usize {
        self.environment.slow_calls.most_parallel()
    }

    /// The colours that the approval handler was asked about.
    pub fn asked(&self) -> &NoteLog {
        &self.environment.asked
    }

    /// The session file as it is.
    pub fn session(&self) -> Session {
        Session::open(&self.session_path()).expect("the session can be read")
    }

    /// The session file once everything is stored. It has no problems.
    pub async fn stored(&self) -> Session {
        self.agent.shutdown().await.expect("everything is stored");
        let session = self.session();
        assert!(session.problems.is_empty(), "{:?}", session.problems);
        session
    }

    /// The billed requests of one purpose, oldest first.
    pub async fn billed(&self, purpose: &str) -> Vec<Arc<RequestRecord>> {
        let session = self.stored().await;
        let branch = session.branch(None).expect("a branch");
        branch.requests.into_iter().filter(|request| &*request.purpose == purpose).collect()
    }

    /// The usage that the provider reported, request by request.
    pub fn usages(&self) -> Vec<TokenUsage> {
        self.environment.usages.lock().expect("the usages").clone()
    }

    /// The cache losses that were emitted, in order.
    pub fn losses(&self) -> Vec<Verdict> {
        self.events_of::<CacheVerdict>().into_iter().map(|event| event.verdict).collect()
    }

    /// The only loss so far, which is also stored in the session.
    pub async fn the_loss(&self) -> Verdict {
        let losses = self.losses();
        let [loss] = &losses[..] else { panic!("{} losses: {losses:?}", losses.len()) };
        assert!(loss.lost_tokens > 0 && loss.lost_dollars > 0.0, "{loss:?}");
        let session = self.stored().await;
        let stored = session.requests().filter_map(|request| session_ledger::verdict_of(request));
        assert_eq!(stored.collect::<Vec<Verdict>>(), losses);
        loss.clone()
    }
}
