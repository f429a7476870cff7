//! Writes commands so that a reader does not recognise them, in the ways that shells allow.
//!
//! Nothing here is ever run. The generator is deterministic: one seed, one text.

/// A small linear congruential generator (Knuth, MMIX).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }

    fn choose<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.below(options.len())]
    }

    /// A pattern of any characters, those escaped that would end it.
    fn junk(&mut self) -> String {
        const CHARACTERS: &[&str] = &[
            "a", "Z", "7", "#", "%", "&", ",", ".", ":", ";", "<", "=", ">", "?", "@", "]", "^",
            "_", "|", "~", "\\[", "\\!", "\\(", "\\)", "\\{", "\\}", "\\'", "\\`", "\\\"", "-",
        ];
        (0..=self.below(8))
            .map(|_| self.choose(CHARACTERS))
            .collect()
    }

    fn name(&mut self) -> String {
        let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let letter = |at: usize| char::from(letters.as_bytes()[at]);
        (0..3 + self.below(5))
            .map(|_| letter(self.below(letters.len())))
            .collect()
    }
}

/// Ways to compute a text from another that is written in the script.
pub(crate) const PRODUCERS: &[&str] = &[
    "reverse",
    "here_reverse",
    "case_variable",
    "case_tr",
    "base64",
    "hex",
    "octal",
    "xxd",
    "char_loop",
    "char_list",
    "hash",
    "files",
    "marks_tr",
    "marks_sed",
    "awk",
    "perl",
    "python",
    "percent",
    "arithmetic",
    "replace",
    "unpacked",
    "xor",
    "pieces",
];

/// Ways to spell a command's words.
pub(crate) const SPELLINGS: &[&str] = &[
    "noise",
    "escapes",
    "braces",
    "glob",
    "split_name",
    "defaults",
    "picked",
    "array",
];

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// An expansion that is empty when the script has no arguments.
fn nothing(random: &mut Random) -> String {
    let list = random.choose(&["@", "*"]);
    let pattern = random.name();
    let other = random.name();
    let (junk, more) = (random.junk(), random.junk());
    let inside = match random.below(9) {
        0 => return format!("${list}"),
        1 => return format!("${{{list}}}"),
        2 => return format!("${{!{list}}}"),
        3 => format!(
            "{list}{}",
            random.choose(&["^", "^^", ",", ",,", "~", "~~"])
        ),
        4 => format!("{list}{}{junk}", random.choose(&["#", "##", "%", "%%"])),
        5 => format!("{list}/{junk}"),
        6 => format!("{list}//{junk}/{more}"),
        7 => return format!("${{{pattern}}}"),
        _ => format!("{pattern}/{other}"),
    };
    if list == "@" && random.below(2) == 0 {
        format!("\"${{{inside}}}\"")
    } else {
        format!("${{{inside}}}")
    }
}

/// A program's name with noise between its letters; at least one letter is disturbed.
pub(crate) fn noisy(word: &str, random: &mut Random) -> String {
    let certain = random.below(word.len());
    let mut out = String::new();
    for (at, letter) in word.chars().enumerate() {
        if at != certain && random.below(2) == 0 {
            out.push(letter);
            continue;
        }
        let piece = match random.below(5) {
            0 => format!("''{letter}"),
            1 => format!("\\{letter}"),
            2 => format!("$'\\{:o}'", u32::from(letter)),
            3 => format!("$'\\x{:x}'", u32::from(letter)),
            _ => format!("{}{letter}", nothing(random)),
        };
        out.push_str(&piece);
    }
    out
}

fn swapped(text: &str) -> String {
    let swap = |c: char| {
        if c.is_ascii_lowercase() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        }
    };
    text.chars().map(swap).collect()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0usize, |bits, byte| bits << 8 | usize::from(*byte));
        for at in 0..4 {
            if at > chunk.len() {
                out.push('=');
            } else {
                out.push(char::from(LETTERS[bits >> (18 - 6 * at) & 63]));
            }
        }
    }
    out
}

fn each(text: &str, write: impl Fn(u32) -> String) -> String {
    text.chars().map(|c| write(u32::from(c))).collect()
}

