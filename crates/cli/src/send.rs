//! `hardpan request --send`: sends one request and prints its answer.

use anyhow::{Context, Result, bail};
use hardpan_app::request::AssembledRequest;
use hardpan_app::send::send_request;
use hardpan_app::settings::Settings;
use hardpan_prompt::TokenUsage;
use hardpan_providers::{Answer, AnswerEvent, ClientEvent, ReportedUsage};
use serde_json::json;

use crate::output::{self, OutputError, OutputFormat, dollars, safe, thousands};

/// Sends a request and prints its answer.
pub fn send(request: &AssembledRequest, settings: &Settings, format: OutputFormat) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let mut notices = Vec::new();
    let mut sink = |event: ClientEvent| show_event(event, format, &mut notices);
    let answer = runtime.block_on(async {
        tokio::select! {
            answer = send_request(request, settings, &mut sink) => Ok(answer?),
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })?;
    match format {
        OutputFormat::Text => finish_text(request, &answer)?,
        OutputFormat::Json => {
            output::print_json(&answer_json(request, &answer, &notices))?;
        }
    }
    Ok(())
}

/// Shows an event, and keeps the text of a notice.
fn show_event(event: ClientEvent, format: OutputFormat, notices: &mut Vec<String>) {
    match event {
        ClientEvent::Answer(AnswerEvent::Text(text)) if format == OutputFormat::Text => {
            // A closed pipe is reported at the end of the answer.
            let _ = output::print(text);
        }
        ClientEvent::Answer(_) | ClientEvent::Accepted(_) => {}
        ClientEvent::Notice(notice) => {
            let notice = notice.to_string();
            note!("hardpan: {}", safe(&notice));
            notices.push(notice);
        }
    }
}

fn finish_text(request: &AssembledRequest, answer: &Answer) -> Result<(), OutputError> {
    let printed = output::print("\n");
    for call in answer.calls() {
        let (name, arguments) = (safe(&call.call.name), safe(&output::cut(&call.raw, 200)));
        note!("hardpan: the model called {name} {arguments}; --send does not run tools");
    }
    if let Some(error) = &answer.error {
        note!("hardpan: {}", safe(&error.to_string()));
    }
    if let Some(usage) = &answer.usage {
        note!("{}", usage_line(request, &usage.tokens));
    }
    printed
}

/// The line after an answer: tokens by how they were billed, and their cost.
fn usage_line(request: &AssembledRequest, usage: &TokenUsage) -> String {
    let n = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    format!(
        "in {} (read {}, written {}), out {}; {}",
        n(usage.prompt()),
        n(usage.cache_read),
        n(usage.cache_written()),
        n(usage.output),
        dollars(hardpan_agent::usage_dollars(usage, &request.preview.target)),
    )
}

fn answer_json(request: &AssembledRequest, answer: &Answer, notices: &[String]) -> serde_json::Value {
    let calls = answer
        .calls()
        .into_iter()
        .map(|call| json!({"id": call.call.id, "name": call.call.name, "arguments": call.raw}));
    let usage = answer.usage.as_ref();
    json!({
        "model": answer.model,
        "text": answer.text(),
        "calls": calls.collect::<Vec<_>>(),
        "stop": answer.stop.as_ref().map(ToString::to_string),
        "error": answer.error.as_ref().map(ToString::to_string),
        "usage": usage.map(usage_json),
        "cost": usage.map(|usage| hardpan_agent::usage_dollars(&usage.tokens, &request.preview.target)),
        "footnotes": notices,
    })
}

fn usage_json(usage: &ReportedUsage) -> serde_json::Value {
    let ReportedUsage { tokens, reports_cache: _, searches: _, other } = usage;
    let mut json = json!({
        "input": tokens.input,
        "cache_read": tokens.cache_read,
        "cache_write_5m": tokens.cache_write_5m,
        "cache_write_1h": tokens.cache_write_1h,
        "output": tokens.output,
        "reasoning_output": tokens.reasoning.unwrap_or_default(),
    });
    if !other.is_empty() {
        json["other"] = json!(other);
    }
    json
}
