//! Statements for databases: what they delete, whom they let in, what they reach outside.
//!
//! Judged by their words, without a grammar: SQL, and what the shells of `MongoDB`, Redis, Neo4j
//! and the object mappers of web frameworks are told.

use crate::findings::Findings;
use crate::result::Span;
use crate::rule::Rule;

/// Judges statements, in lower case.
pub(super) fn judge(lower: &str, span: Span, findings: &mut Findings) {
    documents(lower, span, findings);
    administers(lower, span, findings);
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let pair = |first: &str, second: &[&str]| {
        words
            .windows(2)
            .any(|pair| pair[0] == first && second.contains(&pair[1]))
    };
    if pair(
        "drop",
        &[
            "table",
            "database",
            "schema",
            "index",
            "view",
            "user",
            "role",
            "column",
            "tablespace",
            "collection",
            "keyspace",
            "measurement",
            "db",
            "series",
            "sequence",
            "function",
            "procedure",
            "trigger",
            "extension",
            "owned",
            "materialized",
            "partition",
            "server",
            "login",
        ],
    ) || words.contains(&"truncate")
    {
        findings.add(Rule::DestroyData, span, "drops or empties tables");
    }
    for statement in lower.split(';') {
        let statement = statement.trim_start();
        let all = !statement.contains("limit") && is_for_all(statement);
        if statement.starts_with("delete from") && all
            || statement.starts_with("update ") && statement.contains(" set ") && all
        {
            findings.add(Rule::DestroyData, span, "changes every row of a table");
        }
        if statement.starts_with("alter table") && statement.contains(" delete where") {
            findings.add(Rule::DestroyData, span, "deletes rows of a table");
        }
    }
    reaches_outside(lower, span, findings);
    let accounts = [
        "authentication_string",
        "mysql.user",
        "pg_shadow",
        "pg_authid",
        "sys.sql_logins",
        "dba_users",
    ];
    if lower.contains("select") && accounts.iter().any(|table| lower.contains(table)) {
        let reason = "reads the passwords of the database's users";
        findings.add(Rule::CredentialRead, span, reason);
    }
    let changes = ["update ", "insert into", "delete from", "set password"];
    if changes.iter().any(|change| lower.contains(change))
        && accounts.iter().any(|table| lower.contains(table))
    {
        let reason = "changes the passwords of the database's users";
        findings.add(Rule::AccountChange, span, reason);
    }
    let everything = pair("grant", &["all"]) && lower.contains("*.*");
    let superuser = words.contains(&"superuser") || words.contains(&"sysadmin");
    let rights = ["grant", "alter", "create", "sp_addsrvrolemember"];
    if everything || superuser && words.iter().any(|word| rights.contains(word)) {
        let reason = "gives someone all rights in the database";
        findings.add(Rule::AccountChange, span, reason);
    } else if pair("grant", &["all"]) || pair("alter", &["role", "user", "system"]) {
        findings.warn(Rule::AccountChange, span, "changes rights in the database");
    }
}

/// Files and programs of the server.
fn reaches_outside(lower: &str, span: Span, findings: &mut Findings) {
    if lower.contains("copy ") && lower.contains(" program ")
        || lower.contains("xp_cmdshell")
        || lower.contains("into outfile")
        || lower.contains("into dumpfile")
        || lower.contains("lo_import")
        || lower.contains("lo_export")
        || lower.contains("sys_exec(")
        || lower.contains("sys_eval(")
        || lower.contains("sp_oacreate")
        || lower.contains("pg_ls_dir")
        || lower.contains("writefile(")
        || lower.contains("pg_read_file")
        || lower.contains("load_file(")
        || lower.contains("load_extension(")
        || lower.contains("io.popen(")
        || lower.contains("os.execute(")
    {
        findings.add(
            Rule::ShellEscape,
            span,
            "reaches files or programs through the database",
        );
    }
}

/// Whether a statement has no condition, or one that always holds.
fn is_for_all(statement: &str) -> bool {
    let Some((_, condition)) = statement.split_once("where") else {
        return true;
    };
    let condition = condition.trim_matches([' ', ';', '"', '\'', '\n', '(', ')']);
    let always = [
        "true", "1", "1=1", "1 = 1", "'1'='1", "2>1", "1 or 1", "0=0",
    ];
    always.contains(&condition) || condition.ends_with(" or 1=1") || condition.ends_with(" or true")
}

