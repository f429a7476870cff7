//! Values of masked variables: put into requests to the hosts that they are for, taken out of what
//! these answer.
//!
//! Protects a value from code that holds only its placeholder, also in the usual encodings. A host
//! that hands the value out in another form (compressed, in pieces, in reverse) is not kept from it:
//! whoever is trusted with a token is trusted not to.

mod needles;
mod scrubber;

use std::sync::{Arc, OnceLock};

use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use memchr::memmem;
use stockade_policy::profile::Masked;

use self::needles::Needles;
pub(crate) use self::scrubber::Scrubber;
use crate::base64;
use crate::gate::{Gate, Target};

/// The masks of one request.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    own: Vec<Masked>,
    /// What was encoded with a value in it, and what the client sent in its place.
    sent: Vec<(Vec<u8>, Vec<u8>)>,
    needles: OnceLock<Arc<Needles>>,
}

impl Masks {
    pub(crate) fn of(gate: &Gate, target: &Target) -> Self {
        let masks = gate.masks.iter();
        let own = masks.filter(|masked| masked.mask.is_for(&target.host, target.port));
        Self::new(own.cloned().collect())
    }

    fn new(own: Vec<Masked>) -> Self {
        Self {
            own,
            sent: Vec::new(),
            needles: OnceLock::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Puts the values in place of the placeholders in a request's headers.
    pub(crate) fn put_in(&mut self, headers: &mut HeaderMap) {
        if self.is_empty() {
            return;
        }
        let pairs: Vec<(&[u8], &[u8])> = self
            .own
            .iter()
            .map(|own| (own.placeholder.as_bytes(), own.value.reveal().as_bytes()))
            .collect();
        for (name, value) in headers.iter_mut() {
            let plain = replaced(value.as_bytes(), &pairs);
            let basic = (*name == AUTHORIZATION)
                .then(|| basic(value.as_bytes(), &pairs))
                .flatten();
            if let Some(new) = &basic {
                let coded = |text: &[u8]| text[BASIC.len()..].trim_ascii().to_vec();
                self.sent.push((coded(new), coded(value.as_bytes())));
            }
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

    /// Takes values out of a body; none if there is nothing to be taken out.
    pub(crate) fn scrubber(&self) -> Option<Scrubber> {
        (!self.is_empty()).then(|| Scrubber::new(Arc::clone(self.needles())))
    }

    /// Takes values out of what is said after HTTP was left.
    pub(crate) fn stream_scrubber(&self) -> Option<Scrubber> {
        (!self.is_empty()).then(|| Scrubber::same_length(Arc::clone(self.needles())))
    }

    /// Puts the placeholders in place of the values in an answer's headers.
    fn take_out(&self, headers: &mut HeaderMap) {
        let needles = self.needles();
        for value in headers.values_mut() {
            if needles.find(value.as_bytes(), None).is_empty() {
                continue;
            }
            let mut scrubber = Scrubber::new(Arc::clone(needles));
            let mut new = scrubber.pass(value.as_bytes()).to_vec();
            new.extend_from_slice(&scrubber.rest());
            if let Ok(new) = HeaderValue::from_bytes(&new) {
                *value = new;
            }
        }
        if !needles.keep_length() {
            headers.remove(CONTENT_LENGTH);
        }
    }

    fn needles(&self) -> &Arc<Needles> {
        let make = || Arc::new(Needles::new(&self.own, &self.sent));
        self.needles.get_or_init(make)
    }
}

/// What was sent has values in it.
impl Drop for Masks {
    fn drop(&mut self) {
        for (text, _) in &mut self.sent {
            text.fill(0);
            std::hint::black_box(text);
        }
    }
}

/// The scheme of credentials that have a name and a password (RFC 7617).
const BASIC: &str = "Basic ";

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

/// The same inside `Basic` credentials.
fn basic(value: &[u8], pairs: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let (scheme, coded) = value.split_at_checked(BASIC.len())?;
    if !scheme.eq_ignore_ascii_case(BASIC.as_bytes()) {
        return None;
    }
    let plain = base64::decode(coded.trim_ascii())?;
    let new = replaced(&plain, pairs)?;
    Some(format!("{BASIC}{}", base64::encode(&new)).into_bytes())
}

#[cfg(test)]
mod tests;
