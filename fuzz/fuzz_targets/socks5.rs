//! SOCKS5 messages: no panic, no more bytes used than there are, and a name that passes is strict.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_policy::host::Host;
use stockade_proxy::fuzzing::socks5::{Request, greeting, request};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((_, used))) = greeting(bytes) {
        assert!(used <= bytes.len());
    }
    if let Ok(Some((message, used))) = request(bytes) {
        assert!(used <= bytes.len());
        if let Request::Name(name, _) = message
            && let Ok(text) = std::str::from_utf8(&name)
            && let Ok(host) = Host::parse(text)
        {
            assert!(!host.to_string().contains('\0'));
        }
        // A message that is cut is not taken for a whole one.
        assert!(!matches!(request(&bytes[..used - 1]), Ok(Some((Request::Name(..), _)))));
    }
});
