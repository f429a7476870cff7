//! Programs in Python, Go and JavaScript, and the data flow of shell scripts: lowered to one form,
//! evaluated on what is known, judged by the functions and commands they reach.

mod act;
mod api;
mod attack;
mod callbacks;
mod calls;
mod classes;
mod cloud;
mod command_arguments;
mod connect;
mod escapes;
mod eval;
mod fold;
mod fold_go;
mod fold_javascript;
mod fold_python;
mod gadget;
#[cfg(feature = "grammars")]
mod go;
mod hash;
mod interpreter_input;
mod ir;
#[cfg(feature = "grammars")]
mod javascript;
mod judge;
mod keep;
mod loops;
#[cfg(feature = "grammars")]
mod lowering;
#[cfg(feature = "grammars")]
mod mangled;
mod modules;
mod names;
mod namespaces;
mod objects;
mod opened;
mod options;
mod places;
#[cfg(feature = "grammars")]
mod python;
mod replaced;
mod run;
mod seen;
mod send;
mod shell;
mod spelled;
mod system;
mod tools;
#[cfg(feature = "grammars")]
mod tree;
#[cfg(feature = "grammars")]
mod truncated;
mod value;
mod wrapped;

use crate::analysis::Analysis;
#[cfg(feature = "grammars")]
use crate::context::Context;
use crate::findings::Findings;
#[cfg(feature = "grammars")]
use crate::language::Language;
#[cfg(feature = "grammars")]
use crate::result::Span;
#[cfg(feature = "grammars")]
use crate::rule::Rule;

use api::Dialect;
pub(crate) use shell::runs_input;

/// Judges the commands of a shell script by the data that reaches them.
pub(crate) fn judge_script(
    script: &stockade_shell::Script,
    excerpt: bool,
    analysis: &Analysis<'_>,
    findings: &mut Findings,
) {
    let mut judge = judge::Judge::new(Dialect::Shell, analysis, findings, "");
    judge.context.excerpt = excerpt;
    let mut eval = eval::Eval::new(Dialect::Shell, &mut judge);
    shell::lower(script, |statement| eval.run_statement(statement));
}

/// Judges a program; where its comments are, and what kind of program it is.
#[cfg(feature = "grammars")]
pub(crate) fn judge(
    language: Language,
    text: &str,
    analysis: &Analysis<'_>,
    findings: &mut Findings,
) -> (Vec<Span>, Context) {
    let (dialect, lower): (_, fn(&str) -> Option<ir::Program>) = match language {
        Language::Python => (Dialect::Python, python::lower),
        Language::Go => (Dialect::Go, go::lower),
        Language::JavaScript => (Dialect::JavaScript, javascript::lower),
        Language::TypeScript => (Dialect::JavaScript, javascript::lower_typescript),
        Language::Bash => return (Vec::new(), Context::default()),
    };
    let Some(program) = lower(text) else {
        findings.add(
            Rule::Unreadable,
            Span::new(0, text.len().min(80)),
            "the source took too long to parse",
        );
        return (Vec::new(), Context::default());
    };
    let broken = program.broken;
    let whole = broken.and_then(|_| truncated::completed(dialect, text));
    let whole = whole.and_then(|text| lower(&text));
    let program = whole
        .filter(|whole| whole.broken.is_none())
        .unwrap_or(program);
    let mut judge = judge::Judge::new(dialect, analysis, findings, text);
    let context = judge.context;
    let complete = eval::Eval::new(dialect, &mut judge).run(&program);
    judge.finish();
    if dialect == Dialect::Go {
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
    (program.comments, context)
}

/// Commands that `go generate` runs.
#[cfg(feature = "grammars")]
fn generators(text: &str, comments: &[Span], analysis: &Analysis<'_>, findings: &mut Findings) {
    for comment in comments {
        let written = text.get(comment.start..comment.end).unwrap_or_default();
        if let Some(command) = written.strip_prefix("//go:generate ") {
            analysis.command_text(command, *comment, findings);
        }
    }
}
