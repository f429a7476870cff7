//! Which names a file defines anywhere, so that others can be told apart as globals.

use super::hash::Set;
use super::ir::{Stmt, Target, Text};

pub(crate) fn defined(body: &[Stmt], names: &mut Set<Text>) {
    for statement in body {
        match statement {
            Stmt::Assign { target: to, .. } => target(to, names),
            Stmt::Function(function) => {
                names.extend(function.name.clone());
                defined(&function.body, names);
            }
            Stmt::Class(class) => {
                names.insert(class.name.clone());
                defined(&class.body, names);
            }
            Stmt::For {
                target: to, body, ..
            } => {
                target(to, names);
                defined(body, names);
            }
            Stmt::Block(body) | Stmt::Forever(body) => defined(body, names),
            Stmt::Break
            | Stmt::Expr(_)
            | Stmt::Import { .. }
            | Stmt::ImportAll { .. }
            | Stmt::Return(_) => {}
        }
    }
}

fn target(to: &Target, names: &mut Set<Text>) {
    match to {
        Target::Name(name) => {
            names.insert(name.clone());
        }
        Target::Tuple(targets) => targets.iter().for_each(|to| target(to, names)),
        Target::Object(members) => members.iter().for_each(|(_, to)| target(to, names)),
        Target::Attr(..) | Target::Index(..) => {}
    }
}
