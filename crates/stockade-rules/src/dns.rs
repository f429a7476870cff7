//! Questions to the resolver and the answers to them (RFC 1035), as bytes.
//!
//! Allowed names get an address that stands for them; everything else does not exist. No question
//! is ever passed on.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// These addresses stand for it.
    Addresses(Ipv4Addr, Option<Ipv6Addr>),
    /// There is no such name.
    NoName,
    /// No more names can be told apart.
    Full,
}

const HEADER: usize = 12;
/// Beyond this no question is read; one name and EDNS have some 300 bytes.
const MAX_QUESTION: usize = 1024;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
const NOT_IMPLEMENTED: u8 = 4;
const FORMAT_ERROR: u8 = 1;
const SERVER_FAILURE: u8 = 2;
const NAME_ERROR: u8 = 3;
/// Clients may keep an answer for so many seconds; it holds as long as the sandbox lives.
const TIME_TO_LIVE: u32 = 60;

/// Answers a message; none where no answer is due. `look_up` gets the name as it was asked for.
pub fn respond(message: &[u8], look_up: &mut dyn FnMut(&str) -> Answer) -> Option<Vec<u8>> {
    let header = message.first_chunk::<HEADER>()?;
    let is_response = header[2] & 0x80 != 0;
    if is_response || message.len() > MAX_QUESTION {
        return None;
    }
    let operation = (header[2] >> 3) & 0x0f;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    if operation != 0 {
        return Some(reply(header, &[], NOT_IMPLEMENTED, &[]));
    }
    let parsed = (questions == 1)
        .then(|| question(&message[HEADER..]))
        .flatten();
    let Some(Question {
        name,
        kind,
        class,
        bytes,
    }) = parsed
    else {
        return Some(reply(header, &[], FORMAT_ERROR, &[]));
    };
    if class != CLASS_IN {
        return Some(reply(header, bytes, NAME_ERROR, &[]));
    }
    Some(match look_up(&name) {
        Answer::NoName => reply(header, bytes, NAME_ERROR, &[]),
        Answer::Full => reply(header, bytes, SERVER_FAILURE, &[]),
        Answer::Addresses(v4, v6) => match (kind, v6) {
            (TYPE_A, _) => reply(header, bytes, 0, &record(TYPE_A, &v4.octets())),
            (TYPE_AAAA, Some(v6)) => reply(header, bytes, 0, &record(TYPE_AAAA, &v6.octets())),
            // The name is there, but not with this kind of record.
            _ => reply(header, bytes, 0, &[]),
        },
    })
}

struct Question<'a> {
    name: String,
    kind: u16,
    class: u16,
    bytes: &'a [u8],
}

fn question(bytes: &[u8]) -> Option<Question<'_>> {
    let mut name = String::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        // A pointer has nothing to point at in a question.
        if length > 63 {
            return None;
        }
        let label = bytes.get(at..at + length)?;
        at += length;
        if !name.is_empty() {
            name.push('.');
        }
        // A dot inside a label would make one name of two labels look like three.
        if label.contains(&b'.') {
            return None;
        }
        name.push_str(std::str::from_utf8(label).ok()?);
        if name.len() > 255 {
            return None;
        }
    }
    let tail = bytes.get(at..at + 4)?;
    Some(Question {
        name,
        kind: u16::from_be_bytes([tail[0], tail[1]]),
        class: u16::from_be_bytes([tail[2], tail[3]]),
        bytes: &bytes[..at + 4],
    })
}

/// One record about the name in the question.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    // A pointer to the name behind the header.
    let mut bytes = vec![0xc0, 12];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(CLASS_IN.to_be_bytes());
    bytes.extend(TIME_TO_LIVE.to_be_bytes());
    bytes.extend(u16::try_from(data.len()).unwrap_or(0).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn reply(header: &[u8; HEADER], question: &[u8], code: u8, record: &[u8]) -> Vec<u8> {
    const RESPONSE: u8 = 0x80;
    const RECURSION_DESIRED: u8 = 0x01;
    const RECURSION_AVAILABLE: u8 = 0x80;
    let mut bytes = vec![
        header[0],
        header[1],
        RESPONSE | (header[2] & (0x78 | RECURSION_DESIRED)),
        RECURSION_AVAILABLE | code,
        0,
        u8::from(!question.is_empty()),
        0,
        u8::from(!record.is_empty()),
        0,
        0,
        0,
        0,
    ];
    bytes.extend_from_slice(question);
    bytes.extend_from_slice(record);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 5);
    const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 5);

    fn ask(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(CLASS_IN.to_be_bytes());
        bytes
    }

    fn only_a(name: &str) -> Answer {
        if name.eq_ignore_ascii_case("a.test") {
            Answer::Addresses(V4, Some(V6))
        } else {
            Answer::NoName
        }
    }

    fn code(reply: &[u8]) -> u8 {
        reply[3] & 0x0f
    }

    #[test]
    fn a_listed_name_has_its_address() {
        let reply = respond(&ask("A.test", TYPE_A), &mut only_a).unwrap();
        assert_eq!(&reply[..2], [0xab, 0xcd]);
        assert_eq!(code(&reply), 0);
        assert_eq!(reply[7], 1);
        assert!(reply.ends_with(&V4.octets()));
        let reply = respond(&ask("a.test", TYPE_AAAA), &mut only_a).unwrap();
        assert!(reply.ends_with(&V6.octets()));
    }

    #[test]
    fn other_kinds_are_empty_and_other_names_do_not_exist() {
        let reply = respond(&ask("a.test", 15), &mut only_a).unwrap();
        assert_eq!((code(&reply), reply[7]), (0, 0));
        let reply = respond(&ask("b.test", TYPE_A), &mut only_a).unwrap();
        assert_eq!((code(&reply), reply[7]), (NAME_ERROR, 0));
    }

    #[test]
    fn what_is_no_question_gets_no_address() {
        let mut never = |name: &str| panic!("looked up {name}");
        assert_eq!(respond(b"short", &mut never), None);
        let mut response = ask("a.test", TYPE_A);
        response[2] |= 0x80;
        assert_eq!(respond(&response, &mut never), None);
        let mut update = ask("a.test", TYPE_A);
        update[2] = 5 << 3;
        assert_eq!(
            code(&respond(&update, &mut never).unwrap()),
            NOT_IMPLEMENTED
        );
        let mut two = ask("a.test", TYPE_A);
        two[5] = 2;
        assert_eq!(code(&respond(&two, &mut never).unwrap()), FORMAT_ERROR);
        let mut pointer = ask("a.test", TYPE_A);
        pointer[HEADER] = 0xc0;
        assert_eq!(code(&respond(&pointer, &mut never).unwrap()), FORMAT_ERROR);
        let mut dotted = ask("a.test", TYPE_A);
        dotted[HEADER + 3] = b'.';
        assert_eq!(code(&respond(&dotted, &mut never).unwrap()), FORMAT_ERROR);
        let mut chaos = ask("a.test", TYPE_A);
        *chaos.last_mut().unwrap() = 3;
        assert_eq!(code(&respond(&chaos, &mut never).unwrap()), NAME_ERROR);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = respond(&bytes, &mut only_a);
        }
    }
}
