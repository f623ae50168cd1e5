//! [`AddressGuard`]: allows only addresses of the public network, and private hosts that the user
//! named.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

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
        "{host} is {address}, an address of this machine or of a private network, which is only fetched from if the user allows the host"
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
        if is_public(address) || self.private_hosts.iter().any(allowed) {
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

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

// The blocks in IANA's special-purpose registries are not public.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || a == 100 && (64..128).contains(&b) // carriers' networks
        || (a, b, c) == (192, 0, 0) // protocols
        || a == 198 && (b == 18 || b == 19) // benchmarks
        || a >= 224; // multicast, reserved, broadcast
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // IPv4 addresses within IPv6: mapped, compatible, translated, 6to4.
        [0, 0, 0, 0, 0, 0xFFFF, high, low] => v4(high, low),
        [0, 0, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        [0x64, 0xFF9B, 1, ..] | [0x2001, 0, ..] | [0x2001, 0xDB8, ..] => false,
        // Only 2000::/3 is assigned to the public network.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_recognised_in_every_form() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "172.32.0.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

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
