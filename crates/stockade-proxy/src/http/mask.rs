//! Values of masked variables: put into requests to the hosts that they are for, taken out of what
//! these answer.
//!
//! Protects a value from code that holds only its placeholder. A host that hands the value out in
//! another form (encoded, compressed, in pieces) is not kept from it: whoever is trusted with a
//! token is trusted not to.

use bytes::{Bytes, BytesMut};
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use memchr::memmem;
use stockade_policy::profile::Masked;

use crate::base64;
use crate::gate::{Gate, Target};

/// The masks of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks(Vec<Masked>);

impl Masks {
    pub(crate) fn of(gate: &Gate, target: &Target) -> Self {
        let masks = gate.masks.iter();
        let own = masks.filter(|masked| masked.mask.is_for(&target.host, target.port));
        Self(own.cloned().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the values in place of the placeholders in a request's headers.
    pub(crate) fn put_in(&self, headers: &mut HeaderMap) {
        if self.is_empty() {
            return;
        }
        let pairs: Vec<(&[u8], &[u8])> = self
            .0
            .iter()
            .map(|own| (own.placeholder.as_bytes(), own.value.reveal().as_bytes()))
            .collect();
        for (name, value) in headers.iter_mut() {
            let plain = replaced(value.as_bytes(), &pairs);
            let basic = (*name == AUTHORIZATION)
                .then(|| basic(value.as_bytes(), &pairs))
                .flatten();
            if let Some(new) = basic.or(plain)
                && let Ok(mut new) = HeaderValue::from_bytes(&new)
            {
                new.set_sensitive(true);
                *value = new;
            }
        }
        // What comes back must be readable, to be looked through.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }

    /// Takes the values out of the head of an answer.
    pub(crate) fn clean(&self, answer: &mut Parts) {
        if self.is_empty() {
            return;
        }
        // The words behind the status are the host's own, too.
        answer.extensions.remove::<hyper::ext::ReasonPhrase>();
        self.take_out(&mut answer.headers);
    }

    /// Puts the placeholders in place of the values in an answer's headers.
    fn take_out(&self, headers: &mut HeaderMap) {
        let pairs = self.outward();
        for value in headers.values_mut() {
            if let Some(new) = replaced(value.as_bytes(), &pairs)
                && let Ok(new) = HeaderValue::from_bytes(&new)
            {
                *value = new;
            }
        }
        if !self.keeps_length() {
            headers.remove(CONTENT_LENGTH);
        }
    }

    /// Whether a body has as many bytes after as before.
    pub(crate) fn keeps_length(&self) -> bool {
        let mut masks = self.0.iter();
        masks.all(|own| own.placeholder.len() == own.value.reveal().len())
    }

    fn outward(&self) -> Vec<(&[u8], &[u8])> {
        self.0
            .iter()
            .map(|own| (own.value.reveal().as_bytes(), own.placeholder.as_bytes()))
            .collect()
    }
}

/// Takes values out of a body as its pieces come.
#[derive(Debug)]
pub(crate) struct Scrubber {
    masks: Masks,
    /// The end of what came, which could be the beginning of a value.
    held: Bytes,
}

impl Scrubber {
    /// None if there is nothing to be taken out.
    pub(crate) fn new(masks: &Masks) -> Option<Self> {
        (!masks.is_empty()).then(|| Self {
            masks: masks.clone(),
            held: Bytes::new(),
        })
    }

    /// What can be passed on, now that `piece` has come.
    pub(crate) fn pass(&mut self, piece: Bytes) -> Bytes {
        let mut bytes = if self.held.is_empty() {
            piece
        } else {
            let mut joined = BytesMut::from(&std::mem::take(&mut self.held)[..]);
            joined.extend_from_slice(&piece);
            joined.freeze()
        };
        let pairs = self.masks.outward();
        if let Some(new) = replaced(&bytes, &pairs) {
            bytes = new.into();
        }
        let starts = pairs.iter().map(|(value, _)| begun(&bytes, value));
        let held = starts.max().unwrap_or(0);
        self.held = bytes.split_off(bytes.len() - held);
        bytes
    }

    /// What was held back, when nothing more comes.
    pub(crate) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn keeps_length(&self) -> bool {
        self.masks.keeps_length()
    }
}

/// How many bytes at the end could be the beginning of `value`.
fn begun(bytes: &[u8], value: &[u8]) -> usize {
    let longest = bytes.len().min(value.len() - 1);
    let mut lengths = (1..=longest).rev();
    lengths
        .find(|length| value.starts_with(&bytes[bytes.len() - length..]))
        .unwrap_or(0)
}

/// `bytes` with every first of a pair replaced by the second; none if there was none.
fn replaced(bytes: &[u8], pairs: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let mut result: Option<Vec<u8>> = None;
    for (from, to) in pairs {
        let text = result.as_deref().unwrap_or(bytes);
        let mut places = memmem::find_iter(text, from).peekable();
        if places.peek().is_none() {
            continue;
        }
        let mut new = Vec::with_capacity(text.len());
        let mut end = 0;
        for place in places {
            new.extend_from_slice(&text[end..place]);
            new.extend_from_slice(to);
            end = place + from.len();
        }
        new.extend_from_slice(&text[end..]);
        result = Some(new);
    }
    result
}

/// The same inside `Basic` credentials (RFC 7617).
fn basic(value: &[u8], pairs: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let (scheme, coded) = value.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let plain = base64::decode(coded.trim_ascii())?;
    let new = replaced(&plain, pairs)?;
    Some(format!("Basic {}", base64::encode(&new)).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUE: &str = "real-value-of-the-token-1234";

    fn masks(value: &str) -> Masks {
        let mask = "TOKEN=a.test".parse().unwrap();
        let masked = Masked::new(mask, Some(value.as_ref()), || 61);
        Masks(vec![masked.unwrap()])
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

    #[test]
    fn values_are_put_in_and_taken_out() {
        let masks = masks(VALUE);
        let placeholder = masks.0[0].placeholder.clone();
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
        assert!(!format!("{sent:?}").contains(VALUE));
        let mut got = headers(&[("x-echo", format!("<{VALUE}>"))]);
        masks.take_out(&mut got);
        assert_eq!(got["x-echo"], format!("<{placeholder}>"));
    }

    #[test]
    fn nothing_changes_without_a_mask() {
        let mut sent = headers(&[("accept-encoding", "gzip".to_owned())]);
        Masks::default().put_in(&mut sent);
        assert_eq!(sent["accept-encoding"], "gzip");
        assert!(Scrubber::new(&Masks::default()).is_none());
    }

    proptest! {
        #[test]
        fn however_a_body_is_cut_the_value_is_not_in_it(
            text in "(x|real-|real-value-of|real-value-of-the-token-1234|é){0,12}",
            size in 1usize..40,
            short in any::<bool>(),
        ) {
            let value = if short { "real-val" } else { VALUE };
            let masks = masks(value);
            let mut scrubber = Scrubber::new(&masks).unwrap();
            let mut out = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                out.extend_from_slice(&scrubber.pass(Bytes::copy_from_slice(piece)));
            }
            out.extend_from_slice(&scrubber.rest());
            let expected = text.replace(value, &masks.0[0].placeholder);
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
