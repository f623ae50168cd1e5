//! [`TelemetrySettings`]: whether, where and how to send, from OpenTelemetry's own variables and from
//! `[telemetry]` in config.toml.

use std::fmt;
use std::time::Duration;

use hardpan_providers::mask_url;

use crate::otlp::{Encoding, Resource};

/// What `[telemetry]` in config.toml says. A variable of OpenTelemetry goes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryOptions {
    /// False switches everything off, whatever the variables say.
    pub enabled: Option<bool>,
    /// The collector's address, such as `http://localhost:4318`.
    pub endpoint: Option<String>,
    /// Whether texts of the conversation are sent.
    pub capture_content: Option<bool>,
}

/// Whether texts of the conversation are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentCapture {
    /// Names, ids, numbers and times alone.
    #[default]
    Off,
    /// Prompts, answers, arguments and results as well.
    On,
}

/// Where spans or metrics go. `Debug` prints no header's value and no password.
#[derive(Clone, PartialEq, Eq)]
pub struct SignalEndpoint {
    /// The whole address.
    pub url: String,
    /// Headers to add; their values may be keys.
    pub headers: Vec<(String, String)>,
    /// How bodies are written.
    pub encoding: Encoding,
    /// How long a request may take.
    pub timeout: Duration,
}

impl fmt::Debug for SignalEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = f.debug_struct("SignalEndpoint");
        shown.field("url", &mask_url(&self.url)).field("headers", &names);
        shown.field("encoding", &self.encoding).field("timeout", &self.timeout).finish()
    }
}

/// How to send telemetry. There are none if nobody asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// Where spans go; none if they are not sent.
    pub traces: Option<SignalEndpoint>,
    /// Where metrics go; none if they are not sent.
    pub metrics: Option<SignalEndpoint>,
    /// Whether texts of the conversation are sent.
    pub content: ContentCapture,
    /// What this process is called.
    pub resource: Resource,
    /// The most spans that wait to be sent; further ones are lost.
    pub queue_spans: usize,
    /// How often spans are sent.
    pub span_interval: Duration,
    /// How often metrics are sent.
    pub metric_interval: Duration,
}

/// Why telemetry that was asked for cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetrySettingsError {
    /// The protocol is none that there is.
    #[error("{variable} is {value:?}: Hardpan sends OTLP over HTTP; set it to http/protobuf or http/json")]
    Protocol {
        /// The variable that names it.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The address is none.
    #[error(
        "the address {url} of the telemetry collector is not valid: expected one such as http://localhost:4318"
    )]
    Address {
        /// The address, without passwords.
        url: String,
    },
    /// A list of headers is not one.
    #[error("{variable} is not a list of headers: expected NAME=VALUE,NAME=VALUE")]
    Headers {
        /// The variable that has it.
        variable: &'static str,
    },
}

/// The variables of a signal. Those of the signal itself go before those of all signals.
struct SignalVariables {
    exporter: &'static str,
    endpoint: &'static str,
    headers: &'static str,
    protocol: &'static str,
    timeout: &'static str,
    path: &'static str,
}

const TRACES: SignalVariables = SignalVariables {
    exporter: "OTEL_TRACES_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    headers: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    timeout: "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    path: "v1/traces",
};

const METRICS: SignalVariables = SignalVariables {
    exporter: "OTEL_METRICS_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    headers: "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    timeout: "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
    path: "v1/metrics",
};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

impl TelemetrySettings {
    /// The settings that the variables and `options` amount to; none if nobody named a collector, or
    /// somebody switched it off. `variable` looks up an environment variable.
    pub fn resolve(
        options: &TelemetryOptions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TelemetrySettingsError> {
        // An empty variable is one that is not set, as OpenTelemetry has it.
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| is_true(&value));
        if is_disabled || options.enabled == Some(false) {
            return Ok(None);
        }
        let traces = signal(&TRACES, options, &variable)?;
        let metrics = signal(&METRICS, options, &variable)?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let captured = variable(CAPTURE).map(|value| captures_content(&value));
        let is_captured = captured.or(options.capture_content).unwrap_or(false);
        let milliseconds = |name: &str, default: u64| {
            let given = variable(name).and_then(|value| value.trim().parse().ok());
            Duration::from_millis(given.unwrap_or(default).clamp(10, 3_600_000))
        };
        let queue = variable("OTEL_BSP_MAX_QUEUE_SIZE").and_then(|value| value.trim().parse().ok());
        Ok(Some(TelemetrySettings {
            traces,
            metrics,
            content: if is_captured { ContentCapture::On } else { ContentCapture::Off },
            resource: resource(&variable),
            queue_spans: queue.unwrap_or(2_048).clamp(1, 100_000),
            span_interval: milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5_000),
            metric_interval: milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
        }))
    }
}

