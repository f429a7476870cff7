//! One window through every rule: normalise, match, decode, match again.

use crate::finding::Finding;
use crate::hosts::HostList;
use crate::normalize::{self, View};
use crate::peek;
use crate::{egress, injection, secrets};

/// How many layers of encoding are opened.
const DEPTH: usize = 3;
/// How many bytes all layers of one window may decode to.
const DECODED: usize = 128 * 1024;

/// Which rules run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "one switch for each inspector")]
pub struct Kinds {
    /// Text that steers an agent, and hidden text.
    pub injection: bool,
    /// Data leaving by commands or links.
    pub egress: bool,
    /// Secrets in the clear.
    pub secrets: bool,
}

impl Kinds {
    /// Every rule.
    pub const ALL: Self = Self {
        injection: true,
        egress: true,
        secrets: true,
    };
    /// Injection only.
    pub const INJECTION: Self = Self {
        injection: true,
        egress: false,
        secrets: false,
    };
    /// Egress only.
    pub const EGRESS: Self = Self {
        injection: false,
        egress: true,
        secrets: false,
    };
    /// Secrets only.
    pub const SECRETS: Self = Self {
        injection: false,
        egress: false,
        secrets: true,
    };
}

/// The rules that run and what they are told.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(crate) kinds: Kinds,
    pub(crate) allowed: HostList,
}

impl Engine {
    /// Every finding in one window, ordered by position. `base` is the offset of the window.
    pub(crate) fn window(&self, text: &[u8], base: u64) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut budget = DECODED;
        self.view(
            &View::plain(text, base),
            0,
            None,
            &mut budget,
            &mut findings,
        );
        findings.sort_by(|a, b| {
            (a.span.start, a.rule, a.span.end).cmp(&(b.span.start, b.rule, b.span.end))
        });
        // The same thing may be seen plain and normalised, or through two encodings.
        findings.dedup_by(|b, a| a.rule == b.rule && a.span.start == b.span.start);
        findings
    }

    fn view(
        &self,
        view: &View<'_>,
        depth: usize,
        encoding: Option<peek::Encoding>,
        budget: &mut usize,
        findings: &mut Vec<Finding>,
    ) {
        let first = findings.len();
        // Only injection reads the normalised text; the others need it if something was hidden.
        let plain = !self.kinds.injection && normalize::hides_nothing(view.text());
        let (normal, hidden) = if plain {
            (view.clone_borrowed(), Vec::new())
        } else {
            normalize::normalize(view)
        };
        // Of a text that normalisation changed, layers are looked for in what it gave.
        let runs = if self.kinds.secrets || normal.is_plain() {
            peek::runs(view.text())
        } else {
            Vec::new()
        };
        if self.kinds.secrets {
            findings.extend(secrets::scan(view, &runs));
        }
        if self.kinds.egress {
            findings.extend(egress::scan(view, &self.allowed));
        }
        // Colours join a value with the letter that ends them, or split it.
        let is_coloured = !normal.is_plain() && memchr::memchr(0x1b, view.text()).is_some();
        if !hidden.is_empty() || is_coloured {
            // Invisible characters may split what the plain text was searched for.
            if self.kinds.secrets {
                findings.extend(secrets::scan(&normal, &peek::runs(normal.text())));
            }
            if self.kinds.egress {
                findings.extend(egress::scan(&normal, &self.allowed));
            }
        }
        let mut layers = Vec::new();
        if self.kinds.injection {
            injection::hidden::scan(view, &hidden, findings);
            layers.extend(injection::scan(&normal, encoding, findings));
        }
        if let Some(encoding) = encoding {
            for finding in findings.iter_mut().skip(first) {
                finding.message = format!("{} (hidden in {})", finding.message, encoding.name());
            }
        }
        if depth >= DEPTH {
            return;
        }
        if normal.is_plain() {
            layers.extend(peek::layers(normal.text(), &runs));
        } else {
            layers.extend(peek::layers(normal.text(), &peek::runs(normal.text())));
        }
        for layer in layers {
            let Some(left) = budget.checked_sub(layer.text.len()) else {
                continue;
            };
            *budget = left;
            let decoded = normal.decoded(layer.source, layer.text);
            self.view(&decoded, depth + 1, Some(layer.encoding), budget, findings);
        }
        for run in hidden {
            if let normalize::HiddenKind::Run { characters, .. } = &run.kind
                && let Some(text) = normalize::invisible::decode(characters)
            {
                let decoded = view.decoded(run.source, text);
                self.view(
                    &decoded,
                    depth + 1,
                    Some(peek::Encoding::Invisible),
                    budget,
                    findings,
                );
            }
        }
    }
}
