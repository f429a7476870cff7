//! Any bytes as lines to `stockade serve`: no panic, every line is a message or an error, a message
//! has a method, and parameters are those of the method or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_serve::{Line, LineReader, check_line, parse};

fuzz_target!(|data: &[u8]| {
    let mut reader = LineReader::new(data);
    while let Ok(Some(line)) = reader.next_line() {
        let Line::Complete(line) = line else { continue };
        match parse(line) {
            Ok(message) => assert!(message.params.is_object()),
            Err(bad) => assert!(bad.failure.to_api().code < 0),
        }
        if let Err(failure) = check_line(line) {
            assert!(failure.to_api().code < 0);
        }
    }
});
