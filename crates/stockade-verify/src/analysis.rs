//! One verification in progress: what is configured, and how deep texts within texts may go.

use stockade_shell::Language as Foreign;

#[cfg(not(feature = "grammars"))]
use crate::context::Context;
use crate::findings::Findings;
use crate::language::Language;
use crate::result::Span;
use crate::shell;
use crate::verifier::CodeVerifier;

/// Texts inside texts inside texts.
const DEEPEST: usize = 6;

/// A language met inside another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nested {
    Full(Language),
    /// A language without a grammar here, if it is known which.
    Foreign(Option<Foreign>),
}

/// A verification in progress.
#[derive(Clone, Copy)]
pub(crate) struct Analysis<'a> {
    pub(crate) verifier: &'a CodeVerifier,
    pub(crate) depth: usize,
}

impl Analysis<'_> {
    /// Judges a whole text; where its comments are.
    pub(crate) fn run(&self, language: Language, text: &str, findings: &mut Findings) -> Vec<Span> {
        let mut own = Findings::default();
        let (comments, context) = match language {
            Language::Bash => shell::judge(text, self, &mut own),
            #[cfg(feature = "grammars")]
            _ => crate::program::judge(language, text, self, &mut own),
            #[cfg(not(feature = "grammars"))]
            _ => {
                shell::judge_foreign(None, text, self, &mut own);
                (Vec::new(), Context::default())
            }
        };
        own.weigh_in(context);
        findings.absorb(own, Span::default(), Some(0));
        comments
    }

    /// Judges code found inside other code; whether it has errors.
    pub(crate) fn nested(
        &self,
        language: Nested,
        code: &str,
        span: Span,
        base: Option<usize>,
        findings: &mut Findings,
    ) -> bool {
        if self.depth >= DEEPEST {
            findings.add(
                crate::rule::Rule::ObfuscatedText,
                span,
                "code within code within code, too deep to be read",
            );
            return true;
        }
        let inner_analysis = Analysis {
            verifier: self.verifier,
            depth: self.depth + 1,
        };
        let mut inner = Findings::default();
        match language {
            Nested::Full(language) => {
                inner_analysis.run(language, code, &mut inner);
            }
            Nested::Foreign(language) => {
                shell::judge_foreign(language, code, &inner_analysis, &mut inner);
            }
        }
        let errors = inner.has_errors();
        findings.absorb(inner, span, base);
        errors
    }

    /// Judges the text of a shell command found in other code.
    pub(crate) fn command_text(&self, command: &str, span: Span, findings: &mut Findings) {
        self.nested(Nested::Full(Language::Bash), command, span, None, findings);
    }
}
