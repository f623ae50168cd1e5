//! `hardpan simulator`: runs the fake provider as an HTTP server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use hardpan_models::{Catalogue, Model, Protocol};
use hardpan_providers::codec;
use hardpan_simulator::{
    ANTHROPIC_RULES, Account, AdaptiveThinking, AnthropicRule, AnthropicSettings, BetaPolicy,
    DiagnosticsMode, Engine, EngineSettings, KnownFields, Listen, RequestLog, RuleVersions, Script,
    ServerConfig, ThinkingCacheScope, serve,
};
use serde_json::{Value, json};

use crate::audit::catalogue;
use crate::output;

/// How long to let answers finish after Ctrl-C.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct SimulatorArgs {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Answer from this YAML script instead of the built-in assistant (see `hardpan docs simulator`)
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Inject faults, such as "status=529,times=2; cut=400,every=3" (see `hardpan docs simulator`)
    #[arg(long, value_name = "SPEC")]
    faults: Option<String>,
    /// Write every request to FILE, one JSON per line: body, status, usage, price
    #[arg(long, value_name = "FILE")]
    log_requests: Option<PathBuf>,
    /// Anthropic: whether some models refuse thinking that belongs to another conversation
    #[arg(long, value_enum, default_value_t = AccountAge::New)]
    account: AccountAge,
    /// What requests for cache diagnostics are told (Anthropic, OpenAI's Responses)
    #[arg(long, value_enum, default_value_t = Diagnostics::Compared)]
    diagnostics: Diagnostics,
    /// Anthropic: refuse fields that servers of 2025 do not know, such as `diagnostics` and effort
    #[arg(long)]
    older_server: bool,
    /// Anthropic: accept beta headers that nobody has heard of
    #[arg(long)]
    any_beta: bool,
    /// Anthropic: when adaptive models think before an answer that has no reasoning in the script
    #[arg(long, value_enum, default_value_t = Adaptive::Always)]
    adaptive_thinking: Adaptive,
    /// Anthropic: lose tools and system prompt, too, when thinking or effort change
    #[arg(long)]
    thinking_before_tools: bool,
    /// Print what the server of Anthropic Messages refuses, by model and API version, and exit
    #[arg(long)]
    rules: bool,
    /// Print the request fields that the servers know, by protocol and record, as JSON, and exit
    #[arg(long)]
    fields: bool,
    /// Print the rules as JSON
    #[arg(long, requires = "rules")]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccountAge {
    /// Made since August 2026
    New,
    /// Made before
    Old,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Diagnostics {
    /// The first difference from the request before
    Compared,
    /// The comparison is not ready
    Pending,
    /// The request before is not found
    NotFound,
    /// There is no verdict
    Unavailable,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Adaptive {
    /// Before every answer
    Always,
    /// Never
    Scripted,
}

impl SimulatorArgs {
    fn diagnostics_mode(&self) -> DiagnosticsMode {
        match self.diagnostics {
            Diagnostics::Compared => DiagnosticsMode::Compared,
            Diagnostics::Pending => DiagnosticsMode::Pending,
            Diagnostics::NotFound => DiagnosticsMode::NotFound,
            Diagnostics::Unavailable => DiagnosticsMode::Unavailable,
        }
    }

    fn anthropic_settings(&self) -> AnthropicSettings {
        AnthropicSettings {
            account: match self.account {
                AccountAge::New => Account::New,
                AccountAge::Old => Account::Old,
            },
            fields: if self.older_server { KnownFields::Older } else { KnownFields::Current },
            betas: if self.any_beta { BetaPolicy::Any } else { BetaPolicy::Known },
            adaptive_thinking: match self.adaptive_thinking {
                Adaptive::Always => AdaptiveThinking::Always,
                Adaptive::Scripted => AdaptiveThinking::AsScripted,
            },
            thinking_cache: match self.thinking_before_tools {
                true => ThinkingCacheScope::Everything,
                false => ThinkingCacheScope::Messages,
            },
        }
    }
}

/// Prints the rules, or serves until Ctrl-C.
pub fn run(args: &SimulatorArgs) -> Result<()> {
    if args.rules {
        return print_rules(args.json);
    }
    if args.fields {
        return output::print_json(&known_fields());
    }
    let mut settings = EngineSettings {
        diagnostics: args.diagnostics_mode(),
        anthropic: args.anthropic_settings(),
        catalogue: catalogue(),
        ..EngineSettings::default()
    };
    if let Some(path) = &args.script {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        settings.script = Some(Script::from_yaml(&path.display().to_string(), &text)?);
    }
    if let Some(spec) = &args.faults {
        settings.faults = spec.parse()?;
    }
    let create_log =
        |path: &PathBuf| RequestLog::create(path).with_context(|| format!("cannot write {}", path.display()));
    let log = args.log_requests.as_ref().map(create_log).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        let server = serve(ServerConfig {
            listen: Listen::Loopback(args.port),
            log,
            ..ServerConfig::new(Engine::new(settings))
        })
        .await?;
        let url = server.url();
        output::print(format!("listening on {url}\n"))?;
        note!("this is a simulator without a language model; it accepts any key; press Ctrl-C to stop it");
        note!("to use it from hardpan, set ANTHROPIC_API_KEY=any and put this into config.toml:");
        note!("  [providers.anthropic]\n  base_url = \"{url}\"");
        tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")?;
        Ok(server.stop(GRACE).await?)
    })
}

/// The fields of each record in a request, by protocol.
fn known_fields() -> Value {
    let protocols = [("anthropic", Protocol::Anthropic), ("openai_responses", Protocol::OpenaiResponses)];
    let tables = protocols.map(|(name, protocol)| {
        let mut records: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (record, fields) in codec(protocol).known_fields() {
            records.entry(record).or_default().extend(*fields);
        }
        (name.to_owned(), json!(records))
    });
    Value::Object(tables.into_iter().collect())
}

/// One paragraph per rule: what is sent, where that is refused, and in which words.
fn print_rules(as_json: bool) -> Result<()> {
    if as_json {
        let rules: Vec<Value> = ANTHROPIC_RULES.iter().map(rule_json).collect();
        return output::print_json(&Value::Array(rules));
    }
    let mut text = String::new();
    for rule in ANTHROPIC_RULES {
        let versions = match rule.versions {
            RuleVersions::All => String::new(),
            RuleVersions::Only(version) => format!(", version {}", version.as_str()),
        };
        let models = match rule_models(rule) {
            None => "all models".to_owned(),
            Some(models) if models.is_empty() => "retired models".to_owned(),
            Some(models) => models.join(" "),
        };
        text += &format!("{}{versions}\n  {}  {}\n  {models}\n\n", rule.sent, rule.status, rule.message);
    }
    Ok(output::print(text)?)
}

fn rule_json(rule: &AnthropicRule) -> Value {
    let versions = match rule.versions {
        RuleVersions::All => Value::Null,
        RuleVersions::Only(version) => json!([version.as_str()]),
    };
    json!({
        "name": rule.name,
        "sent": rule.sent,
        "versions": versions,
        "models": rule_models(rule),
        "status": rule.status,
        "error_code": rule.code,
        "message": rule.message,
    })
}

/// The models that a rule holds for. `None`: all of them.
fn rule_models(rule: &AnthropicRule) -> Option<Vec<String>> {
    let is_current = |model: &&Model| model.provider == "anthropic" && !model.gone;
    let all: Vec<&Model> = Catalogue::builtin().models().filter(is_current).collect();
    let held: Vec<String> =
        all.iter().filter(|model| (rule.models)(model)).map(|model| model.id.clone()).collect();
    (held.len() < all.len()).then_some(held)
}