fn signal(
    names: &SignalVariables,
    options: &TelemetryOptions,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<SignalEndpoint>, TelemetrySettingsError> {
    if variable(names.exporter)
        .is_some_and(|exporters| !exporters.split(',').any(|name| name.trim() == "otlp"))
    {
        return Ok(None);
    }
    let below = |base: String| format!("{}/{}", base.trim_end_matches('/'), names.path);
    // The address of one signal is used as it is; that of all signals gets a path.
    let own = variable(names.endpoint).map(|url| url.trim().to_owned());
    let url = own.or_else(|| {
        let base = variable(ENDPOINT).or_else(|| options.endpoint.clone().filter(|url| !url.is_empty()));
        base.map(|base| below(base.trim().to_owned()))
    });
    let Some(url) = url else { return Ok(None) };
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/') || host.contains(char::is_whitespace))
    {
        return Err(TelemetrySettingsError::Address { url: mask_url(&url) });
    }
    let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, variable(name)?)));
    let encoding = match first([names.protocol, PROTOCOL]) {
        None => Encoding::default(),
        Some((_, value)) if value.trim() == "http/protobuf" => Encoding::Protobuf,
        Some((_, value)) if value.trim() == "http/json" => Encoding::Json,
        Some((variable, value)) => return Err(TelemetrySettingsError::Protocol { variable, value }),
    };
    let headers = match first([names.headers, HEADERS]) {
        None => Vec::new(),
        Some((variable, list)) => pairs(&list).ok_or(TelemetrySettingsError::Headers { variable })?,
    };
    let timeout = first([names.timeout, TIMEOUT]).and_then(|(_, value)| value.trim().parse().ok());
    let timeout = Duration::from_millis(timeout.unwrap_or(10_000).clamp(1, 600_000));
    Ok(Some(SignalEndpoint { url, headers, encoding, timeout }))
}

/// `NAME=VALUE,NAME=VALUE`, with `%20` and the like in values.
fn pairs(list: &str) -> Option<Vec<(String, String)>> {
    let pairs = list.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let name = name.trim();
            let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_graphic());
            let value = percent_decoded(value.trim())?;
            (is_name && !value.chars().any(char::is_control)).then(|| (name.to_owned(), value))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *first == b'%');
        let escaped = escaped.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn resource(variable: &impl Fn(&str) -> Option<String>) -> Resource {
    let given = variable("OTEL_RESOURCE_ATTRIBUTES").and_then(|list| pairs(&list)).unwrap_or_default();
    let has = |name: &str| given.iter().any(|(known, _)| known == name);
    let service = variable("OTEL_SERVICE_NAME").or_else(|| (!has("service.name")).then(|| "hardpan".into()));
    let version = (!has("service.version")).then(|| env!("CARGO_PKG_VERSION").to_owned());
    let is_replaced = service.is_some();
    let own = service.map(|name| ("service.name".to_owned(), name));
    let own = own.into_iter().chain(version.map(|version| ("service.version".to_owned(), version)));
    own.chain(given.into_iter().filter(|(name, _)| !(is_replaced && name == "service.name"))).collect()
}

fn is_true(value: &str) -> bool {
    value.trim().eq_ignore_ascii_case("true")
}

