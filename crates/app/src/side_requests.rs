//! [`record_bills`]: stores the bills of requests outside of conversations, such as those of
//! `hardpan commit`.

use std::path::Path;

use hardpan_session::{Entry, Header, LogError, Record, RequestRecord, SessionLog, SessionStore};

use crate::settings::UserFolders;

/// The folder of these bills, beside that of the sessions. Each file is a session without messages.
pub const SIDE_REQUESTS_FOLDER: &str = "asides";

/// Why bills are not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordBillsError {
    /// There is no folder for them.
    #[error("no data folder: set HOME or HARDPAN_DATA_DIR")]
    NoDataFolder,
    /// Their file cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Stores the bills of some requests that were made in the folder `cwd`.
pub fn record_bills(
    folders: &UserFolders,
    cwd: &Path,
    bills: Vec<RequestRecord>,
) -> Result<(), RecordBillsError> {
    let Some(first) = bills.first() else { return Ok(()) };
    let data = folders.data.as_ref().ok_or(RecordBillsError::NoDataFolder)?;
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
