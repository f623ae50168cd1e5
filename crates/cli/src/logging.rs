//! [`start`]: writes what the crates report through `tracing` to a file, if `HARDPAN_LOG` or
//! `--log` asks for it. Nothing ever goes to the terminal.
//!
//! Only Hardpan's own reports are written. The libraries below it report HTTP headers, and with
//! them keys.

mod log_file; // LogFile: a private file of bounded size
mod log_filter; // LogFilter: what HARDPAN_LOG asks for

use std::io;
use std::path::{Path, PathBuf};

use hardpan_app::settings::UserFolders;
use thiserror::Error;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use log_file::LogFile;
use log_filter::{LogFilter, LogFilterError};

/// The variable with the levels: `debug`, or `hardpan_agent=trace,info`.
pub const LOG_VARIABLE: &str = "HARDPAN_LOG";

/// Name of the log in the state folder, unless `--log` names another file.
const LOG_FILE: &str = "hardpan.log";

/// Why no log can be written.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// The value of `HARDPAN_LOG` cannot be used.
    #[error("{LOG_VARIABLE}: {0}")]
    Filter(#[from] LogFilterError),
    /// There is no state folder, and `--log` names no file.
    #[error("no folder for the log: set HOME or HARDPAN_STATE_DIR, or name a file with --log FILE")]
    NoFolder,
    /// The file cannot be opened.
    #[error("cannot write the log {}: {error}; name another file with --log FILE", path.display())]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// Something else in this process reports already.
    #[error("cannot start the log: {0}")]
    Started(#[from] TryInitError),
}

/// Starts the log if it is asked for: by `HARDPAN_LOG`, or by `--log FILE`, which alone means
/// `info`.
pub fn start(file: Option<&Path>) -> Result<(), LoggingError> {
    let directives = std::env::var(LOG_VARIABLE).ok().filter(|value| !value.is_empty());
    let filter = match (directives, file) {
        (Some(directives), _) => LogFilter::parse(&directives)?,
        (None, Some(_)) => LogFilter::default(),
        (None, None) => return Ok(()),
    };
    if filter.is_off() {
        return Ok(());
    }
    let path = match file {
        Some(file) => file.to_owned(),
        None => UserFolders::from_env().state.ok_or(LoggingError::NoFolder)?.join(LOG_FILE),
    };
    let log = LogFile::open(&path).map_err(|error| LoggingError::File { path, error })?;
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(log)
        // Else it would tell the terminal that the disk is full.
        .log_internal_errors(false);
    Ok(tracing_subscriber::registry().with(lines).with(filter.into_targets()).try_init()?)
}
