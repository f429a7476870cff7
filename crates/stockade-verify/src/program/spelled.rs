//! Names that are written otherwise than they are read.
//!
//! Python reads names in their normal form (NFKC, "Identifiers and keywords" of its reference):
//! mathematical or full-width letters are letters. JavaScript allows escapes in names.

use unicode_normalization::UnicodeNormalization as _;

use super::api::Dialect;
use super::escapes;
use super::ir::Text;

/// The name that an interpreter reads, where it is not the one that is written and in plain letters.
pub(super) fn plain(dialect: Dialect, name: &str) -> Option<Text> {
    let read = match dialect {
        Dialect::Python if !name.is_ascii() => name.nfkc().collect::<String>(),
        Dialect::JavaScript if name.contains('\\') => escapes::javascript(name),
        _ => return None,
    };
    (read != name && read.is_ascii()).then(|| read.into())
}
