//! `hardpan request --send`: the request goes out, the answer comes in.

use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_context::{Texts, without_images, without_tools};
use hardpan_economy::{Amounts, Rates};
use hardpan_models::Wire;
use hardpan_prompt::Prompt;
use hardpan_providers::{
    Answer, Client, Endpoint, Event, Failure, Forms, Http, ProviderError, Question, Transport, Usage,
};
use hardpan_simulator::{BASE_URL, Clock, Engine, InProcess, Keys, Signatures};
use jiff::Timestamp;
use serde_json::json;

use crate::output::{self, dollars, safe, safe_lines, thousands};
use crate::run::Made;
use crate::settings::Settings;
use crate::state::State;

/// How the answer is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Its text as it comes.
    Text,
    /// The whole of it, with usage and cost.
    Json,
}

/// Sends a request and shows its answer.
pub fn send(made: &Made, settings: &Settings, show: Show) -> Result<()> {
    let mut state = State::load();
    let learned = Arc::new(state.refusals());
    let route = Route::choose(made, settings)?;
    let client =
        Client::new(route.transport, route.endpoint, settings.config.patience.patience(), learned.clone());
    let forms = TextForms { texts: &settings.texts };
    #[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
    let now_ms = Timestamp::now().as_millisecond();
    let target = &made.target;
    let question = Question {
        prompt: &made.assembled.prompt,
        wire: &target.wire,
        provider: &target.provider,
        forms: &forms,
        now_ms,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime can be made")?;
    let mut sink = |event: Event| show_event(&event, show);
    let answer = runtime.block_on(async {
        tokio::select! {
            answer = client.ask(&question, &mut sink) => answer.map_err(|error| with_alternatives(error, made, settings)),
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    });
    let factor = answer
        .as_ref()
        .ok()
        .filter(|_| !route.simulated)
        .and_then(|answer| learn_factor(made, answer.usage.as_ref()?));
    state.keep(&learned, &target.model.name(), factor);
    let answer = answer?;
    match show {
        Show::Text => finish_text(made, &answer),
        Show::Json => output::print(serde_json::to_string_pretty(&answer_json(made, &answer))? + "\n")?,
    }
    Ok(())
}

/// A model that is not available is never replaced in silence: the error names others of its provider.
fn with_alternatives(error: ProviderError, made: &Made, settings: &Settings) -> anyhow::Error {
    let unavailable = error.failure == Failure::ModelUnavailable;
    let error = anyhow::Error::from(error);
    if !unavailable {
        return error;
    }
    let model = &made.target.model;
    let others = settings
        .catalogue
        .models()
        .filter(|other| other.provider == model.provider && other.deprecated.is_none());
    let nearest = hardpan_models::nearest(
        &model.id,
        others.map(|other| other.id.as_str()).filter(|id| *id != model.id),
    );
    if nearest.is_empty() {
        error
    } else {
        anyhow::anyhow!("{error}. Others of {}: {}", model.provider, nearest.join(", "))
    }
}

/// How a request gets to its provider.
struct Route {
    transport: Arc<dyn Transport>,
    endpoint: Endpoint,
    simulated: bool,
}

impl Route {
    /// Over the network where there is a key or none is needed; else to the simulator within the process.
    fn choose(made: &Made, settings: &Settings) -> Result<Self> {
        let (provider, wire) = (&made.target.provider, &made.target.wire);
        let config = settings.config.providers.get(provider).cloned().unwrap_or_default();
        let key = settings.key(provider, wire)?;
        if key.is_none() && !wire.key_env.is_empty() && config.base_url.is_none() {
            let key = wire.key_env.first().map_or("its key", |name| name.as_str());
            eprintln!(
                "hardpan: no key for {provider}: the built-in simulator answers, without a language model. Set {key}, or add it to keys.toml."
            );
            return Ok(Route::simulated());
        }
        let base_url = config.base_url.unwrap_or_else(|| wire.base_url.clone());
        let headers = config.headers.into_iter().collect();
        let endpoint = Endpoint { base_url, key, headers, extras: config.extras, session: None };
        Ok(Route { transport: Arc::new(Http::new(config.proxy.as_deref())?), endpoint, simulated: false })
    }

    fn simulated() -> Self {
        // A conversation begun with a real provider carries signatures that only that provider knows.
        let (keys, signatures) = (Keys::NotNeeded, Signatures::Unchecked);
        let engine = Engine::new(hardpan_simulator::Settings { keys, signatures, ..Default::default() });
        let transport = Arc::new(InProcess::new(Arc::new(engine), Clock::system()));
        let endpoint = Endpoint { base_url: BASE_URL.to_owned(), ..Endpoint::default() };
        Route { transport, endpoint, simulated: true }
    }
}

/// The prompt's other forms, with the texts in use.
struct TextForms<'a> {
    texts: &'a Texts,
}

impl Forms for TextForms<'_> {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        without_tools(prompt, self.texts)
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        without_images(prompt, self.texts)
    }
}

