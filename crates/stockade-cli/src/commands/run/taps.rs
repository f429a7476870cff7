//! What stands between a command's output and the caller: inspection and redaction, each by choice.

use stockade_engine::{Stream, Tap};

use super::inspection::{Inspection, Inspector};
use super::redaction::{Redacted, Redaction};
use crate::args::RunArgs;
use crate::output::Format;

pub(super) struct Taps {
    inspector: Option<Inspector>,
    redaction: Option<Redaction>,
}

/// What they saw: fields of the report.
#[derive(Debug, serde::Serialize)]
pub(super) struct Seen {
    #[serde(skip_serializing_if = "Option::is_none")]
    inspection: Option<Inspection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redaction: Option<Redacted>,
}

impl Taps {
    pub(super) fn chosen(args: &RunArgs) -> Self {
        Self {
            inspector: args.inspect.then(Inspector::new),
            redaction: args.redact.then(Redaction::default),
        }
    }

    /// Nothing, if nothing was chosen: then the command writes to the caller's own descriptors.
    pub(super) fn as_tap(&self) -> Option<&dyn Tap> {
        (self.inspector.is_some() || self.redaction.is_some()).then_some(self as &dyn Tap)
    }

    pub(super) fn finish(self) -> Seen {
        Seen {
            inspection: self.inspector.map(Inspector::finish),
            redaction: self.redaction.map(Redaction::finish),
        }
    }
}

impl Tap for Taps {
    fn passed(&self, stream: Stream, bytes: &[u8]) {
        if let Some(inspector) = &self.inspector {
            inspector.passed(stream, bytes);
        }
    }

    fn replace(&self, stream: Stream, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(self.redaction.as_ref()?.replace(stream, bytes))
    }

    fn rest(&self, stream: Stream) -> Vec<u8> {
        let redaction = self.redaction.as_ref();
        redaction.map_or_else(Vec::new, |redaction| redaction.rest(stream))
    }

    fn typed(&self, keys: &[u8]) {
        if let Some(redaction) = &self.redaction {
            redaction.typed(keys);
        }
    }
}

impl Seen {
    /// What a person should know at once.
    pub(super) fn tell(&self, format: Format) {
        if let Some(inspection) = &self.inspection {
            inspection.tell(format);
        }
        if let Some(redaction) = &self.redaction {
            redaction.tell(format);
        }
    }
}
