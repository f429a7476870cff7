//! `/etc/hosts`: names that the machine's owner wrote down, which the resolver would find too, but
//! only without the dot that keeps it from its search list.

use std::net::IpAddr;

use stockade_policy::host::{Host, HostName};

/// The addresses of a name in the machine's own file.
pub(crate) fn lookup(name: &HostName) -> Vec<IpAddr> {
    // Missing or unreadable, it says nothing.
    std::fs::read_to_string("/etc/hosts")
        .map(|text| find(&text, name))
        .unwrap_or_default()
}

fn find(text: &str, name: &HostName) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(Ok(ip)) = words.next().map(str::parse) else {
            continue;
        };
        let named = |word: &str| Host::parse(word) == Ok(Host::Name(name.clone()));
        if words.any(named) {
            found.push(ip);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_found_and_comments_are_not() {
        let text =
            "127.0.0.1 localhost\n10.0.0.1\tA.test alias.test # b.test\n::1 a.test\nx a.test";
        let of = |name: &str| find(text, &HostName::parse(name).unwrap());
        assert_eq!(
            of("a.test"),
            ["10.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().unwrap())
        );
        assert_eq!(of("alias.test").len(), 1);
        assert_eq!(of("b.test"), Vec::<IpAddr>::new());
    }
}
