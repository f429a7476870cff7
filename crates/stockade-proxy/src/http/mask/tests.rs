use super::*;
use proptest::prelude::*;

const VALUE: &str = "real-value-of-the-token-1234";

fn masks(values: &[&str]) -> Masks {
    let masked = |(number, value): (usize, &&str)| {
        let mask = format!("TOKEN{number}=a.test").parse().unwrap();
        let mut letter = u8::try_from(number).unwrap();
        let random = move || {
            letter = letter.wrapping_mul(73).wrapping_add(41);
            letter
        };
        Masked::new(mask, Some(value.as_ref()), random).unwrap()
    };
    Masks::new(values.iter().enumerate().map(masked).collect())
}

fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            let name = hyper::header::HeaderName::from_static(name);
            (name, HeaderValue::from_str(value).unwrap())
        })
        .collect()
}

/// What is left of a body that comes in pieces of this size.
fn scrubbed(masks: &Masks, text: &[u8], size: usize) -> Vec<u8> {
    let mut scrubber = masks.scrubber().unwrap();
    let mut out = Vec::new();
    for piece in text.chunks(size) {
        out.extend_from_slice(&scrubber.pass(piece));
    }
    out.extend_from_slice(&scrubber.rest());
    out
}

#[test]
fn values_are_put_in_and_taken_out() {
    let mut masks = masks(&[VALUE]);
    let placeholder = masks.own[0].placeholder.clone();
    let user = base64::encode(format!("me:{placeholder}").as_bytes());
    let mut sent = headers(&[
        ("x-token", format!("Bearer {placeholder}!{placeholder}")),
        ("authorization", format!("bAsIc {user}")),
        ("accept-encoding", "gzip".to_owned()),
        ("accept", "*/*".to_owned()),
    ]);
    masks.put_in(&mut sent);
    assert_eq!(sent["x-token"], format!("Bearer {VALUE}!{VALUE}"));
    let expected = base64::encode(format!("me:{VALUE}").as_bytes());
    assert_eq!(sent["authorization"], format!("Basic {expected}"));
    assert_eq!(sent["accept-encoding"], "identity");
    assert_eq!(sent["accept"], "*/*");
    assert!(!format!("{sent:?} {masks:?}").contains(VALUE));
    let mut got = headers(&[
        ("x-echo", format!("<{VALUE}>")),
        ("x-basic", format!("Basic {expected}")),
    ]);
    masks.take_out(&mut got);
    assert_eq!(got["x-echo"], format!("<{placeholder}>"));
    // What the proxy encoded comes back as what the client had encoded.
    assert_eq!(got["x-basic"], format!("Basic {user}"));
    assert_eq!(scrubbed(&masks, expected.as_bytes(), 5), user.as_bytes());
}

#[test]
fn nothing_changes_without_a_mask() {
    let mut sent = headers(&[("accept-encoding", "gzip".to_owned())]);
    Masks::default().put_in(&mut sent);
    assert_eq!(sent["accept-encoding"], "gzip");
    assert!(Masks::default().scrubber().is_none());
}

#[test]
fn of_values_that_overlap_nothing_is_left() {
    let (short, long) = ("abcdefgh", "abcdefgh-and-the-rest-of-it");
    for values in [[short, long], [long, short]] {
        let out = scrubbed(&masks(&values), format!("<{long}>").as_bytes(), 3);
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("rest") && out.ends_with('>'), "{out}");
    }
    let (one, other) = ("0123456789-shared", "shared-9876543210");
    let out = scrubbed(&masks(&[one, other]), b"<0123456789-shared-9876543210>", 4);
    let out = String::from_utf8(out).unwrap();
    assert!(!out.contains("987") && !out.contains("012"), "{out}");
    // A value that overlaps itself does not make the scrubber hold everything.
    let same = masks(&["aaaaaaaa"]);
    let mut scrubber = same.scrubber().unwrap();
    for _ in 0..100 {
        scrubber.pass(&[b'a'; 1000]);
        assert!(scrubber.held() < 100);
    }
}

#[test]
fn usual_encodings_are_found() {
    let value = "p/ss+w\"rd\\=?value";
    let masks = masks(&[value]);
    for prefix in ["", "u", "us", "usr:"] {
        let coded = base64::encode(format!("{prefix}{value} more").as_bytes());
        for coded in [coded.clone(), coded.replace('+', "-").replace('/', "_")] {
            let out = scrubbed(&masks, coded.as_bytes(), 7);
            let plain = String::from_utf8(out)
                .unwrap()
                .replace('-', "+")
                .replace('_', "/");
            let plain = base64::decode(plain.as_bytes()).unwrap();
            let plain = String::from_utf8_lossy(&plain).into_owned();
            assert!(!plain.contains("ss+w"), "{plain}");
            assert!(plain.starts_with(prefix), "{plain}");
        }
    }
    for text in [
        "p%2Fss%2Bw%22rd%5C%3D%3Fvalue",
        "p%2fss%2bw%22rd%5c%3d%3fvalue",
        "p/ss+w\\\"rd\\\\=?value",
    ] {
        let out = scrubbed(&masks, text.as_bytes(), 7);
        assert!(!String::from_utf8(out).unwrap().contains("value"), "{text}");
    }
}

proptest! {
    #[test]
    fn however_a_body_is_cut_the_value_is_not_in_it(
        text in "(x|real-|real-value-of|real-value-of-the-token-1234|é){0,12}",
        size in 1usize..40,
        short in any::<bool>(),
    ) {
        let value = if short { "real-val" } else { VALUE };
        let masks = masks(&[value]);
        let out = scrubbed(&masks, text.as_bytes(), size);
        let expected = text.replace(value, &masks.own[0].placeholder);
        prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// Values over two letters overlap in every way. The oracle marks each byte of each occurrence.
    #[test]
    fn what_is_left_is_what_no_value_covers(
        text in "[ab.]{0,60}",
        one in "[ab]{20,22}",
        cut in 0usize..12,
        size in 1usize..30,
    ) {
        let other = format!("{}{}", &one[cut..], "ab".repeat(10));
        let text = format!("{text}{one}{}.{text}", &other[one.len() - cut..]);
        let masks = masks(&[&one, &other]);
        let mut covered = vec![false; text.len()];
        for value in [&one, &other] {
            for at in 0..text.len() {
                if text[at..].starts_with(value.as_str()) {
                    covered[at..at + value.len()].fill(true);
                }
            }
        }
        let out = scrubbed(&masks, text.as_bytes(), size);
        // Placeholders of these have the length of the values.
        prop_assert_eq!(out.len(), text.len());
        for (at, byte) in text.bytes().enumerate() {
            if !covered[at] {
                prop_assert_eq!(out[at], byte);
            }
        }
        let out = String::from_utf8(out).unwrap();
        prop_assert!(!out.contains(&one) && !out.contains(&other));
    }
}
