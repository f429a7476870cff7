//! Text as a rule reads it, with the way back to the bytes it came from.

use std::borrow::Cow;
use std::ops::Range;

use crate::finding::Span;

/// Normalised or decoded text and the map from its offsets to the original input.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    text: Cow<'a, [u8]>,
    map: Map,
}

impl<'a> View<'a> {
    /// A view of input as it is, the first byte at `base` of the whole input.
    pub(crate) fn plain(text: &'a [u8], base: u64) -> Self {
        Self {
            text: Cow::Borrowed(text),
            map: Map::Offset(base),
        }
    }

    /// A view whose text was rewritten piece by piece.
    pub(super) fn rewritten(text: Vec<u8>, pieces: Vec<Piece>, parent: Map) -> Self {
        Self {
            text: Cow::Owned(text),
            map: Map::Pieces {
                pieces,
                parent: Box::new(parent),
            },
        }
    }

    /// A view of what a part of this view decodes to.
    pub(crate) fn decoded(&self, source: Range<usize>, text: Vec<u8>) -> View<'static> {
        let length = text.len();
        View {
            text: Cow::Owned(text),
            map: Map::Stretched {
                source: self.span(source),
                length,
            },
        }
    }

    /// The same view, its text not copied.
    pub(crate) fn clone_borrowed(&self) -> View<'_> {
        View {
            text: Cow::Borrowed(&self.text),
            map: self.map.clone(),
        }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// True if offsets in this view differ from the original by a constant only.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.map, Map::Offset(_))
    }

    /// Where a range of this view lies in the original bytes.
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        self.map.span(range)
    }
}

/// How offsets translate.
#[derive(Clone, Debug)]
pub(crate) enum Map {
    /// By a constant.
    Offset(u64),
    /// Piece by piece, into the coordinates of `parent`.
    Pieces {
        pieces: Vec<Piece>,
        parent: Box<Map>,
    },
    /// Evenly over the source of a decoded text. Exact at both ends, a few bytes off between.
    Stretched { source: Span, length: usize },
}

/// A piece of rewritten text: from `view` on, taken from `source`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(super) view: usize,
    pub(super) source: usize,
    /// Bytes of source; equal to the bytes of view if the piece is a copy.
    pub(super) length: usize,
    pub(super) copied: bool,
}

impl Map {
    fn span(&self, range: Range<usize>) -> Span {
        match self {
            Self::Offset(base) => Span {
                start: base + range.start as u64,
                end: base + range.end as u64,
            },
            Self::Pieces { pieces, parent } => {
                let start = match piece_at(pieces, range.start) {
                    Some(piece) if piece.copied => piece.source + (range.start - piece.view),
                    Some(piece) => piece.source,
                    None => 0,
                };
                // The end is that of the last byte inside, so that what was dropped after it
                // does not count as part of the match.
                let end = match range.end.checked_sub(1).and_then(|at| piece_at(pieces, at)) {
                    Some(piece) if piece.copied => piece.source + (range.end - piece.view),
                    Some(piece) => piece.source + piece.length,
                    None => 0,
                };
                parent.span(start..end.max(start))
            }
            Self::Stretched { source, length } => {
                let width = source.end - source.start;
                let scale = |at: usize| {
                    let share = u128::from(width) * at as u128 / (*length).max(1) as u128;
                    source.start + u64::try_from(share).unwrap_or(width).min(width)
                };
                Span {
                    start: scale(range.start),
                    end: scale(range.end),
                }
            }
        }
    }
}

fn piece_at(pieces: &[Piece], view: usize) -> Option<&Piece> {
    pieces
        .partition_point(|piece| piece.view <= view)
        .checked_sub(1)
        .and_then(|at| pieces.get(at))
}
