//! A question to the resolver: no panic, an answer only with an address that was given, and never
//! for a name that is not listed.
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use stockade_proxy::fuzzing::{DnsAnswer, dns};

const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 5);

fuzz_target!(|bytes: &[u8]| {
    let mut listed = false;
    let answer = dns(bytes, &mut |name| {
        listed = name.eq_ignore_ascii_case("a.test");
        if listed {
            DnsAnswer::Addresses(V4, Some(Ipv6Addr::LOCALHOST))
        } else {
            DnsAnswer::NoName
        }
    });
    if let Some(answer) = answer {
        assert_eq!(answer[..2], bytes[..2]);
        assert!(answer[2] & 0x80 != 0);
        let records = u16::from_be_bytes([answer[6], answer[7]]);
        assert!(records <= u16::from(listed));
    }
});
