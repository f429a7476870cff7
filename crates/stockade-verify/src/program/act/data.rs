//! Where values come from, and what makes others of them.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::value::{Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn track_source(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            span,
            ..
        } = deed;
        let result = deed.result.clone();
        Some(match entry.action {
            "clean" => {
                let taint = result.taint.without(Taint::INPUT | Taint::REQUEST);
                Value::unknown(taint)
            }
            "line" => Value::unknown(result.taint | Taint::TRIED),
            "encrypt" => Value::unknown(result.taint | Taint::ENCRYPTED),
            "input" => Value::unknown(result.taint | Taint::INPUT),
            "environment" => result.with(Taint::ENVIRONMENT),
            "identity" => {
                self.seen.identity = true;
                if path == "os/user.Current" {
                    return Some(result.with(Taint::IDENTITY));
                }
                Value::unknown(result.taint | Taint::IDENTITY)
            }
            "decode" => Value::unknown(result.taint | Taint::DECODED),
            "buffer" => Value::unknown(result.taint),
            "serialize" => {
                if args
                    .all()
                    .any(|value| matches!(value.as_api(), Some("process.env" | "os.environ")))
                {
                    self.findings.add(
                        Rule::Exfiltration,
                        span,
                        format!("`{path}` packs the whole environment"),
                    );
                }
                result
            }
            _ => return None,
        })
    }
}
