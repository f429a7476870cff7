//! What kind of address an address is.
//!
//! A name that the user allowed may resolve to an address that nobody meant: the machine itself,
//! its neighbours, the cloud's metadata service. Only [`AddressClass::Global`] is dialled without
//! a grant that names the address. Ranges follow the IANA special-purpose registries (RFC 6890).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address. Everything but `Global` needs an explicit grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AddressClass {
    /// `192.88.99.0/24` and `2002::/16`: IPv4 inside IPv6, by relay (RFC 3056, 3068).
    SixToFour,
    /// `198.18.0.0/15`, `2001:2::/48` (RFC 2544, 5180).
    Benchmarking,
    /// 255.255.255.255.
    Broadcast,
    /// `100.64.0.0/10`: the carrier's own network (RFC 6598).
    CarrierNat,
    /// `100::/64` (RFC 6666).
    Discard,
    /// `192.0.2.0/24` and its like, `2001:db8::/32`, `3fff::/20` (RFC 5737, 3849, 9637).
    Documentation,
    /// An ordinary address on the internet.
    Global,
    /// `169.254.0.0/16`, `fe80::/10` (RFC 3927, 4291).
    LinkLocal,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// An address at which a cloud hands out credentials or configuration.
    Metadata,
    /// `224.0.0.0/4`, `ff00::/8`.
    Multicast,
    /// `64:ff9b::/96` and `64:ff9b:1::/48`: IPv4 inside IPv6, by translation (RFC 6052, 8215).
    Nat64,
    /// `10/8`, `172.16/12`, `192.168/16`, `fc00::/7`, `fec0::/10` (RFC 1918, 4193, 3879).
    Private,
    /// Set aside by IANA, not for hosts.
    Reserved,
    /// `2001::/32`: IPv4 inside IPv6, by tunnel (RFC 4380).
    Teredo,
    /// `0.0.0.0/8`, `::`: this host.
    Unspecified,
    /// `::a.b.c.d`: the deprecated form of IPv4 inside IPv6 (RFC 4291).
    V4Compatible,
    /// `::ffff:a.b.c.d`: the kernel dials the IPv4 address (RFC 4291).
    V4Mapped,
}

/// Classifies an address; see [`AddressClass`].
pub fn address_class(ip: IpAddr) -> AddressClass {
    if METADATA.contains(&ip) {
        return AddressClass::Metadata;
    }
    match ip {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => class_v6(ip),
    }
}

/// The IPv4 address that an IPv6 address stands for, if it is of a kind that carries one.
///
/// For checking what a translated address would reach; not a reason to dial it.
pub fn embedded_ipv4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match class_v6(ip) {
        AddressClass::V4Mapped | AddressClass::V4Compatible => Some(v4(segments[6], segments[7])),
        // The local-use prefix 64:ff9b:1::/48 has no fixed layout; only the well-known one has.
        AddressClass::Nat64 if segments[2] == 0 => Some(v4(segments[6], segments[7])),
        AddressClass::SixToFour => Some(v4(segments[1], segments[2])),
        // Teredo stores the client's address with every bit flipped.
        AddressClass::Teredo => Some(v4(!segments[6], !segments[7])),
        _ => None,
    }
}

impl AddressClass {
    /// Whether the address may be dialled without a grant that names it.
    pub fn is_global(self) -> bool {
        self == Self::Global
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SixToFour => "a 6to4 address",
            Self::Benchmarking => "a benchmarking address",
            Self::Broadcast => "the broadcast address",
            Self::CarrierNat => "a carrier-grade NAT address",
            Self::Discard => "a discard address",
            Self::Documentation => "a documentation address",
            Self::Global => "a global address",
            Self::LinkLocal => "a link-local address",
            Self::Loopback => "a loopback address",
            Self::Metadata => "a cloud metadata address",
            Self::Multicast => "a multicast address",
            Self::Nat64 => "a NAT64 address",
            Self::Private => "a private address",
            Self::Reserved => "a reserved address",
            Self::Teredo => "a Teredo address",
            Self::Unspecified => "an unspecified address",
            Self::V4Compatible => "an IPv4-compatible IPv6 address",
            Self::V4Mapped => "an IPv4-mapped IPv6 address",
        })
    }
}

fn class_v4(ip: Ipv4Addr) -> AddressClass {
    match ip.octets() {
        [0, ..] => AddressClass::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::CarrierNat,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        [192, 88, 99, _] => AddressClass::SixToFour,
        [198, 18..=19, ..] => AddressClass::Benchmarking,
        [255, 255, 255, 255] => AddressClass::Broadcast,
        [224..=239, ..] => AddressClass::Multicast,
        [192, 0, 0, _] | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Global,
    }
}

