//! Takes values out of a text as its pieces come.

use std::sync::Arc;

use bytes::Bytes;

use super::needles::{Found, Needles};

/// What fills the rest where a placeholder is shorter than what it replaces.
const FILLER: u8 = b'*';

#[derive(Debug)]
pub(crate) struct Scrubber {
    needles: Arc<Needles>,
    keeps_length: bool,
    /// The end of what came, which could be the beginning of a value; as it came.
    held: Vec<u8>,
    /// A value that began before `held` and goes on in it, and how much of it is written.
    begun: Option<(Found, usize)>,
}

impl Scrubber {
    pub(super) fn new(needles: Arc<Needles>) -> Self {
        Self {
            keeps_length: needles.keep_length(),
            needles,
            held: Vec::new(),
            begun: None,
        }
    }

    /// The same for a protocol with lengths of its own: what stands for a value is cut or filled.
    pub(super) fn same_length(needles: Arc<Needles>) -> Self {
        let mut scrubber = Self::new(needles);
        scrubber.keeps_length = true;
        scrubber
    }

    /// What can be passed on, now that `piece` has come.
    pub(crate) fn pass(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        let end = self.held.len() - self.needles.begun(&self.held);
        self.release(end)
    }

    /// What was held back, when nothing more comes.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.release(self.held.len())
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn keeps_length(&self) -> bool {
        self.keeps_length
    }

    /// Writes the first `end` bytes of what is held.
    fn release(&mut self, end: usize) -> Bytes {
        let begun = self.begun.take();
        let found = self.needles.find(&self.held, begun.map(|(found, _)| found));
        let mut out = Vec::with_capacity(end);
        let mut at = 0;
        for piece in found.into_iter().filter(|piece| piece.start < end) {
            out.extend_from_slice(&self.held[at..piece.start]);
            let goes_on = begun.filter(|(begun, _)| begun.start == piece.start);
            let mut written = goes_on.map_or(0, |(_, written)| written);
            at = piece.end.min(end);
            self.write(piece.needle, written, at - piece.start, &mut out);
            written += at - piece.start;
            if piece.end > end {
                let rest = Found {
                    start: 0,
                    end: piece.end - end,
                    ..piece
                };
                self.begun = Some((rest, written));
            }
        }
        out.extend_from_slice(&self.held[at..end]);
        self.held.drain(..end);
        out.into()
    }

    /// Writes what stands for `length` bytes of a value, of which `written` were written before.
    fn write(&self, needle: usize, written: usize, length: usize, out: &mut Vec<u8>) {
        let shown = self.needles.shown(needle);
        if self.keeps_length {
            let rest = shown.get(written..).unwrap_or_default().iter().copied();
            out.extend(rest.chain(std::iter::repeat(FILLER)).take(length));
        } else if written == 0 {
            out.extend_from_slice(shown);
        }
    }
}

/// What came may be a value that was never written.
impl Drop for Scrubber {
    fn drop(&mut self) {
        self.held.fill(0);
        std::hint::black_box(&self.held);
    }
}
