//! The first bytes of a TLS client: no panic, and more bytes never change what was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_proxy::fuzzing::{ClientHello, client_hello};

fuzz_target!(|bytes: &[u8]| {
    let whole = client_hello(bytes);
    let part = client_hello(&bytes[..bytes.len() / 2]);
    assert!(part == ClientHello::Incomplete || part == whole, "{part:?} {whole:?}");
});
