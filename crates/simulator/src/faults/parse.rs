//! Parses faults: from one line of text, or from YAML.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserializer, Error as _, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Fault, FaultRule, FaultSchedule, Faults};

/// How long a stall lasts by default: longer than any client should wait.
const DEFAULT_STALL: Duration = Duration::from_secs(600);

/// Faults that cannot be parsed.
#[derive(Debug, Error)]
pub enum FaultError {
    /// In the one-line form.
    #[error("fault \"{fault}\": {error}. Example: status=529,retry-after=1,times=2; cut=400,every=3")]
    Spec {
        /// The one fault that is wrong, as written.
        fault: String,
        /// What is wrong with the fault.
        #[source]
        error: FaultRuleError,
    },
    /// In a YAML file.
    #[error("{file}: {error}")]
    Yaml {
        /// The file name, as the caller gave it.
        file: String,
        /// What is wrong, with the line number.
        #[source]
        error: Box<serde_saphyr::Error>,
    },
}

/// What is wrong with one fault.
#[derive(Debug, Error)]
pub enum FaultRuleError {
    /// A field is unknown, or its value is of another type.
    #[error(transparent)]
    Fields(#[from] serde_json::Error),
    /// A field without the one that it belongs to.
    #[error("{field} belongs to {owner}")]
    Lonely {
        /// The field that is given.
        field: &'static str,
        /// The field that is missing.
        owner: &'static str,
    },
    /// The fault would strike at no request.
    #[error("every must be at least 1")]
    NeverStrikes,
    /// The probability is negative or above 1.
    #[error("probability must be from 0 to 1")]
    Probability,
    /// No field says what happens.
    #[error("it names no fault: one of status, delay, stall, cut, garbage, drip, duplicate, no_end, error")]
    NoFault,
    /// Two fields say what happens.
    #[error("it names two faults at once; write them one after the other")]
    TwoFaults,
    /// The status does not stand for an error.
    #[error("status {0} is no error; write one from 400 to 599")]
    Status(u16),
}

/// A text that is no duration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{text}` is no time; write 200ms, 2s or 5m")]
pub struct InvalidDuration {
    /// The text as written.
    pub text: String,
}

/// A duration: `200ms`, `2s`, `5m`. A number without unit is in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl FromStr for DurationText {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &text[digits.len()..];
        let wrong = || InvalidDuration { text: text.to_owned() };
        let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
        let seconds = match unit {
            "ms" | "" => number / 1000.0,
            "s" => number,
            "m" => number * 60.0,
            _ => return Err(wrong()),
        };
        Duration::try_from_secs_f64(seconds).map(DurationText).map_err(|_| wrong())
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DurationVisitor;
        impl Visitor<'_> for DurationVisitor {
            type Value = DurationText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as 200ms or 2s")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationText, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, ms: u64) -> Result<DurationText, E> {
                Ok(DurationText(Duration::from_millis(ms)))
            }
            fn visit_i64<E: de::Error>(self, ms: i64) -> Result<DurationText, E> {
                u64::try_from(ms).map_err(E::custom).and_then(|ms| self.visit_u64(ms))
            }
        }
        deserializer.deserialize_any(DurationVisitor)
    }
}

/// The fields of a written fault, in either form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FaultFields {
    status: Option<u16>,
    retry_after: Option<u32>,
    delay: Option<DurationText>,
    stall: Option<usize>,
    r#for: Option<DurationText>,
    cut: Option<usize>,
    garbage: Option<usize>,
    drip: Option<usize>,
    interval: Option<DurationText>,
    duplicate: Option<bool>,
    no_end: Option<bool>,
    error: Option<usize>,
    after: Option<u64>,
    every: Option<u64>,
    probability: Option<f64>,
    seed: Option<u64>,
    times: Option<u64>,
}

