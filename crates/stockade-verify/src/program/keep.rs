//! What objects keep of what they are given: lists that grow, letters with attachments, forms.
//!
//! Only names are followed, in the file's own order; what a callback puts away before the text
//! that sends it is met there.

use super::eval::{Eval, dotted};
use super::ir::{Expr, ExprKind, Text};
use super::places::is_foreign;
use super::value::{Args, Kind, Taint, Value};
use crate::paths::Place;
use crate::words::Words;

/// Methods that add to their object, whatever it is.
static ADDING_METHODS: Words = Words::new("program/keep adding-methods");

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
    ADDING_METHODS.contains(&name)
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
