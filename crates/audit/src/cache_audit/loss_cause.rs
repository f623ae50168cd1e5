//! [`LossCause`]: why tokens that had been cached were paid again, as far as a recording tells.

use hardpan_economy::Cause;
use hardpan_economy::format::format_number;

/// Why cached tokens were paid again.
#[derive(Clone, Debug, PartialEq)]
pub enum LossCause {
    /// The recording names the cause, or leaves no doubt.
    Recorded(Cause),
    /// Nothing recorded explains the loss; this is what the bill shows.
    Unrecorded(UnexplainedLoss),
}

/// Where the cause of a loss is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseSource {
    /// The agent's own verdict of the time, which knew both prompts.
    Verdict,
    /// The recorded requests: the audit compared both.
    Request,
    /// Times, sizes and the conversation: what the audit concludes from them.
    Inferred,
}

impl CauseSource {
    /// The source's name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            CauseSource::Verdict => "verdict",
            CauseSource::Request => "request",
            CauseSource::Inferred => "inferred",
        }
    }

    /// How certain a cause of this source is, in a word that the report explains.
    pub fn certainty(self) -> &'static str {
        match self {
            CauseSource::Verdict => "recorded",
            CauseSource::Request => "compared",
            CauseSource::Inferred => "inferred",
        }
    }
}

/// How much was lost while the cache should have been warm, with nothing recorded that explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnexplainedLoss {
    /// The whole prefix. Tools and system prompt come first, so one of them must have changed.
    WholePrefix,
    /// The whole prefix, at a provider that caches automatically and promises nothing.
    WholePrefixAutomatic,
    /// All but the first so many tokens: something after them changed.
    AllBut(u64),
    /// All but the first so many tokens, at a provider that caches automatically.
    AllButAutomatic(u64),
    /// The previous request had not been answered yet, so what it wrote could not be read.
    NotYetAnswered,
    /// The recorded requests agree in all that the provider caches.
    SameRequest,
}

impl LossCause {
    /// The cause in words, with its figures, as the second half of a sentence.
    pub fn describe(&self) -> String {
        match self {
            LossCause::Recorded(cause) => cause.describe(),
            LossCause::Unrecorded(UnexplainedLoss::WholePrefix) => {
                "the whole prefix was lost while warm: the system prompt or the tools changed".into()
            }
            LossCause::Unrecorded(UnexplainedLoss::WholePrefixAutomatic) => {
                "the whole prefix was lost while warm: its beginning changed, or the provider no longer had it".into()
            }
            LossCause::Unrecorded(UnexplainedLoss::AllBut(tokens)) => {
                format!("all but the first {} tokens were lost while warm: something after them changed", format_number(*tokens))
            }
            LossCause::Unrecorded(UnexplainedLoss::AllButAutomatic(tokens)) => format!(
                "all but the first {} tokens were lost while warm: something after them changed, or the provider no longer had it",
                format_number(*tokens)
            ),
            LossCause::Unrecorded(UnexplainedLoss::NotYetAnswered) => {
                "the request before it was still unanswered, so what that wrote could not be read yet".into()
            }
            LossCause::Unrecorded(UnexplainedLoss::SameRequest) => {
                "both requests agree, and the provider no longer had the prefix".into()
            }
        }
    }

    /// The cause without its figures, so that equal ones can be added up, and what to do about it.
    pub fn category(&self) -> CauseCategory {
        let (name, advice) = match self {
            LossCause::Recorded(cause) => recorded_category(cause),
            LossCause::Unrecorded(loss) => loss.category(),
        };
        CauseCategory { name, advice }
    }

    /// Who could have avoided a loss, given whether the agent could.
    pub(super) fn avoidable_by(&self, is_avoidable: bool) -> AvoidableBy {
        let is_choice = matches!(
            self,
            LossCause::Recorded(
                Cause::Expired { .. }
                    | Cause::ChangedByExtension { .. }
                    | Cause::ImageAdded
                    | Cause::ThinkingChanged
                    | Cause::EffortChanged
                    | Cause::SettingChanged(_)
                    | Cause::ModelChanged { .. }
                    | Cause::ProviderChanged { .. }
            )
        );
        match (is_avoidable, is_choice) {
            (true, _) => AvoidableBy::Agent,
            (false, true) => AvoidableBy::Person,
            (false, false) => AvoidableBy::Nobody,
        }
    }

    /// Whether the agent could have avoided the loss: it was neither the user's choice nor a rule
    /// of the provider.
    pub(super) fn is_avoidable(&self, trigger: RequestTrigger) -> bool {
        match self {
            // The agent changed the bytes; an automatic cache may also forget by itself.
            LossCause::Unrecorded(lost) => {
                matches!(
                    lost,
                    UnexplainedLoss::WholePrefix
                        | UnexplainedLoss::AllBut(_)
                        | UnexplainedLoss::NotYetAnswered
                )
            }
            // The agent could have kept the cache warm during a long tool call; a pause is the user's choice.
            LossCause::Recorded(Cause::Expired { .. }) => trigger == RequestTrigger::Tools,
            LossCause::Recorded(
                Cause::AsExpected
                | Cause::FirstRequest
                | Cause::ImageAdded
                | Cause::ThinkingChanged
                | Cause::EffortChanged
                | Cause::SettingChanged(_)
                | Cause::ModelChanged { .. }
                | Cause::ProviderChanged { .. }
                | Cause::BelowMinimum { .. }
                | Cause::Evicted,
            ) => false,
            LossCause::Recorded(_) => true,
        }
    }
}

