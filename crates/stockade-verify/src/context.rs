//! What kind of text is judged.

use crate::rule::Setting;

/// What is known of a text as a whole. It weighs once, after everything in the text was found.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing of a text, in any combination"
)]
pub(crate) struct Context {
    /// A few lines: what they do is what they are for. No library, no large program.
    pub(crate) excerpt: bool,
    /// A script of many different commands, which administers or builds something.
    pub(crate) long: bool,
    /// A file that declares itself a script.
    pub(crate) script: bool,
    /// A file of a package that others import.
    pub(crate) library: bool,
}

impl Context {
    /// Whether a setting in which rules are softened is this one.
    pub(crate) const fn is(self, setting: Setting) -> bool {
        match setting {
            Setting::Long => self.long,
            Setting::Script => self.script,
        }
    }
}
