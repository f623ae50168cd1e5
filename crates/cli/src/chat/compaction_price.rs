//! What a compaction costs and saves, in words: before it begins, and when it is over.

use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::events::{BeforeCompactReply, SessionBeforeCompact, SessionCompact};
use hardpan_agent::{Agent, CompactReason, CompactionForecast, CompactionPrice, Spending};
use hardpan_app::ConversationApp;
use hardpan_terminal::blocks::format::{count, dollars, short_count};
use hardpan_terminal::model::AgentUpdate;

use super::commands::pluralize;
use crate::output::paid_or_simulated;
use crate::page_chat::conversation::FaceSender;

/// Tells a face when a conversation is compacted: how much of it and what that costs, and for one that
/// nobody asked for, what it has cost.
pub fn tell_of_compactions(app: &ConversationApp, face: &FaceSender) {
    let begun: Arc<Mutex<Option<CompactionStart>>> = Arc::default();
    let (starts, to_face) = (begun.clone(), face.clone());
    app.agent.events().subscribe::<SessionBeforeCompact, _>("terminal", move |event, agent| {
        let start = CompactionStart::new(&agent);
        let text = match &start.forecast {
            Some(forecast) => before_text(forecast),
            None => pluralize(event.messages, "message"),
        };
        let is_asked = event.why == CompactReason::Requested;
        *starts.lock().unwrap_or_else(PoisonError::into_inner) = Some(start).filter(|_| !is_asked);
        to_face.agent(AgentUpdate::Compacting { text });
        std::future::ready(Ok(BeforeCompactReply::Continue))
    });
    let face = face.clone();
    app.agent.events().subscribe::<SessionCompact, _>("terminal", move |event, agent| {
        let start = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = start {
            let text = start.after_text(&agent, event.0.messages);
            face.agent(AgentUpdate::Note(text));
        }
        std::future::ready(Ok(()))
    });
}

/// What was so when a compaction began.
pub struct CompactionStart {
    forecast: Option<CompactionForecast>,
    spent: Spending,
}

impl CompactionStart {
    pub fn new(agent: &Agent) -> Self {
        CompactionStart { forecast: agent.forecast_compaction(), spent: agent.token_usage().session }
    }

    /// What was replaced, what that has cost, and what it saves.
    pub fn after_text(&self, agent: &Agent, messages: usize) -> String {
        let spent = agent.token_usage().session;
        let paid =
            paid_or_simulated(spent.dollars - self.spent.dollars, spent.would_cost - self.spent.would_cost);
        let mut parts = vec![format!("replaced {} with a summary", pluralize(messages, "message"))];
        if let Some(forecast) = &self.forecast {
            parts.push(sizes(forecast));
        }
        parts.push(format!("cost {paid}"));
        if let Some(price) = self.forecast.and_then(|forecast| forecast.price) {
            parts.push(saving(&price));
        }
        parts.join(" · ")
    }
}

/// `41k → about 6k tokens · about $0.021`: what is about to happen.
fn before_text(forecast: &CompactionForecast) -> String {
    let price = forecast.price.map(|price| format!(" · about {}", dollars(price.summary)));
    format!("{}{}", sizes(forecast), price.unwrap_or_default())
}

fn sizes(forecast: &CompactionForecast) -> String {
    let short = |tokens: u64| short_count(usize::try_from(tokens).unwrap_or(usize::MAX));
    format!("{} → about {} tokens", short(forecast.tokens_before), short(forecast.tokens_after))
}

fn saving(price: &CompactionPrice) -> String {
    format!("saves about {} a request", dollars(price.saved_each))
}

/// What `/compact` would cost now, as sentences.
pub fn describe(forecast: &CompactionForecast) -> String {
    let messages = pluralize(forecast.messages, "message");
    let what = format!("A summary would replace {messages}: {}.", sizes(forecast));
    let Some(price) = forecast.price else { return format!("{what} The price is not known.") };
    let again = count(usize::try_from(forecast.tokens_after).unwrap_or(usize::MAX));
    let each = dollars(price.saved_each);
    let begin = format!(
        "{what} It costs about {}, and the next request about {} for what it writes again of {again} tokens",
        dollars(price.summary),
        dollars(price.next_request)
    );
    match price.saved_each > 0.0 {
        true => {
            let pays = ((price.summary + price.next_request) / price.saved_each).ceil() as usize;
            format!(
                "{begin}. Each later request costs {each} less: it pays off after {}.",
                pluralize(pays, "request")
            )
        }
        false => format!("{begin}. It saves nothing."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast() -> CompactionForecast {
        let price = CompactionPrice { summary: 0.021, next_request: 0.016, saved_each: 0.0035 };
        CompactionForecast { messages: 31, tokens_before: 41_200, tokens_after: 6_300, price: Some(price) }
    }

    #[test]
    fn a_compaction_tells_its_price_before_it_begins() {
        assert_eq!(before_text(&forecast()), "41k → about 6.3k tokens · about $0.021");
        assert_eq!(
            describe(&forecast()),
            "A summary would replace 31 messages: 41k → about 6.3k tokens. It costs about $0.021, and the \
             next request about $0.016 for what it writes again of 6,300 tokens. Each later request costs \
             $0.0035 less: it pays off after 11 requests."
        );
        let unknown = CompactionForecast { price: None, ..forecast() };
        assert_eq!(before_text(&unknown), "41k → about 6.3k tokens");
        assert!(describe(&unknown).ends_with("The price is not known."));
    }
}
