//! [`record_bills`]: stores the bills of requests outside of conversations, such as those of
//! `hardpan commit`.

use std::path::Path;

use anyhow::{Context, Result};
use hardpan_session::{Entry, Header, Record, RequestRecord, SessionLog, SessionStore};

use crate::settings::data_folder;
use crate::text::{error_text, safe_lines};

/// The folder of these bills, beside that of the sessions. Each file is a session without messages.
pub const SIDE_REQUESTS_FOLDER: &str = "asides";

/// Stores the bills of some requests. A failure is printed and does not fail the command.
pub fn record_bills(cwd: &Path, bills: Vec<RequestRecord>) {
    if let Err(error) = write_bills(cwd, bills) {
        eprintln!("hardpan: cannot store the cost: {}", safe_lines(&error_text(error.as_ref())));
    }
}

fn write_bills(cwd: &Path, bills: Vec<RequestRecord>) -> Result<()> {
    let Some(first) = bills.first() else { return Ok(()) };
    let data = data_folder().context("no data folder: set HOME or HARDPAN_DATA_DIR")?;
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