/// Stores of documents, keys and graphs, and mappers of objects.
fn documents(lower: &str, span: Span, findings: &mut Findings) {
    const EMPTIES: &[&str] = &[
        ".dropdatabase(",
        "._dropdatabase(",
        ".drop()",
        ".dropindexes(",
        "deletemany({})",
        "deletemany()",
        "updatemany({},",
        "updatemany({} ,",
        ".remove({})",
        "detach delete",
        "redis.call('del'",
        "redis.call(\"del\"",
        "redis.call('flush",
        ".delete_all",
        ".destroy_all",
        ".destroy_all!",
        ".all().delete()",
        "::truncate()",
        "::query()->delete()",
        "deleteall(",
        "disable_all",
        "drop_all",
        "update delete",
    ];
    if let Some(mark) = EMPTIES.iter().find(|mark| lower.contains(**mark)) {
        let reason = format!("deletes everything there is: `{}`", mark.trim_matches('.'));
        findings.add(Rule::DestroyData, span, reason);
    }
    for line in lower.lines().take(64) {
        order(line, span, findings);
    }
    if lower.contains(".createuser(") || lower.contains(".grantrolestouser(") {
        let all = [
            "\"root\"",
            "'root'",
            "anydatabase",
            "__system",
            "clusteradmin",
        ];
        let certain = all.iter().any(|role| lower.contains(role));
        let reason = "gives someone all rights in the database";
        findings.weigh(certain, Rule::AccountChange, span, reason);
    }
    if lower.contains("shutdownserver(")
        || lower.contains("shutdown:")
        || lower.contains("shutdown :")
    {
        findings.add(Rule::SystemStop, span, "stops the database");
    }
}

/// One line for a store's own shell.
fn order(line: &str, span: Span, findings: &mut Findings) {
    let mut words = line.split_ascii_whitespace();
    let empties = |word: &str| {
        matches!(
            word.trim_matches(['"', '\'', ';']),
            "flushall" | "flushdb" | "flush_all"
        )
    };
    if words.clone().any(empties) {
        let reason = "empties the store";
        return findings.add(Rule::DestroyData, span, reason);
    }
    let told = line.trim_start_matches([' ', ';']);
    let starts = [
        "drop '",
        "drop \"",
        "truncate '",
        "truncate \"",
        "purge volume",
        "delete volume",
        "purge job",
    ];
    let parts = told.split(';').map(str::trim_start);
    if parts
        .take(16)
        .any(|part| starts.iter().any(|start| part.starts_with(start)))
    {
        findings.add(Rule::DestroyData, span, "deletes what the store holds");
    }
    let given: Vec<&str> = words.by_ref().take(12).collect();
    let pair = |first: &str, second: &[&str]| {
        given
            .windows(2)
            .any(|pair| pair[0] == first && second.contains(&pair[1]))
    };
    if pair("module", &["load", "loadex"]) {
        let reason = "loads a library into the database";
        findings.add(Rule::ShellEscape, span, reason);
    }
    let master = given.windows(2).find(|pair| {
        matches!(pair[0], "slaveof" | "replicaof") && pair[1] != "no" && pair[1].contains('.')
    });
    if master.is_some() {
        let reason = "makes the database copy another one";
        findings.add(Rule::DestroyData, span, reason);
    }
    if pair("set", &["protected-mode", "requirepass"]) && given.contains(&"config") {
        let open = given
            .last()
            .is_some_and(|last| matches!(*last, "no" | "requirepass"));
        findings.weigh(
            open,
            Rule::ProtectionOff,
            span,
            "changes who may use the database",
        );
    }
    if pair("acl", &["setuser"]) && (given.contains(&"+@all") || given.contains(&"nopass")) {
        let reason = "gives someone all rights in the database";
        findings.add(Rule::AccountChange, span, reason);
    }
    if pair("debug", &["segfault", "crash-and-recover", "oom"]) {
        findings.add(Rule::SystemStop, span, "makes the database crash");
    }
}

/// Passwords, sessions and records of the server itself.
fn administers(lower: &str, span: Span, findings: &mut Findings) {
    let sets = lower.contains(" password ") || lower.contains(" identified ");
    let root = ["postgres", "root", "sa ", "admin", "system "];
    let account = ["alter user", "alter role", "alter login"];
    if sets && account.iter().any(|mark| lower.contains(mark)) {
        let certain = root.iter().any(|name| lower.contains(name));
        let reason = "changes a password in the database";
        findings.weigh(certain, Rule::AccountChange, span, reason);
    }
    if lower.contains("pg_terminate_backend") && !lower.contains("where") {
        findings.add(Rule::SystemStop, span, "ends everyone's sessions");
    }
    let records = [
        "purge binary logs",
        "purge master logs",
        "reset master",
        "general_log = 'off'",
        "general_log=off",
        "general_log = off",
        "general_log = 0",
        "general_log=0",
        "sql_log_bin=0",
        "sql_log_bin = 0",
        "noaudit ",
        "pgaudit.log = 'none'",
    ];
    if records.iter().any(|mark| lower.contains(mark)) {
        let reason = "deletes or stops the database's own records";
        findings.add(Rule::TraceRemoval, span, reason);
    }
}