/// A command that prints `text`; statements before it that it needs.
#[expect(
    clippy::too_many_lines,
    reason = "one arm for each way to compute a text"
)]
fn producer(kind: &str, text: &str, random: &mut Random) -> (String, String) {
    let backwards: String = text.chars().rev().collect();
    let print = noisy("printf", random);
    let name = random.name();
    let alone = |command: String| (String::new(), command);
    match kind {
        "reverse" => alone(format!(
            "{print} %s {} | {}",
            quote(&backwards),
            noisy("rev", random)
        )),
        "here_reverse" => alone(format!(
            "{} <<< {}",
            noisy("rev", random),
            quote(&backwards)
        )),
        "case_variable" => (
            format!("{name}={};", quote(&swapped(text))),
            format!("{print} %s \"${{{name}~~}}\""),
        ),
        "case_tr" => alone(format!("echo {} | tr a-zA-Z A-Za-z", quote(&swapped(text)))),
        "base64" => alone(format!("{print} {} | base64 -d", base64(text))),
        "hex" => alone(format!(
            "{print} '{}'",
            each(text, |c| format!("\\x{c:02x}"))
        )),
        "octal" => alone(format!("echo -e '{}'", each(text, |c| format!("\\0{c:o}")))),
        "xxd" => alone(format!(
            "echo {} | xxd -p -r",
            each(text, |c| format!("{c:02x}"))
        )),
        "char_loop" => {
            let mut letters: Vec<char> = text.chars().collect();
            letters.sort_unstable();
            letters.dedup();
            let turn = random.below(letters.len());
            letters.rotate_left(turn);
            let items: Vec<String> = letters.iter().map(|c| quote(&c.to_string())).collect();
            let place = |c: char| letters.iter().position(|own| *own == c).unwrap_or(0);
            let order: Vec<String> = text.chars().map(|c| place(c).to_string()).collect();
            let index = random.name();
            (
                format!("{name}=({});", items.join(" ")),
                format!(
                    "for {index} in {}; do {print} %s \"${{{name}[${index}]}}\"; done",
                    order.join(" ")
                ),
            )
        }
        "char_list" => {
            let letters: Vec<String> = text.chars().map(|c| quote(&c.to_string())).collect();
            alone(format!("{print} %s {}", letters.join(" ")))
        }
        "hash" => alone(
            text.chars()
                .map(|_| {
                    let (from, seed) = (1 + random.below(30), random.name());
                    format!(
                        "{print} \"\\x$(printf %s '{seed}' | {} | cut -b {from}-{})\"; ",
                        noisy("md5sum", random),
                        from + 1
                    )
                })
                .collect::<Vec<_>>()
                .concat(),
        ),
        "files" => {
            let half = text.len() / 2;
            let half = (half..text.len())
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0);
            let (first, second) = text.split_at(half);
            (
                format!(
                    "mkdir -p /tmp/{name}; printf %s {} > '/tmp/{name}/??\n'; printf %s {} > '/tmp/{name}/?\n?';",
                    quote(second),
                    quote(first)
                ),
                format!("{} /tmp/{name}/???", noisy("cat", random)),
            )
        }
        "marks_tr" => {
            let marked: String = text.chars().flat_map(|c| [c, '%']).collect();
            alone(format!("echo {} | tr -d %", quote(&marked)))
        }
        "marks_sed" => {
            let marked: String = text.chars().flat_map(|c| [c, '#']).collect();
            alone(format!(
                "{} 's/#//g' <<< {}",
                noisy("sed", random),
                quote(&marked)
            ))
        }
        "awk" => alone(format!(
            "awk 'BEGIN{{printf \"{}\"{}}}'",
            "%c".repeat(text.chars().count()),
            each(text, |c| format!(",{c}"))
        )),
        "perl" => alone(format!(
            "perl -e 'print pack(\"H*\",\"{}\")'",
            each(text, |c| format!("{c:02x}"))
        )),
        "python" => alone(format!(
            "python3 -c 'print(\"\".join(map(chr,[{}])))'",
            each(text, |c| format!("{c},"))
        )),
        "percent" => (
            format!("{name}='{}';", each(text, |c| format!("%{c:02x}"))),
            format!("{print} %b \"${{{name}//%/\\\\x}}\""),
        ),
        "arithmetic" => alone(
            text.chars()
                .map(|c| {
                    let (c, by) = (u32::from(c), u32::try_from(random.below(9)).unwrap_or(1));
                    format!(
                        "printf \"\\\\$(printf %o $(({}+{by})))\"; ",
                        i64::from(c) - i64::from(by)
                    )
                })
                .collect::<Vec<_>>()
                .concat(),
        ),
        "replace" => {
            let marked = text.replace('r', "QZ").replace('c', "ZQ");
            let marked = marked.replace('l', "QQ").replace('a', "ZZ");
            (
                format!("{name}={}; {name}=${{{name}//ZQ/c}};", quote(&marked)),
                format!(
                    "{name}=${{{name}//QQ/l}}; {name}=${{{name}//ZZ/a}}; echo \"${{{name}//QZ/r}}\""
                ),
            )
        }
        "xor" => {
            let (key, at, letter, other) =
                (random.name(), random.name(), random.name(), random.name());
            (
                format!(
                    "{name}={}; {key}='{}';",
                    quote(&swapped(text)),
                    random.name()
                ),
                format!(
                    "for (({at}=0;{at}<${{#{name}}};{at}++)); do {letter}=\"${{{name}:${at}:1}}\"; \
                     {other}=\"$(({at} % ${{#{key}}}))\"; {other}=\"${{{key}:${other}:1}}\"; \
                     {} -e \"print '${letter}' ^ '${other}'\"; done",
                    noisy("perl", random)
                ),
            )
        }
        "unpacked" => alone(format!(
            "{print} %s H4sIAAAAAAACA0tOLFGo09{} | base64 -d | gunzip -c",
            random.name()
        )),
        _ => {
            let letters: Vec<char> = text.chars().collect();
            let mut set = String::new();
            let mut used = String::new();
            for part in letters.chunks(1 + random.below(4)) {
                let own = random.name();
                let part: String = part.iter().collect();
                let (assignment, use_of_it) =
                    (format!("{own}={}; ", quote(&part)), format!("${{{own}}}"));
                set.push_str(&assignment);
                used.push_str(&use_of_it);
            }
            (set, format!("{print} %s \"{used}\""))
        }
    }
}

