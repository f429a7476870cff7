//! What the user does, keeps and types.

use super::Deed;
use crate::program::api::Dialect;
use crate::program::judge::Judge;
use crate::program::value::{Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_surveillance(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            span,
            endless,
            ..
        } = deed;
        let given = deed.given();
        let result = deed.result.clone();
        Some(match entry.action {
            "watch-weak" => {
                self.seen.watches.get_or_insert(span);
                // A page's script comes back to it by a timer.
                let again = endless || self.context.excerpt && self.dialect == Dialect::JavaScript;
                if again && path.contains("lip") {
                    self.seen.pastes.get_or_insert(span);
                }
                self.findings.warn(
                    Rule::Surveillance,
                    span,
                    format!("`{path}` records what the user does"),
                );
                Value::unknown(result.taint | Taint::SECRET)
            }
            "clipboard" => {
                self.seen.copies = true;
                if args.first().and_then(Value::exact).is_some_and(is_account) {
                    let reason = "puts the address of a wallet into the clipboard";
                    self.findings.add(Rule::Surveillance, span, reason);
                }
                result
            }
            "packets" => {
                self.opens_packets(deed);
                result
            }
            "field" => {
                let selector = given.to_ascii_lowercase();
                let secret = [
                    "password",
                    "passwd",
                    "card",
                    "cvv",
                    "cvc",
                    "ssn",
                    "iban",
                    "cc-",
                    "ccnum",
                    "cc_num",
                    "mnemonic",
                    "seed-phrase",
                    "private-key",
                    "privatekey",
                ];
                let every = path.ends_with("All") || path.contains("TagName");
                let every = every && selector.split(',').any(takes_all_typed);
                if every || secret.iter().any(|word| selector.contains(word)) {
                    return Some(result.with(Taint::SECRET));
                }
                result
            }
            _ => return None,
        })
    }
}

impl Judge<'_> {
    /// A socket below what programs talk with.
    fn opens_packets(&mut self, deed: &Deed<'_>) {
        let &Deed {
            path, args, span, ..
        } = deed;
        let all = |value: &Value| {
            value
                .as_api()
                .is_some_and(|name| name.ends_with("AF_PACKET"))
        };
        let numbered = args.first().and_then(Value::as_int) == Some(17);
        let kind = args.get(1, "type");
        let raw = kind.is_some_and(|kind| {
            kind.as_int() == Some(3) || kind.as_api().is_some_and(|name| name.ends_with("SOCK_RAW"))
        });
        if raw && !numbered {
            let reason = format!("`{path}` makes and reads packets by hand");
            self.findings.excerpt(Rule::NetworkAccess, span, reason);
        }
        if numbered || args.all().any(all) {
            let reason = format!("`{path}` reads all that passes on the network");
            self.findings.add(Rule::Surveillance, span, reason);
        }
    }
}

/// The address of a wallet, as it is written.
fn is_account(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric());
    let begins = ["0x", "bc1", "1", "3", "T", "4", "L", "D", "r"];
    (26..=106).contains(&text.len())
        && plain
        && digits >= 3
        && begins.iter().any(|start| text.starts_with(start))
}

/// `input`, `form[method=post]`: whatever is typed anywhere on a page.
fn takes_all_typed(selector: &str) -> bool {
    let selector = selector.trim();
    let tag = selector.split('[').next().unwrap_or_default();
    matches!(tag, "input" | "form" | "textarea" | "select")
}