/// The name of a recorded cause without its figures, and what to do about it.
fn recorded_category(cause: &Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::Expired { .. } => (
            "the cache expired",
            "go on sooner, or ask for the one-hour cache where the agent offers it; after a long break, begin anew or compact first",
        ),
        Cause::ModelChanged { .. } => ("the model changed", "switch models between tasks, not within one"),
        Cause::ProviderChanged { .. } => {
            ("the provider changed", "stay with one provider within a conversation")
        }
        Cause::Compacted => (
            "the conversation was compacted",
            "compact at a natural break, and keep large outputs out of the context, so that it is seldom needed",
        ),
        Cause::Folded => {
            ("a fold laid the items anew", "nothing: a fold pays for itself with the requests after it")
        }
        Cause::Resumed => (
            "the session was resumed by another process",
            "resume with the tools, the settings and the version that it was left with",
        ),
        Cause::ThinkingChanged | Cause::EffortChanged | Cause::SettingChanged(_) => {
            ("a setting changed", "choose thinking and other settings before the first prompt")
        }
        Cause::ImageAdded | Cause::ImageRemoved => (
            "the first image came, or the last one went",
            "attach images with the first prompt, or in a conversation of their own",
        ),
        Cause::TooManyNewBlocks { .. } => (
            "too many new blocks came at once",
            "fewer tool calls at once; the agent could set one more breakpoint between them",
        ),
        Cause::Unmarked => {
            ("no breakpoint was set", "tell the makers of the agent: what is not marked is not cached")
        }
        Cause::BelowMinimum { .. } => (
            "the prefix was under the provider's minimum",
            "nothing: prompts this small are not cached, and cost little",
        ),
        Cause::SaidByProvider { .. } => (
            "the provider names a change",
            "keep what it names fixed within a conversation: tools, system prompt or earlier messages",
        ),
        Cause::Evicted => EVICTED,
        Cause::ChangedByExtension { .. } => (
            "an extension changed the request",
            "leave out the extension that is named, or have it say with ctx.ephemeral what changes from turn to turn",
        ),
        cause @ Cause::ToolsChanged { .. } if cause.server().is_some() => (
            "an MCP server changed its tools",
            "have the server list the same tools each time, or let the model search its tools (mcp_tools in config.toml)",
        ),
        Cause::ToolsChanged { .. } => {
            ("the tools changed", "neither add nor remove tools or MCP servers within a conversation")
        }
        Cause::SystemChanged(_) => (
            "the system prompt changed",
            "keep what it is made of fixed within a conversation: instruction files, memories, the date",
        ),
        Cause::ItemChanged { .. } | Cause::MessageChanged { .. } | Cause::LayoutChanged(_) => (
            "the prompt was laid out otherwise",
            "tell the makers of the agent: it rewrote what it had sent before",
        ),
        Cause::AsExpected | Cause::FirstRequest => ("nothing was lost", ""),
    }
}

/// The provider dropped what it had.
const EVICTED: (&str, &str) =
    ("the provider no longer had it", "nothing: the provider dropped it before its time");

impl UnexplainedLoss {
    fn category(self) -> (&'static str, &'static str) {
        match self {
            UnexplainedLoss::WholePrefix => (
                "lost while warm: the system prompt or the tools changed",
                "keep tools, MCP servers and instruction files fixed within a conversation; if they were, the agent changes them: tell its makers",
            ),
            UnexplainedLoss::WholePrefixAutomatic | UnexplainedLoss::AllButAutomatic(_) => (
                "lost while warm: the prompt changed, or the provider no longer had it",
                "keep tools and settings fixed within a conversation; a part may be the provider's, whose automatic cache promises nothing",
            ),
            UnexplainedLoss::AllBut(_) => (
                "lost in part while warm: something in the conversation changed",
                "look for a setting that trims or edits earlier messages; else tell the makers of the agent",
            ),
            UnexplainedLoss::NotYetAnswered => (
                "the request before was still unanswered",
                "start parallel requests once the first has begun to answer",
            ),
            UnexplainedLoss::SameRequest => EVICTED,
        }
    }
}

/// Causes that are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseCategory {
    /// The cause without its figures.
    pub name: &'static str,
    /// What to do about it; empty if there is nothing to say.
    pub advice: &'static str,
}

/// Who could have avoided a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AvoidableBy {
    /// The program that built the prompt.
    Agent,
    /// The person: a pause, another model, another setting.
    Person,
    /// Neither: a rule of the provider, or its cache.
    Nobody,
}

impl AvoidableBy {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            AvoidableBy::Agent => "agent",
            AvoidableBy::Person => "person",
            AvoidableBy::Nobody => "nobody",
        }
    }

    /// In words, as a sentence without its end.
    pub fn describe(self) -> &'static str {
        match self {
            AvoidableBy::Agent => "the agent could have avoided it",
            AvoidableBy::Person => "you could have avoided it",
            AvoidableBy::Nobody => "neither you nor the agent could have avoided it",
        }
    }
}

/// What a request was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTrigger {
    /// A message of the user.
    Person,
    /// The results of tools.
    Tools,
}