fn show_event(event: &Event, show: Show) {
    match event {
        Event::Text(text) if show == Show::Text => {
            // In a pipe the text is data, to the byte; on a terminal it must not steer it.
            let shown = if std::io::stdout().is_terminal() { safe_lines(text) } else { text.clone() };
            // A reader that has gone away is noticed when the answer has ended.
            let _ = output::print(shown);
        }
        Event::Footnote(note) => eprintln!("hardpan: {}", safe(note)),
        _ => {}
    }
}

fn finish_text(made: &Made, answer: &Answer) {
    let _ = output::print("\n");
    for call in answer.calls() {
        let (name, arguments) = (safe(&call.call.name), safe(&output::cut(&call.raw, 200)));
        eprintln!("hardpan: the model calls {name} {arguments}; tools are not run here");
    }
    if let Some(error) = &answer.error {
        eprintln!("hardpan: {}", safe(&error.to_string()));
    }
    if let Some(usage) = &answer.usage {
        eprintln!("{}", usage_line(made, usage));
    }
}

/// Tokens by how they were billed, and what that costs.
fn usage_line(made: &Made, usage: &Usage) -> String {
    let n = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    format!(
        "in {} (read {}, written {}), out {}; {}",
        n(usage.prompt()),
        n(usage.cache_read),
        n(usage.cache_write_5m + usage.cache_write_1h),
        n(usage.output),
        dollars(cost(made, usage)),
    )
}

fn cost(made: &Made, usage: &Usage) -> f64 {
    let tokens = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let amounts = Amounts {
        input: tokens(usage.input),
        read: tokens(usage.cache_read),
        write: tokens(usage.cache_write_5m),
        write_1h: tokens(usage.cache_write_1h),
    };
    let (model, wire): (_, &Wire) = (&made.target.model, &made.target.wire);
    let rates = Rates::of(model, wire, tokens(usage.prompt()));
    rates.dollars(amounts) + usage.output as f64 * model.prices_at(usage.prompt()).output / 1e6
}

fn answer_json(made: &Made, answer: &Answer) -> serde_json::Value {
    let calls = answer
        .calls()
        .into_iter()
        .map(|call| json!({"id": call.call.id, "name": call.call.name, "arguments": call.raw}));
    json!({
        "model": answer.model,
        "text": answer.text(),
        "calls": calls.collect::<Vec<_>>(),
        "stop": answer.stop.as_ref().map(ToString::to_string),
        "error": answer.error.as_ref().map(ToString::to_string),
        "usage": answer.usage,
        "cost": answer.usage.as_ref().map(|usage| cost(made, usage)),
        "footnotes": answer.footnotes,
    })
}

/// What the bill says about the model's tokens, where its vocabulary is not public.
fn learn_factor(made: &Made, usage: &Usage) -> Option<hardpan_prompt::Factor> {
    if made.target.model.vocabulary.is_some() {
        return None;
    }
    let mut factor = made.target.factor;
    let counted = made.memo.counter.measure(&made.assembled.prompt).total() as u64;
    factor.learn(counted, usage.prompt());
    Some(factor)
}
