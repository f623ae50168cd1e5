//! The bills of requests that are part of no conversation.

use std::path::Path;

use anyhow::{Context, Result};
use hardpan_session::{Entry, Header, SessionLog, Record, RequestRecord, SessionStore};

use crate::settings::data_folder;

/// Their folder, beside that of the sessions. Each file in it is a session in which nothing was said.
pub const SIDE_REQUESTS_FOLDER: &str = "asides";

/// Keeps what some requests cost. That it cannot be kept is said, and is no reason to fail.
pub fn record_bills(cwd: &Path, bills: Vec<RequestRecord>) {
    if let Err(error) = write_bills(cwd, bills) {
        eprintln!("hardpan: what it cost is not kept: {}", crate::output::safe_lines(&format!("{error:#}")));
    }
}

fn write_bills(cwd: &Path, bills: Vec<RequestRecord>) -> Result<()> {
    let Some(first) = bills.first() else { return Ok(()) };
    let data = data_folder().context("there is no folder for it: set HOME or HARDPAN_DATA_DIR")?;
    let (time, purpose) = (first.started, first.purpose.clone());
    let source = format!("{}/{}/{}", time.as_nanosecond(), std::process::id(), cwd.display());
    let id = &hardpan_prompt::Hash::of(source.as_bytes()).to_string()[..12];
    let path = SessionStore::new(data.join(SIDE_REQUESTS_FOLDER)).new_path(cwd, time, id);
    let header = Header {
        id: id.into(),
        time: Some(time),
        cwd: cwd.to_string_lossy().into(),
        extra: Default::default(),
    };
    let log = SessionLog::create(&path, header)?;
    let name = Record::Name { name: purpose };
    let bills = bills.into_iter().map(|bill| Record::Request(bill.into()));
    let mut parent: Option<String> = None;
    for (at, record) in [name].into_iter().chain(bills).enumerate() {
        let id = format!("e{}", at + 1);
        drop(log.append(Entry::new(id.as_str(), parent.as_deref(), Some(time), record)));
        parent = Some(id);
    }
    Ok(log.flush().wait()?)
}