/// What runs the text that `command` prints.
fn runs(before: &str, command: &str, random: &mut Random) -> String {
    let pad = nothing(random);
    let name = random.name();
    let eval = noisy("eval", random);
    let line = match random.below(12) {
        0 => format!("{{ {command}; }} | {}", noisy("bash", random)),
        1 => format!("{{ {command}; }} | $BASH"),
        2 => format!("({command}) | $0"),
        3 => format!("{pad} {eval} \"$({command})\" {pad}"),
        4 => format!("{eval} \"$({command})\""),
        5 => format!("{} -c \"$({command})\"", noisy("bash", random)),
        6 => format!("bash <<< \"$({command})\""),
        7 => format!("$BASH <<< \"$({command})\""),
        8 => format!(". <({command})"),
        9 => format!("source /dev/stdin <<< \"$({command})\""),
        10 => format!("{name}=\"$({command})\"; eval \"${name}\""),
        _ => format!("{name}=BASH; ${{!{name}}} <<< \"$({command})\""),
    };
    format!("{before} {line}")
}

/// `command`, computed by one of [`PRODUCERS`] and given to an interpreter.
pub(crate) fn computed(kind: &str, command: &str, random: &mut Random) -> String {
    let (before, printed) = producer(kind, command, random);
    runs(&before, &printed, random)
}

/// `command`, its words spelled in one of [`SPELLINGS`].
pub(crate) fn spelled(kind: &str, command: &str, random: &mut Random) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    let name = random.name();
    match kind {
        "noise" => format!("{} {} {rest}", noisy(program, random), nothing(random)),
        "escapes" => {
            let word = |word: &str| format!("$'{}'", each(word, |c| format!("\\x{c:x}")));
            format!("{} {rest}", word(program))
        }
        "braces" => {
            let (own, after) = rest.split_once(" |").unwrap_or((rest, ""));
            let pipe = if after.is_empty() { "" } else { " |" };
            format!("{{{program},{}}}{pipe}{after}", own.replace(' ', ","))
        }
        "glob" => {
            let hidden = format!("{}?{}", &program[..1], &program[2..]);
            format!("/???/{hidden} {rest}")
        }
        "split_name" => {
            let (first, second) = program.split_at(program.len() / 2);
            let other = random.name();
            format!("{name}={first}; {other}={second}; ${name}${other} {rest}")
        }
        "defaults" => {
            let (first, second) = program.split_at(1);
            format!("${{{name}:-{first}}}{second}${{{name}}} {rest}")
        }
        "picked" => {
            let letters = "zyxwvutsrqponmlkjihgfedcba";
            let pick = |c: char| {
                letters
                    .find(c)
                    .map_or_else(|| c.to_string(), |at| format!("${{{name}:{at}:1}}"))
            };
            let picked: String = program.chars().map(pick).collect();
            format!("{name}={letters}; {picked} {rest}")
        }
        _ => {
            let letters: Vec<String> = program.chars().map(|c| c.to_string()).collect();
            let used: Vec<String> = (0..letters.len())
                .map(|at| format!("${{{name}[{at}]}}"))
                .collect();
            let used = used.concat();
            format!("{name}=({}); {used} {rest}", letters.join(" "))
        }
    }
}
