//! [`AddressGuard`]: allows only addresses of the public network, and private hosts that the user
//! named.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hardpan_sandbox::is_public_address;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// Why an address is not fetched from.
#[derive(Clone, Debug, Error)]
pub(super) enum AddressError {
    #[error("{0} is not an address of the web: it must begin with http:// or https://")]
    Scheme(String),
    #[error("the address holds a user name or a password: leave it out")]
    Credentials,
    #[error("the address names no host")]
    NoHost,
    #[error(
        "{host} is {}an address of this machine or of a private network, which is only fetched from if the user allows the host",
        named(host, address)
    )]
    Private { host: String, address: IpAddr },
    #[error("{host} cannot be found: {error}")]
    Unknown {
        host: String,
        #[source]
        error: Arc<io::Error>,
    },
    #[error("{host} cannot be found: it has no address")]
    NoAddress { host: String },
}

/// The address of a host that is a name.
fn named(host: &str, address: &IpAddr) -> String {
    if host.trim_matches(['[', ']']).parse() == Ok(*address) { String::new() } else { format!("{address}, ") }
}

/// Resolves host names and refuses private addresses. It is also the HTTP client's resolver, so
/// connections go to exactly the addresses that were checked (no DNS rebinding).
#[derive(Clone, Debug)]
pub(super) struct AddressGuard {
    /// Hosts that may have private addresses; `*` allows all.
    pub private_hosts: Arc<[String]>,
}

impl AddressGuard {
    /// Checks everything about an address that needs no name resolution.
    pub fn check_url(&self, url: &Url) -> Result<(), AddressError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme(url.to_string()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Credentials);
        }
        let host = url.host_str().ok_or(AddressError::NoHost)?;
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.check_address(host, address),
            Err(_) => Ok(()),
        }
    }

    /// All addresses of a host. Fails if any of them is private and the host is not allowed.
    pub async fn resolve_host(&self, host: &str) -> Result<Vec<SocketAddr>, AddressError> {
        let unknown = |error: io::Error| AddressError::Unknown { host: host.to_owned(), error: error.into() };
        let found = tokio::net::lookup_host((host, 0)).await.map_err(unknown)?;
        let found: Vec<SocketAddr> = found.collect();
        found.iter().try_for_each(|address| self.check_address(host, address.ip()))?;
        if found.is_empty() { Err(AddressError::NoAddress { host: host.to_owned() }) } else { Ok(found) }
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), AddressError> {
        let allowed =
            |private: &String| private == "*" || private.eq_ignore_ascii_case(host.trim_matches(['[', ']']));
        if is_public_address(address) || self.private_hosts.iter().any(allowed) {
            return Ok(());
        }
        Err(AddressError::Private { host: host.to_owned(), address })
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = guard.resolve_host(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_in_whatever_way_it_is_written() {
        let guard = AddressGuard { private_hosts: Arc::new([]) };
        let check = |url: &str| guard.check_url(&url.parse().unwrap());
        for private in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            assert!(matches!(check(private), Err(AddressError::Private { .. })), "{private}");
        }
        assert!(matches!(check("https://a:b@example.com/"), Err(AddressError::Credentials)));
        assert!(matches!(check("file:///etc/passwd"), Err(AddressError::Scheme(_))));
        assert!(check("https://example.com/").is_ok());
        let guard = AddressGuard { private_hosts: Arc::new(["::1".to_owned()]) };
        assert!(guard.check_url(&"http://[::1]:80/".parse().unwrap()).is_ok());
    }

    #[tokio::test]
    async fn a_name_that_means_this_machine_is_refused_unless_it_is_allowed() {
        let guard = AddressGuard { private_hosts: Arc::new([]) };
        assert!(matches!(guard.resolve_host("localhost").await, Err(AddressError::Private { .. })));
        let guard = AddressGuard { private_hosts: Arc::new(["localhost".to_owned()]) };
        assert!(guard.resolve_host("localhost").await.is_ok());
    }
}
