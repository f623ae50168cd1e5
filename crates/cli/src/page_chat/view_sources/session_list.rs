//! The sessions to go on with.

use std::time::Duration;

use hardpan_app::ConversationApp;
use hardpan_context::Target;
use hardpan_economy::Rates;
use hardpan_prompt::{MessageBody, TokenUsage};
use hardpan_session::{Record, RequestRecord, Session, SessionSummary};
use hardpan_terminal::blocks::Cost;
use hardpan_terminal::blocks::pickers::{GoingOn, SessionRow};
use hardpan_terminal::views::{SessionData, SessionItem};

/// So many of the newest sessions are read whole, for what going on costs.
const READ_WHOLE: usize = 40;

/// The sessions of this folder, or of all; without the present one.
pub fn sessions(app: &ConversationApp, is_everywhere: bool) -> SessionData {
    let (here, _) = app.agent.session();
    let mut found = app.store.list((!is_everywhere).then_some(&*app.folder));
    found.retain(|session| session.id != here);
    let item = |(index, summary): (usize, &SessionSummary)| {
        let session = (index < READ_WHOLE).then(|| Session::open(&summary.path).ok()).flatten();
        let folder = Some(summary.cwd.to_string()).filter(|folder| *folder != app.folder.to_string_lossy());
        SessionItem { id: summary.id.to_string(), folder, row: row(app, summary, session.as_ref()) }
    };
    SessionData { is_everywhere, sessions: found.iter().enumerate().map(item).collect() }
}

fn row(app: &ConversationApp, summary: &SessionSummary, session: Option<&Session>) -> SessionRow {
    let now = app.agent.now();
    let age = summary.last_activity.map_or(0, |last| now.as_second() - last.as_second());
    let simulated = session.map(|session| session.requests().filter_map(|request| request.would_cost).sum());
    SessionRow {
        age: Duration::from_secs(u64::try_from(age).unwrap_or(0)),
        name: summary.name.as_deref().map(str::to_owned),
        prompt: summary.first_prompt.clone().unwrap_or_default(),
        agent: None,
        branch: summary.git_branch.as_deref().unwrap_or_default().to_owned(),
        turns: session.map_or(summary.messages, prompts),
        cost: Cost {
            paid: summary.dollars,
            simulated: simulated.filter(|sum: &f64| *sum > 0.0),
            is_unknown: false,
        },
        going_on: session
            .and_then(|session| session.requests().last())
            .map_or(GoingOn::Unknown, |last| going_on(app, last).unwrap_or(GoingOn::Unknown)),
    }
}

fn prompts(session: &Session) -> usize {
    let is_prompt = |record: &Record| match record {
        Record::Message(message) => matches!(&*message.body, MessageBody::User { .. }),
        _ => false,
    };
    session.entries.iter().filter(|entry| is_prompt(&entry.record)).count()
}

/// What the next request costs: the prompt of the last one, read or written.
pub fn going_on(app: &ConversationApp, last: &RequestRecord) -> Option<GoingOn> {
    let target = Target::new(&app.settings.catalogue, Some(&last.provider), &last.model).ok()?;
    let tokens = last.usage.prompt() + last.usage.output;
    let rates = Rates::for_model(&target.model, &target.profile, tokens);
    if !target.model.price.is_known() {
        return None;
    }
    let left =
        i64::from(target.profile.cache.lifetime?) - (app.agent.now().as_second() - last.started.as_second());
    let none = TokenUsage::default();
    Some(match u64::try_from(left) {
        Ok(left @ 1..) => {
            let read = TokenUsage { cache_read: tokens, ..none };
            GoingOn::Warm(rates.input_dollars(&read), Duration::from_secs(left))
        }
        _ => GoingOn::Cold(rates.input_dollars(&TokenUsage { cache_write_5m: tokens, ..none })),
    })
}
