//! The host of a URL, where it is written plainly.

/// The host of a URL that is written plainly; `None` if an HTTP client might see another host.
pub fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rfind(':').filter(|at| !authority[*at..].contains(']')) {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (authority, ""),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let number = |host: &str| host.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
    let is_plain = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => number(address),
        None => host.chars().all(plain),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (is_plain && port.chars().all(|c| c.is_ascii_digit()) && !host.is_empty()).then_some(host)
}