impl FaultFields {
    fn into_rule(self) -> Result<FaultRule, FaultRuleError> {
        let fault = self.fault()?;
        let lonely = [
            (self.retry_after.is_some() && self.status.is_none(), "retry_after", "status"),
            (self.r#for.is_some() && self.stall.is_none(), "for", "stall"),
            (self.interval.is_some() && self.drip.is_none(), "interval", "drip"),
            (self.seed.is_some() && self.probability.is_none(), "seed", "probability"),
        ];
        if let Some((_, field, owner)) = lonely.into_iter().find(|(wrong, ..)| *wrong) {
            return Err(FaultRuleError::Lonely { field, owner });
        }
        if self.every == Some(0) {
            return Err(FaultRuleError::NeverStrikes);
        }
        if self.probability.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
            return Err(FaultRuleError::Probability);
        }
        let schedule = FaultSchedule {
            after: self.after.unwrap_or(0),
            every: self.every.unwrap_or(1),
            probability: self.probability.unwrap_or(2.0), // above every share
            seed: self.seed.unwrap_or(0),
            times: self.times,
        };
        Ok(FaultRule { fault, schedule, times_struck: 0 })
    }

    fn fault(&self) -> Result<Fault, FaultRuleError> {
        let retry_after = self.retry_after;
        let interval = self.interval.map_or(Duration::from_millis(10), |span| span.0);
        let lasts = self.r#for.map_or(DEFAULT_STALL, |span| span.0);
        let named = [
            self.status.map(|status| Fault::Status { status, retry_after }),
            self.delay.map(|span| Fault::Delay(span.0)),
            self.stall.map(|after| Fault::Stall { after, lasts }),
            self.cut.map(Fault::Cut),
            self.garbage.map(Fault::Garbage),
            self.drip.map(|bytes| Fault::Drip { bytes: bytes.max(1), interval }),
            self.duplicate.filter(|on| *on).map(|_| Fault::Duplicate),
            self.no_end.filter(|on| *on).map(|_| Fault::NoEnd),
            self.error.map(Fault::Error),
        ];
        let mut named = named.into_iter().flatten();
        let Some(fault) = named.next() else {
            return Err(FaultRuleError::NoFault);
        };
        match (&fault, named.next()) {
            (_, Some(_)) => Err(FaultRuleError::TwoFaults),
            (Fault::Status { status, .. }, None) if !(400..=599).contains(status) => {
                Err(FaultRuleError::Status(*status))
            }
            _ => Ok(fault),
        }
    }
}

impl<'de> Deserialize<'de> for FaultRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        FaultFields::deserialize(deserializer)?.into_rule().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Faults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Faults { rules: Vec::deserialize(deserializer)?, requests: 0 })
    }
}

impl Faults {
    /// Parses a YAML list of faults. Errors name `file`.
    pub fn from_yaml(file: &str, yaml: &str) -> Result<Self, FaultError> {
        let wrong =
            |error: serde_saphyr::Error| FaultError::Yaml { file: file.to_owned(), error: Box::new(error) };
        serde_saphyr::from_str(yaml).map_err(wrong)
    }
}

impl FromStr for Faults {
    type Err = FaultError;

    fn from_str(spec: &str) -> Result<Self, FaultError> {
        let written = spec.split(';').map(str::trim).filter(|fault| !fault.is_empty());
        let rules = written.map(|fault| {
            let row = serde_json::from_value::<FaultFields>(Value::Object(fields(fault)));
            let rule = row.map_err(FaultRuleError::from).and_then(FaultFields::into_rule);
            rule.map_err(|error| FaultError::Spec { fault: fault.to_owned(), error })
        });
        Ok(Faults { rules: rules.collect::<Result<_, _>>()?, requests: 0 })
    }
}

/// Splits `a=1,b-c=x,d` into fields: numbers become numbers, a name without value becomes `true`.
fn fields(fault: &str) -> Map<String, Value> {
    let field = |part: &str| {
        let (name, value) =
            part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value.trim())));
        let value = value.map_or(Value::Bool(true), |text| match text.parse::<serde_json::Number>() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::String(text.to_owned()),
        });
        (name.trim().replace('-', "_"), value)
    };
    fault.split(',').filter(|part| !part.trim().is_empty()).map(field).collect()
}
