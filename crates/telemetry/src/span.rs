//! [`Span`]: one operation with its beginning, its end and its [`Attribute`]s.

/// Nanoseconds since 1970, as OTLP counts time.
pub type UnixNanos = u64;

/// Id of a trace: one run of the agent and everything in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub u128);

/// Id of a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub u64);

/// Where a span belongs: what its children name as their parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace that the span is part of.
    pub trace: TraceId,
    /// The span itself.
    pub span: SpanId,
}

/// On which side of a call the span was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Within this process.
    Internal,
    /// A request to a server.
    Client,
}

impl SpanKind {
    /// Its number in OTLP.
    pub(crate) fn number(self) -> u64 {
        match self {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        }
    }
}

/// How an operation ended. OTLP's `OK` is for applications to set, so that there is none here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing to report.
    #[default]
    Unset,
    /// It failed. The text is empty unless content is captured.
    Error(String),
}

/// The value of an [`Attribute`].
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A fraction.
    Number(f64),
    /// Several texts.
    Texts(Vec<String>),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        AttributeValue::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        AttributeValue::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        AttributeValue::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A fact about a span or a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name, such as `gen_ai.request.model`.
    pub name: &'static str,
    /// What it says.
    pub value: AttributeValue,
}

impl Attribute {
    /// An attribute of this name.
    pub fn new(name: &'static str, value: impl Into<AttributeValue>) -> Self {
        Attribute { name, value: value.into() }
    }
}

/// A finished operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its own ids.
    pub context: SpanContext,
    /// The span that it is part of; none at the root of a trace.
    pub parent: Option<SpanId>,
    /// `chat claude-sonnet-5`.
    pub name: String,
    /// On which side it was recorded.
    pub kind: SpanKind,
    /// When it began.
    pub start: UnixNanos,
    /// When it ended.
    pub end: UnixNanos,
    /// What is known about it.
    pub attributes: Vec<Attribute>,
    /// Whether it failed.
    pub status: SpanStatus,
}
