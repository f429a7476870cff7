//! What simple `sed` scripts make of a constant text: substitutions of plain strings.

/// Commands of one script that are followed.
const MAX_COMMANDS: usize = 32;

/// The output of `sed` on a known input, if the script only replaces plain text.
pub(crate) fn output(args: &[&str], input: &str) -> Option<String> {
    let mut scripts = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match *word {
            "-e" | "--expression" => scripts.push(*words.next()?),
            "-r" | "-E" | "-s" | "-u" => {}
            word if word.starts_with('-') => return None,
            word if scripts.is_empty() => scripts.push(word),
            _ => return None,
        }
    }
    if input.trim().is_empty() {
        // A variable that is set elsewhere, more likely than a text with nothing in it.
        return None;
    }
    let mut text = input.to_owned();
    let mut count = 0;
    for script in scripts {
        let mut rest = script.trim_start_matches([' ', ';', '\n']);
        while !rest.is_empty() {
            let (change, after) = Change::read(rest)?;
            text = change.apply(&text)?;
            rest = after.trim_start_matches([' ', ';', '\n']);
            count += 1;
            if count > MAX_COMMANDS {
                return None;
            }
        }
    }
    Some(text)
}

/// `s/from/to/flags` or `y/from/to/`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
struct Change {
    letters: bool,
    from: String,
    to: String,
    everywhere: bool,
    at_start: bool,
    at_end: bool,
}

impl Change {
    fn read(script: &str) -> Option<(Self, &str)> {
        let letters = script.starts_with('y');
        let rest = script.strip_prefix(['s', 'y'])?;
        let separator = rest.chars().next().filter(|c| !c.is_alphanumeric())?;
        let rest = &rest[separator.len_utf8()..];
        let (from, rest) = field(rest, separator)?;
        let (to, rest) = field(rest, separator)?;
        let flags = rest.find([';', ' ', '\n', '}']).unwrap_or(rest.len());
        let (flags, after) = rest.split_at(flags);
        if !flags.chars().all(|c| matches!(c, 'g' | 'I' | 'i' | '1')) {
            return None;
        }
        let at_start = !letters && from.starts_with('^');
        let at_end = !letters && from.ends_with('$') && !from.ends_with("\\$");
        let plain = from.strip_prefix('^').filter(|_| at_start).unwrap_or(&from);
        let plain = plain.strip_suffix('$').filter(|_| at_end).unwrap_or(plain);
        let from = literal(plain)?;
        let to = replacement(&to)?;
        if from.is_empty() && !at_start && !at_end {
            return None;
        }
        let change = Self {
            letters,
            from,
            to,
            everywhere: flags.contains('g'),
            at_start,
            at_end,
        };
        Some((change, after))
    }

    fn apply(&self, input: &str) -> Option<String> {
        if self.letters {
            let from: Vec<char> = self.from.chars().collect();
            let to: Vec<char> = self.to.chars().collect();
            let turn = |c: char| {
                let at = from.iter().position(|one| *one == c);
                at.and_then(|at| to.get(at)).copied().unwrap_or(c)
            };
            return (from.len() == to.len()).then(|| input.chars().map(turn).collect());
        }
        let lines = input.split_inclusive('\n').map(|line| {
            let (body, end) = match line.strip_suffix('\n') {
                Some(body) => (body, "\n"),
                None => (line, ""),
            };
            self.line(body) + end
        });
        let out: String = lines.collect();
        (out.len() <= 1 << 20).then_some(out)
    }

    fn line(&self, body: &str) -> String {
        match (self.at_start, self.at_end) {
            (true, true) if body == self.from => self.to.clone(),
            (true, false) => match body.strip_prefix(self.from.as_str()) {
                Some(rest) => format!("{}{rest}", self.to),
                None => body.to_owned(),
            },
            (false, true) => match body.strip_suffix(self.from.as_str()) {
                Some(rest) => format!("{rest}{}", self.to),
                None => body.to_owned(),
            },
            (true, true) => body.to_owned(),
            (false, false) if self.everywhere => body.replace(&self.from, &self.to),
            (false, false) => body.replacen(&self.from, &self.to, 1),
        }
    }
}

/// Up to the next separator that is not escaped; an escaped one stands for itself.
fn field(text: &str, separator: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == separator {
            return Some((out, &text[at + c.len_utf8()..]));
        }
        if c == '\\' {
            let (_, next) = chars.next()?;
            if next != separator {
                out.push('\\');
            }
            out.push(next);
            continue;
        }
        out.push(c);
    }
    None
}

/// A pattern that matches one text only.
fn literal(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '.' | '*' | '[' | ']' | '^' | '$' | '+' | '?' | '(' | ')' | '{' | '|' => return None,
            '\\' => out.push(chars.next().filter(char::is_ascii_punctuation)?),
            c => out.push(c),
        }
    }
    Some(out)
}

/// What is put in: without references to what was found.
fn replacement(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '&' => return None,
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                c if c.is_ascii_punctuation() => out.push(c),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::output;

    #[test]
    fn plain_replacements_are_worked_out() {
        let made = |args: &[&str], input: &str| output(args, input);
        assert_eq!(made(&["s/x/r/"], "xm x\n").as_deref(), Some("rm x\n"));
        assert_eq!(
            made(&["s/~/\\/root/g"], "~ ~").as_deref(),
            Some("/root /root")
        );
        assert_eq!(
            made(&["-e", "s/^/r/", "-e", "s/$/ -f/"], "m\n").as_deref(),
            Some("rm -f\n")
        );
        assert_eq!(made(&["y/abc/xyz/;s|x|q|"], "cab").as_deref(), Some("zqy"));
        assert_eq!(made(&["s/a.*/b/"], "abc"), None);
        assert_eq!(made(&["s/a/b"], "abc"), None);
        assert_eq!(made(&["-i", "s/a/b/"], "abc"), None);
    }
}
