//! Hawk's inspector of what leaves, whose list of hosts can be read and changed.

use stockade_inspect::{EgressInspector as Inspector, InspectionResult};

/// Finds data on its way out: commands that send, links that carry, secrets in the clear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers fill in the one field that Hawk has"
)]
pub struct EgressInspector {
    /// Hosts that data may go to: names, or `*.name` for a whole domain.
    pub allowed_domains: Vec<String>,
}

impl EgressInspector {
    /// Inspects a whole text.
    pub fn inspect(&self, content: impl AsRef<[u8]>) -> InspectionResult {
        Inspector::new(&self.allowed_domains).inspect(content)
    }
}
