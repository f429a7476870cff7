//! Commands put together in Perl, Ruby, PHP, Lua or awk: `c = "rm -rf "; system(c d)`.

use std::collections::HashMap;

/// Calls in one text that are worked out.
const MOST: usize = 32;
/// Variables of one text that are kept.
const MOST_VARIABLES: usize = 256;

/// Calls whose argument is a command.
const CALLS: &[&str] = &[
    "system",
    "exec",
    "execute",
    "popen",
    "passthru",
    "shell_exec",
    "spawn",
    "qx",
    "getline",
];

/// The commands that calls are given, where strings and variables set to strings make them up.
pub(super) fn commands(code: &str) -> Vec<String> {
    let variables = variables(code);
    let mut out = Vec::new();
    for call in CALLS {
        for (at, _) in code.match_indices(call).take(MOST) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = code[at + call.len()..].trim_start_matches(['(', ' ']);
            if let Some((text, parts)) = joined(rest, &variables)
                && parts > 0
            {
                out.push(text);
            }
            if out.len() >= MOST {
                return out;
            }
        }
    }
    out
}

/// Names set to a string: `c = "rm"`, `$c = 'rm'`, `my $c="rm"`.
fn variables(code: &str) -> HashMap<&str, String> {
    let mut found: HashMap<&str, String> = HashMap::new();
    for (at, _) in code.match_indices('=').take(MOST_VARIABLES) {
        let name = code[..at].trim_end_matches([' ', '.', ':']);
        let start = name
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |start| {
                start + name[start..].chars().next().map_or(1, char::len_utf8)
            });
        let name = &name[start..];
        let after = code[at + 1..].trim_start();
        if name.is_empty() || after.starts_with('=') {
            continue;
        }
        if let Some((text, _)) = joined(after, &found) {
            let adds = code[..at].ends_with('.');
            let old = found.get(name).filter(|_| adds).cloned();
            found.insert(name, old.unwrap_or_default() + &text);
        }
    }
    found
}

/// Strings and known names side by side, or with `.`, `+`, `..` or `,` between; and how many names.
fn joined(text: &str, variables: &HashMap<&str, String>) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut rest = text;
    let mut names = 0;
    let mut any = false;
    while out.len() < 4096 {
        rest = rest.trim_start_matches([' ', '.', '+', '$', '\t']);
        match rest.chars().next() {
            Some(mark @ ('"' | '\'')) => {
                let inside = &rest[1..];
                let end = inside.find(mark)?;
                out.push_str(&inside[..end]);
                rest = &inside[end + 1..];
            }
            Some(c) if c.is_alphabetic() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
                let Some(value) = variables.get(name) else {
                    break;
                };
                out.push_str(value);
                names += 1;
                rest = after;
            }
            _ => break,
        }
        any = true;
    }
    any.then_some((out, names))
}

#[cfg(test)]
mod tests {
    use super::commands;

    #[test]
    fn commands_are_put_together() {
        let awk = r#"BEGIN{c="rm -rf "; d="/x"; system(c d)}"#;
        assert_eq!(commands(awk), ["rm -rf /x"]);
        assert_eq!(
            commands(r#"$a='rm'; $b=" -rf /x"; system($a.$b);"#),
            ["rm -rf /x"]
        );
        assert_eq!(
            commands(r#"a = "rm "; a = a .. "/x"; os.execute(a)"#),
            ["rm /x"]
        );
        assert!(commands(r#"system("ls")"#).is_empty());
        assert!(commands("system(x)").is_empty());
        assert!(commands("é=\"é\"system(é").len() < 2);
    }
}
