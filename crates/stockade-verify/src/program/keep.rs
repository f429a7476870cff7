//! What objects keep of what they are given: lists that grow, letters with attachments, forms.
//!
//! Only names are followed, in the file's own order; what a callback puts away before the text
//! that sends it is met there.

use super::eval::{Eval, dotted};
use super::ir::{Expr, ExprKind, Text};
use super::objects::is_query;
use super::places::is_foreign;
use super::value::{Args, Kind, Taint, Value};
use crate::paths::Place;

/// Origins that stay with whoever holds a value.
const STAYS: [Taint; 13] = [
    Taint::INPUT,
    Taint::REQUEST,
    Taint::DOWNLOADED,
    Taint::DECODED,
    Taint::FILE,
    Taint::FOREIGN,
    Taint::ENVIRONMENT,
    Taint::SECRET,
    Taint::IDENTITY,
    Taint::SOCKET,
    Taint::OUTPUT,
    Taint::ENCRYPTED,
    Taint::WALKED,
];

/// Methods that add to their object, whatever it is.
fn adds(name: &str) -> bool {
    matches!(
        name,
        "append"
            | "appendleft"
            | "extend"
            | "insert"
            | "push"
            | "unshift"
            | "add"
            | "Add"
            | "set"
            | "Set"
            | "setdefault"
            | "attach"
            | "add_attachment"
            | "set_payload"
            | "set_content"
            | "add_field"
            | "add_file"
            | "write"
            | "writestr"
            | "Write"
            | "WriteString"
            | "writelines"
    )
}

/// Methods that take files into an archive by their names.
fn packs(name: &str) -> bool {
    matches!(
        name,
        "addLocalFolder" | "addLocalFile" | "addFile" | "directory" | "glob" | "attach_file"
    )
}

/// What of an origin stays.
fn staying(taint: Taint) -> Taint {
    let stays = STAYS.iter().fold(Taint::NONE, |all, one| all | *one);
    taint.only(stays)
}

impl Eval<'_, '_> {
    /// `list.append(x)`, `form.set(k, x)`: the object holds it from now on.
    pub(super) fn keeps(&mut self, callee: &Expr, args: &Args) {
        let ExprKind::Attr(base, name) = &callee.kind else {
            return;
        };
        let merges = &**name == "update";
        if !adds(name) && !packs(name) && !merges {
            return;
        }
        let mut taint = staying(args.taint());
        let packed = args.first().and_then(Value::as_text).map(Place::new);
        if packs(name) && packed.is_some_and(|place| is_foreign(&place)) {
            taint |= Taint::FOREIGN;
        }
        let Some(held) = self.held(base, taint) else {
            return;
        };
        match &held.kind {
            // Hashes and ciphers have a method of that name too.
            Kind::Api(_) if merges => return,
            Kind::List(_) if matches!(&**name, "append" | "push") => {
                for item in &args.positional {
                    held.push(item.clone());
                }
            }
            Kind::List(_) if &**name == "extend" => {
                let items = args.first().and_then(Value::as_list);
                for item in items.unwrap_or_default() {
                    held.push(item.clone());
                }
            }
            _ => {}
        }
        held.taint |= taint;
    }

    /// `cursor.execute("SELECT password …")`: what the object gives from now on are secrets.
    pub(super) fn asks(&mut self, callee: &Expr, args: &Args, result: Value) -> Value {
        let ExprKind::Attr(base, name) = &callee.kind else {
            return result;
        };
        let asks = is_query(name) && args.positional.iter().take(2).any(asks_secrets);
        if !asks {
            return result;
        }
        self.holds(base, &Value::unknown(Taint::SECRET));
        result.with(Taint::SECRET)
    }

    /// `object.field = x`, `object[key] = x`
    pub(super) fn holds(&mut self, base: &Expr, value: &Value) {
        let taint = staying(value.deep_taint());
        if taint == Taint::NONE {
            return;
        }
        if let Some(held) = self.held(base, taint)
            && !matches!(held.kind, Kind::Function(_) | Kind::Handle(_))
        {
            held.taint |= taint;
        }
    }

    /// `text += x` of a name further out: whoever reads that one later reads x.
    pub(super) fn adds_outside(&mut self, name: &Text, taint: Taint) {
        let inner = self
            .scopes
            .last()
            .is_some_and(|scope| scope.contains_key(name));
        let taint = staying(taint);
        if inner || taint == Taint::NONE {
            return;
        }
        if let Some(held) = self.slot(name) {
            held.taint |= taint;
        }
    }

    /// The variable or field that an expression names; a field that nobody set yet is made if there
    /// is something to keep.
    fn held(&mut self, base: &Expr, taint: Taint) -> Option<&mut Value> {
        let name = match &base.kind {
            ExprKind::Name(name) => name.clone(),
            ExprKind::Attr(inner, attr) => {
                let name = dotted(inner, attr)?;
                if taint != Taint::NONE {
                    let known = self.scopes.iter().any(|scope| scope.contains_key(&name));
                    if !known {
                        self.scopes[0].insert(name.clone(), Value::UNKNOWN);
                    }
                }
                name
            }
            _ => return None,
        };
        self.slot(&name)
    }

    fn slot(&mut self, name: &str) -> Option<&mut Value> {
        let mut scopes = self.scopes.iter_mut().rev();
        scopes.find_map(|scope| scope.get_mut(name))
    }
}

/// A query for columns that hold secrets.
fn asks_secrets(query: &Value) -> bool {
    let Some(text) = query.as_text().filter(|text| text.len() < 1024) else {
        return false;
    };
    let text = text.trim_start();
    let selects = text.get(..7);
    if !selects.is_some_and(|verb| verb.eq_ignore_ascii_case("select ")) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let Some((columns, _)) = lower
        .strip_prefix("select ")
        .and_then(|rest| rest.split_once(" from "))
    else {
        return false;
    };
    let words = [
        "password",
        "passwd",
        "pwd_hash",
        "card_num",
        "cardnum",
        "cvv",
        "ssn",
        "secret",
        "api_key",
        "private_key",
        "access_token",
        "credit_card",
    ];
    words.iter().any(|word| columns.contains(word))
}
