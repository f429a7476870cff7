//! Programs in Python, Go and JavaScript: lowered to one form, evaluated on what is known, judged by
//! the library functions they reach.

mod act;
mod api;
mod attack;
mod callbacks;
mod calls;
mod classes;
mod cloud;
mod connect;
mod escapes;
mod eval;
mod fed;
mod fold;
mod fold_go;
mod fold_javascript;
mod fold_python;
mod gadget;
mod given;
mod go;
mod hash;
mod ir;
mod javascript;
mod judge;
mod keep;
mod loops;
mod lowering;
mod mangled;
mod modules;
mod names;
mod namespaces;
mod objects;
mod opened;
mod options;
mod payload;
mod places;
mod python;
mod replaced;
mod run;
mod seen;
mod send;
mod spelled;
mod system;
mod told;
mod tools;
mod tree;
mod truncated;
mod value;
mod wrapped;

use crate::analysis::{Analysis, Nested};
use crate::findings::Findings;
use crate::language::Language;
use crate::result::Span;
use crate::rule::Rule;

use api::Dialect;
pub(crate) use payload::recognise;

/// Judges a program; where its comments are.
pub(crate) fn judge(
    language: Language,
    text: &str,
    analysis: &Analysis<'_>,
    findings: &mut Findings,
) -> Vec<Span> {
    let (dialect, lower): (_, fn(&str) -> Option<ir::Program>) = match language {
        Language::Python => (Dialect::Python, python::lower),
        Language::Go => (Dialect::Go, go::lower),
        Language::JavaScript => (Dialect::JavaScript, javascript::lower),
        Language::TypeScript => (Dialect::JavaScript, javascript::lower_typescript),
        Language::Bash => return Vec::new(),
    };
    let Some(program) = lower(text) else {
        findings.add(
            Rule::Unreadable,
            Span::new(0, text.len().min(80)),
            "the source took too long to parse",
        );
        return Vec::new();
    };
    let broken = program.broken;
    let whole = broken.and_then(|_| truncated::completed(dialect, text));
    let whole = whole.and_then(|text| lower(&text));
    let program = whole
        .filter(|whole| whole.broken.is_none())
        .unwrap_or(program);
    let mut judge = judge::Judge::new(dialect, analysis, findings, text);
    let complete = eval::Eval::new(dialect, &mut judge).run(&program);
    judge.finish();
    if dialect == Dialect::Go {
        embedded_c(text, &program.comments, analysis, judge.findings);
        generators(text, &program.comments, analysis, judge.findings);
    }
    mangled::judge(text, judge.findings);
    if let Some(span) = program.too_deep {
        findings.add(Rule::Unreadable, span, "nested too deep to be analysed");
    }
    if !complete {
        findings
            .notes
            .push("the program is too large: analysed in part".to_owned());
    }
    if let Some(span) = broken
        && analysis.depth == 0
    {
        let reason = "not valid from here: analysed as far as it could be read";
        findings.add(Rule::Unreadable, span, reason);
    }
    program.comments
}

/// Commands that `go generate` runs.
fn generators(text: &str, comments: &[Span], analysis: &Analysis<'_>, findings: &mut Findings) {
    for comment in comments {
        let written = text.get(comment.start..comment.end).unwrap_or_default();
        if let Some(command) = written.strip_prefix("//go:generate ") {
            analysis.command_text(command, *comment, findings);
        }
    }
}

/// The C code that stands in the comment before `import "C"`.
fn embedded_c(text: &str, comments: &[Span], analysis: &Analysis<'_>, findings: &mut Findings) {
    let Some(import) = text.find("import \"C\"") else {
        return;
    };
    let before = |comment: &&Span| {
        let between = text.get(comment.end..import);
        between.is_some_and(|between| between.trim().is_empty())
    };
    if let Some(comment) = comments.iter().find(before) {
        let code = text.get(comment.start..comment.end).unwrap_or_default();
        // Declarations alone call nothing.
        if !["system(\"", "popen(\"", "exec"]
            .iter()
            .any(|call| code.contains(call))
            || !code.contains('"')
        {
            return;
        }
        analysis.nested(
            Nested::Foreign(None),
            code,
            *comment,
            Some(comment.start),
            findings,
        );
    }
}