fn class_v6(ip: Ipv6Addr) -> AddressClass {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0, 0, 0, 0, 0, 0xffff, _, _] => AddressClass::V4Mapped,
        [0, 0, 0, 0, 0, 0, _, _] => AddressClass::V4Compatible,
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] | [0x64, 0xff9b, 1, ..] => AddressClass::Nat64,
        [0x100, 0, 0, 0, ..] => AddressClass::Discard,
        [0x2001, 0, ..] => AddressClass::Teredo,
        [0x2001, 2, 0, ..] => AddressClass::Benchmarking,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressClass::Documentation,
        // The rest of 2001::/23 is for protocols; 2001:200:: and up are ordinary.
        [0x2001, 0..=0x1ff, ..] => AddressClass::Reserved,
        [0x2002, ..] => AddressClass::SixToFour,
        [0x2000..=0x3fff, ..] => AddressClass::Global,
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // Only 2000::/3 has been given out.
        _ => AddressClass::Reserved,
    }
}

/// Where clouds hand out credentials or configuration. Most lie in ranges that are refused
/// anyway; Azure's wire server does not, and the class makes the refusal say what it is about.
const METADATA: [IpAddr; 9] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), // AWS, Azure, GCP, most others
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),   // AWS ECS task credentials
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),  // AWS EKS pod identity
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), // Alibaba
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),   // Azure wire server
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),     // Oracle
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), // AWS
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)), // AWS EKS pod identity
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)), // GCP
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(text: &str) -> AddressClass {
        address_class(text.parse().unwrap())
    }

    #[test]
    fn table() {
        use AddressClass as C;
        for (text, expected) in [
            ("8.8.8.8", C::Global),
            ("2606:4700::1111", C::Global),
            ("0.1.2.3", C::Unspecified),
            ("::", C::Unspecified),
            ("10.0.0.1", C::Private),
            ("172.15.0.1", C::Global),
            ("172.16.0.1", C::Private),
            ("172.31.255.255", C::Private),
            ("172.32.0.1", C::Global),
            ("192.168.1.1", C::Private),
            ("fd12::1", C::Private),
            ("fec0::1", C::Private),
            ("100.63.255.255", C::Global),
            ("100.64.0.1", C::CarrierNat),
            ("100.127.255.255", C::CarrierNat),
            ("100.128.0.0", C::Global),
            ("127.255.0.1", C::Loopback),
            ("::1", C::Loopback),
            ("169.254.0.1", C::LinkLocal),
            ("fe80::1", C::LinkLocal),
            ("febf::1", C::LinkLocal),
            ("169.254.169.254", C::Metadata),
            ("168.63.129.16", C::Metadata),
            ("100.100.100.200", C::Metadata),
            ("fd00:ec2::254", C::Metadata),
            ("192.0.0.8", C::Reserved),
            ("192.0.2.9", C::Documentation),
            ("198.51.100.9", C::Documentation),
            ("203.0.113.9", C::Documentation),
            ("2001:db8::1", C::Documentation),
            ("3fff:fff::1", C::Documentation),
            ("3fff:1000::1", C::Global),
            ("198.19.0.1", C::Benchmarking),
            ("2001:2::1", C::Benchmarking),
            ("192.88.99.1", C::SixToFour),
            ("2002:7f00:1::", C::SixToFour),
            ("224.0.0.1", C::Multicast),
            ("ff02::1", C::Multicast),
            ("240.0.0.1", C::Reserved),
            ("255.255.255.255", C::Broadcast),
            ("::ffff:127.0.0.1", C::V4Mapped),
            ("::127.0.0.1", C::V4Compatible),
            ("64:ff9b::7f00:1", C::Nat64),
            ("64:ff9b:1::7f00:1", C::Nat64),
            ("100::1", C::Discard),
            ("2001::1", C::Teredo),
            ("2001:10::1", C::Reserved),
            ("2001:200::1", C::Global),
            ("4000::1", C::Reserved),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn embedded_addresses_are_found() {
        let embedded = |text: &str| embedded_ipv4(text.parse().unwrap());
        let loopback = Some(Ipv4Addr::LOCALHOST);
        assert_eq!(embedded("::ffff:127.0.0.1"), loopback);
        assert_eq!(embedded("64:ff9b::127.0.0.1"), loopback);
        assert_eq!(embedded("2002:7f00:1::"), loopback);
        assert_eq!(embedded("2001::80ff:fffe"), loopback);
        assert_eq!(embedded("2606:4700::1111"), None);
    }

    proptest! {
        /// No IPv6 spelling of an IPv4 address counts as global.
        #[test]
        fn an_embedding_is_never_global(v4 in any::<Ipv4Addr>()) {
            let [a, b, c, d] = v4.octets();
            let high = u16::from_be_bytes([a, b]);
            let low = u16::from_be_bytes([c, d]);
            for ip in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low),
            ] {
                prop_assert!(!address_class(ip.into()).is_global(), "{}", ip);
            }
        }

        /// The standard library's stable predicates agree where they speak.
        #[test]
        fn std_agrees(v4 in any::<Ipv4Addr>(), v6 in any::<Ipv6Addr>()) {
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified() {
                prop_assert!(!address_class(v4.into()).is_global());
            }
            if v6.is_loopback() || v6.is_multicast() || v6.is_unspecified()
                || v6.is_unique_local() || v6.is_unicast_link_local() {
                prop_assert!(!address_class(v6.into()).is_global());
            }
        }
    }
}
