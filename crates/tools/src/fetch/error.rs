//! [`FetchError`]: why a page was not fetched.

use std::str::FromStr;
use std::sync::Arc;

use reqwest::Url;
use thiserror::Error;
use tokio::task::JoinError;

use super::address_guard::AddressError;
use super::pdf::PdfError;
use super::{MAX_ADDRESS_BYTES, MAX_REDIRECTS};

/// What the parser of addresses says; its crate is not a dependency of this one.
type UrlError = <Url as FromStr>::Err;

/// Why a page was not fetched. The model reads the text: "… was not fetched: *it broke off*".
#[derive(Clone, Debug, Error)]
pub(super) enum FetchError {
    /// The client cannot be built, or the server cannot be reached.
    #[error("{}", innermost_cause(.0))]
    Http(#[source] Arc<reqwest::Error>),
    #[error("the address is not valid: {0}")]
    InvalidAddress(#[source] UrlError),
    #[error("the address is longer than {MAX_ADDRESS_BYTES} bytes")]
    LongAddress,
    #[error(transparent)]
    Refused(#[from] AddressError),
    #[error("it sends to {to:?}: {error}")]
    InvalidRedirect {
        to: String,
        #[source]
        error: UrlError,
    },
    #[error("it sends to another host: fetch {to} if that is meant")]
    OtherHost { to: Url },
    #[error("it sends from one address to the next more than {MAX_REDIRECTS} times")]
    ManyRedirects,
    #[error("it broke off: {}", innermost_cause(.0))]
    BrokeOff(#[source] Arc<reqwest::Error>),
    #[error("the method is no valid one")]
    InvalidMethod,
    #[error("the header {name:?} is not valid")]
    InvalidHeader { name: String },
    #[error("the answer has more than {limit} bytes")]
    LargeAnswer { limit: usize },
    #[error("it took longer than {seconds} seconds")]
    TimedOut { seconds: u64 },
    #[error("it does not say what it is, and it is not text")]
    UnknownContent,
    #[error("it is {content_type}, not text")]
    NotText { content_type: String },
    #[error("{error}{}", if *cut { ", as far as it was read" } else { "" })]
    Pdf {
        #[source]
        error: PdfError,
        /// Only its beginning was read.
        cut: bool,
    },
    /// The conversion to text panicked.
    #[error("{0}")]
    Conversion(#[source] Arc<JoinError>),
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        FetchError::Http(Arc::new(error))
    }
}

/// The innermost cause of an error, which says what happened; the outer ones only say that
/// something did. An [`AddressError`] says it all.
fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source().filter(|_| !cause.is::<AddressError>()) {
        cause = inner;
    }
    cause.to_string()
}
