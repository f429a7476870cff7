//! Interpreters of other languages, and where in their arguments code stands.

use crate::model::{Language, Stdin, Word};
use crate::wrappers::{Inner, join, push_stdin, rest};

/// An interpreter: how it is told code on its command line.
pub(crate) struct Interpreter {
    pub(crate) language: Language,
    /// Letters of short options that take code.
    code: &'static str,
    /// Long options that take code.
    long: &'static [&'static str],
    /// Letters of short options that take another value.
    values: &'static str,
}

/// How a program is told code, if it is an interpreter.
pub(crate) fn interpreter(name: &str) -> Option<Interpreter> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let (language, code, long, values): (_, _, &'static [&'static str], _) = match stem {
        "python" | "pypy" | "ipython" => (Language::Python, "c", &[], "WXm"),
        "node" | "nodejs" | "bun" => (Language::JavaScript, "ep", &["--eval", "--print"], "rC"),
        "perl" => (Language::Perl, "eE", &[], "IMm"),
        "ruby" | "jruby" => (Language::Ruby, "e", &[], "rICEFT"),
        "php" => (Language::Php, "rBRE", &["--run"], "cdfz"),
        "lua" | "luajit" => (Language::Lua, "e", &[], "l"),
        "psql" => (Language::Sql, "c", &["--command"], "dfhLopRTUPFv"),
        "mysql" | "mariadb" | "mysqlsh" | "mycli" => (Language::Sql, "e", &["--execute"], "hPSDu"),
        "cqlsh" | "cockroach" | "hive" | "beeline" | "spark-sql" | "influx" | "trino"
        | "presto" => (Language::Sql, "e", &["--execute", "-execute"], "hPSDuk"),
        "clickhouse-client" | "clickhouse" | "impala-shell" | "snowsql" => {
            (Language::Sql, "q", &["--query"], "hdu")
        }
        "duckdb" | "usql" | "pgcli" => (Language::Sql, "c", &["--command"], "hdU"),
        "sqlcmd" => (Language::Sql, "Qq", &[], "SUPdi"),
        _ => return None,
    };
    Some(Interpreter {
        language,
        code,
        long,
        values,
    })
}

/// Code on an interpreter's command line or standard input.
pub(crate) fn code(interpreter: &Interpreter, args: &[Word], stdin: &Stdin) -> Vec<Inner> {
    let mut out = Vec::new();
    let mut operands = false;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        let text = word.text.as_str();
        if let Some((name, _)) = text.split_once('=').filter(|_| text.starts_with("--")) {
            if interpreter.long.contains(&name) {
                out.push(Inner::Code(
                    interpreter.language,
                    rest(word, name.len() + 1),
                ));
            }
            continue;
        }
        if interpreter.long.contains(&text) {
            out.extend(
                args.get(at)
                    .map(|word| Inner::Code(interpreter.language, word.clone())),
            );
            at += 1;
            continue;
        }
        if !text.starts_with('-') || text.len() < 2 || text.starts_with("--") {
            operands |= !text.starts_with('-');
            continue;
        }
        let letter =
            text[1..].find(|c| interpreter.code.contains(c) || interpreter.values.contains(c));
        let Some(letter) = letter.map(|letter| letter + 1) else {
            continue;
        };
        let is_code = text[letter..].starts_with(|c| interpreter.code.contains(c));
        let last = letter + 1 == text.len();
        if is_code {
            let inline = (!last).then(|| rest(word, letter + 1));
            let code = inline.or_else(|| args.get(at).cloned());
            out.extend(code.map(|code| Inner::Code(interpreter.language, code)));
        }
        at += usize::from(last);
        if interpreter.language == Language::Python && (is_code || text.starts_with("-m")) {
            // What follows are the program's own arguments.
            operands = true;
            if text == "-m" && at <= args.len() {
                // A module run as a program is judged by its name: `python -m pip install`.
                let words = args[at - 1..].to_vec();
                out.extend((!words.is_empty()).then_some(Inner::Words(words)));
            }
            break;
        }
    }
    if out.is_empty() && (!operands || interpreter.language == Language::Sql) {
        push_stdin(&mut out, interpreter.language, stdin);
    }
    out
}

/// Statements for clients of databases that take them as plain arguments, in an option or on
/// standard input: `redis-cli flushall`, `mongosh --eval …`, `bq query …`.
pub(crate) fn statements(name: &str, args: &[Word], stdin: &Stdin) -> Vec<Inner> {
    let whole = matches!(
        name,
        "redis-cli" | "valkey-cli" | "keydb-cli" | "db2" | "memcflush"
    );
    let parts = matches!(
        name,
        "bq" | "cypher-shell"
            | "mongo"
            | "mongosh"
            | "arangosh"
            | "hbase"
            | "sqlplus"
            | "bteq"
            | "isql"
            | "osql"
            | "tsql"
            | "prisma"
            | "wrangler"
            | "turso"
            | "supabase"
            | "rqlite"
            | "kdb"
            | "bconsole"
            | "nsupdate"
            | "cbq"
            | "steampipe"
            | "osqueryi"
            | "rails"
            | "gitlab-rails"
            | "rake"
            | "artisan"
            | "manage.py"
            | "flask"
            | "iex"
    );
    let mut out = Vec::new();
    if whole && !args.is_empty() {
        out.push(Inner::Code(Language::Sql, join(args)));
    }
    if parts {
        let told = args
            .iter()
            .filter(|word| word.text.contains([' ', '(', ':', '.']));
        out.extend(told.map(|word| {
            let at = word.text.find('=').filter(|_| word.text.starts_with("--"));
            Inner::Code(Language::Sql, rest(word, at.map_or(0, |at| at + 1)))
        }));
    }
    if matches!(name, "mongo" | "mongosh" | "arangosh") {
        let code = args.iter().filter(|word| word.text.contains('('));
        out.extend(code.map(|word| Inner::Code(Language::JavaScript, word.clone())));
        push_stdin(&mut out, Language::JavaScript, stdin);
    }
    if name == "timeit" {
        let code = args.iter().filter(|word| word.text.contains('('));
        out.extend(code.map(|word| Inner::Code(Language::Python, word.clone())));
    }
    if whole || parts {
        push_stdin(&mut out, Language::Sql, stdin);
    }
    out
}
