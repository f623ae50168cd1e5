//! [`LogFilter`]: the levels that `HARDPAN_LOG` asks for.

use std::collections::BTreeMap;

use hardpan_models::{did_you_mean, nearest};
use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// Everything that reports: the crates of Hardpan, and `hardpan`, the command itself.
const TARGETS: [&str; 22] = [
    "hardpan",
    "hardpan_agent",
    "hardpan_app",
    "hardpan_audit",
    "hardpan_context",
    "hardpan_economy",
    "hardpan_extensions",
    "hardpan_files",
    "hardpan_grammars",
    "hardpan_mcp",
    "hardpan_models",
    "hardpan_panels",
    "hardpan_prompt",
    "hardpan_providers",
    "hardpan_sandbox",
    "hardpan_session",
    "hardpan_simulator",
    "hardpan_symbols",
    "hardpan_telemetry",
    "hardpan_terminal",
    "hardpan_tools",
    "hardpan_workspace",
];

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// A level for all crates, and others for some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter {
    default: LevelFilter,
    /// The level of a crate, or of a module of it (`hardpan_agent::run`).
    targets: BTreeMap<String, LevelFilter>,
}

/// A part of `HARDPAN_LOG` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogFilterError {
    #[error(
        "\"{word}\" is no level: write off, error, warn, info, debug or trace, \
         or a level for one crate, such as hardpan_agent=debug"
    )]
    Level { word: String },
    #[error(
        "Hardpan has no crate \"{name}\"{}; an example is hardpan_agent=debug,info",
        did_you_mean(nearest)
    )]
    Target { name: String, nearest: Vec<String> },
}

impl Default for LogFilter {
    fn default() -> Self {
        LogFilter { default: LevelFilter::INFO, targets: BTreeMap::new() }
    }
}

impl LogFilter {
    /// Parses levels separated by commas. Crates that no part names are off, unless a part is a
    /// level alone.
    pub fn parse(directives: &str) -> Result<Self, LogFilterError> {
        let mut filter = LogFilter { default: LevelFilter::OFF, targets: BTreeMap::new() };
        for part in directives.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None => filter.default = parse_level(part)?,
                Some((target, level)) => {
                    let target = parse_target(target.trim())?;
                    filter.targets.insert(target, parse_level(level.trim())?);
                }
            }
        }
        Ok(filter)
    }

    /// Whether nothing at all would be written.
    pub fn is_off(&self) -> bool {
        self.default == LevelFilter::OFF && self.targets.values().all(|level| *level == LevelFilter::OFF)
    }

    /// The same as a filter of `tracing`. All other crates are off.
    pub fn into_targets(self) -> Targets {
        let ours = TARGETS.iter().map(|target| ((*target).to_owned(), self.default));
        Targets::new().with_targets(ours).with_targets(self.targets)
    }
}

fn parse_level(word: &str) -> Result<LevelFilter, LogFilterError> {
    let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    known.map(|(_, level)| *level).ok_or_else(|| LogFilterError::Level { word: word.to_owned() })
}

fn parse_target(name: &str) -> Result<String, LogFilterError> {
    let target = name.replace('-', "_");
    let krate = target.split("::").next().unwrap_or_default();
    if TARGETS.contains(&krate) {
        return Ok(target);
    }
    let nearest = nearest(krate, TARGETS.into_iter());
    Err(LogFilterError::Target { name: name.to_owned(), nearest })
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn every_crate_of_the_workspace_can_be_named() {
        let crates = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        for folder in crates {
            let name = match folder.unwrap().file_name().to_str().unwrap() {
                "cli" => "hardpan".to_owned(),
                "test-support" => continue, // not in the binary
                name => format!("hardpan_{}", name.replace('-', "_")),
            };
            assert!(TARGETS.contains(&&*name), "{name} is not in the list");
        }
    }

    #[test]
    fn a_level_alone_is_for_all_of_hardpan_and_for_nothing_else() {
        let targets = LogFilter::parse("debug").unwrap().into_targets();
        assert!(targets.would_enable("hardpan_agent::run", &Level::DEBUG));
        assert!(targets.would_enable("hardpan::logging", &Level::DEBUG));
        assert!(!targets.would_enable("hardpan_agent::run", &Level::TRACE));
        assert!(!targets.would_enable("h2::codec", &Level::ERROR));
    }

    #[test]
    fn a_crate_or_a_module_can_have_a_level_of_its_own() {
        let filter = LogFilter::parse(" hardpan-agent=trace, info ,hardpan_tools::bash=off,").unwrap();
        let targets = filter.into_targets();
        assert!(targets.would_enable("hardpan_agent", &Level::TRACE));
        assert!(targets.would_enable("hardpan_tools::edit", &Level::INFO));
        assert!(!targets.would_enable("hardpan_tools::bash", &Level::ERROR));
        assert!(!targets.would_enable("hardpan_session", &Level::DEBUG));
    }

    #[test]
    fn crates_that_are_not_named_are_off_unless_a_level_stands_alone() {
        let targets = LogFilter::parse("hardpan_session=debug").unwrap().into_targets();
        assert!(targets.would_enable("hardpan_session::log", &Level::DEBUG));
        assert!(!targets.would_enable("hardpan_agent", &Level::ERROR));
        assert!(LogFilter::parse("").unwrap().is_off() && LogFilter::parse("off").unwrap().is_off());
    }

    #[test]
    fn a_mistake_is_named_with_the_remedy() {
        assert_eq!(
            LogFilter::parse("verbose").unwrap_err().to_string(),
            "\"verbose\" is no level: write off, error, warn, info, debug or trace, \
             or a level for one crate, such as hardpan_agent=debug"
        );
        assert_eq!(
            LogFilter::parse("h2=trace").unwrap_err().to_string(),
            "Hardpan has no crate \"h2\"; an example is hardpan_agent=debug,info"
        );
        let error = LogFilter::parse("info,hardpan_agnt=debug").unwrap_err();
        assert!(matches!(&error, LogFilterError::Target { nearest, .. } if nearest[0] == "hardpan_agent"));
        assert!(matches!(LogFilter::parse("hardpan_agent="), Err(LogFilterError::Level { .. })));
    }
}