/// Whether the variable asks for content on spans. It is `true` in most instrumentations; some also
/// name where content goes.
fn captures_content(value: &str) -> bool {
    let value = value.trim();
    is_true(value) || ["span_only", "span_and_event"].iter().any(|known| value.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        options: &TelemetryOptions,
        variables: &[(&str, &str)],
    ) -> Result<Option<TelemetrySettings>, TelemetrySettingsError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        TelemetrySettings::resolve(options, &variable)
    }

    fn endpoint(url: &str) -> SignalEndpoint {
        let timeout = Duration::from_secs(10);
        SignalEndpoint { url: url.into(), headers: Vec::new(), encoding: Encoding::Protobuf, timeout }
    }

    #[test]
    fn nothing_is_sent_unless_somebody_names_a_collector() {
        assert_eq!(resolve(&TelemetryOptions::default(), &[]), Ok(None));
        let enabled = TelemetryOptions { enabled: Some(true), ..TelemetryOptions::default() };
        assert_eq!(resolve(&enabled, &[(ENDPOINT, " ")]), Ok(None));
        let off = TelemetryOptions { enabled: Some(false), ..TelemetryOptions::default() };
        assert_eq!(resolve(&off, &[(ENDPOINT, "http://127.0.0.1:4318")]), Ok(None));
        let options = TelemetryOptions { endpoint: Some("http://127.0.0.1:1".into()), ..off };
        let on = TelemetryOptions { enabled: None, ..options };
        assert_eq!(resolve(&on, &[("OTEL_SDK_DISABLED", "True")]), Ok(None));
        assert!(resolve(&on, &[]).unwrap().is_some());
    }

    #[test]
    fn variables_go_before_the_settings_and_a_signals_own_before_those_of_all() {
        let options = TelemetryOptions {
            endpoint: Some("http://127.0.0.1:1/base/".into()),
            capture_content: Some(true),
            enabled: None,
        };
        let settings = resolve(&options, &[]).unwrap().unwrap();
        assert_eq!(settings.traces, Some(endpoint("http://127.0.0.1:1/base/v1/traces")));
        assert_eq!(settings.metrics, Some(endpoint("http://127.0.0.1:1/base/v1/metrics")));
        assert_eq!(settings.content, ContentCapture::On);
        let settings = resolve(
            &options,
            &[
                (ENDPOINT, "https://127.0.0.1:2"),
                (TRACES.endpoint, "https://127.0.0.1:3/spans"),
                (HEADERS, "authorization=Basic%20abc, x-team = a=b"),
                (METRICS.headers, "x-other=1"),
                (PROTOCOL, "http/json"),
                (METRICS.protocol, "http/protobuf"),
                (TIMEOUT, "2500"),
                (CAPTURE, "false"),
                ("OTEL_SERVICE_NAME", "agents"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test"),
            ],
        );
        let settings = settings.unwrap().unwrap();
        let timeout = Duration::from_millis(2500);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let traces = SignalEndpoint {
            headers: vec![pair("authorization", "Basic abc"), pair("x-team", "a=b")],
            encoding: Encoding::Json,
            timeout,
            ..endpoint("https://127.0.0.1:3/spans")
        };
        assert_eq!(settings.traces, Some(traces.clone()));
        let headers = vec![pair("x-other", "1")];
        let metrics = SignalEndpoint { headers, timeout, ..endpoint("https://127.0.0.1:2/v1/metrics") };
        assert_eq!(settings.metrics, Some(metrics));
        assert_eq!(settings.content, ContentCapture::Off);
        let version = pair("service.version", env!("CARGO_PKG_VERSION"));
        let environment = pair("deployment.environment.name", "test");
        assert_eq!(settings.resource, [pair("service.name", "agents"), version, environment]);
        assert!(!format!("{traces:?}").contains("abc"), "{traces:?}");
    }

    #[test]
    fn what_cannot_be_used_is_said_without_passwords() {
        let none = TelemetryOptions::default();
        let said = |variables: &[(&str, &str)]| resolve(&none, variables).unwrap_err().to_string();
        let good = (ENDPOINT, "http://127.0.0.1:4318");
        assert!(said(&[good, (PROTOCOL, "grpc")]).contains("set it to http/protobuf or http/json"));
        assert!(said(&[good, (HEADERS, "no-value")]).contains("NAME=VALUE"));
        assert!(said(&[good, (HEADERS, "name=a%0d%0aother: b")]).contains("NAME=VALUE"));
        let address = said(&[(ENDPOINT, "me:hunter2@127.0.0.1:4318")]);
        assert!(address.contains("not valid") && !address.contains("hunter2"), "{address}");
        let only_traces = resolve(&none, &[good, ("OTEL_METRICS_EXPORTER", "none")]).unwrap().unwrap();
        assert!(only_traces.traces.is_some() && only_traces.metrics.is_none());
    }
}
