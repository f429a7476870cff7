//! Statements for databases: what they delete, whom they let in, what they reach outside.
//!
//! Judged by their words, without a grammar: SQL, and what the shells of `MongoDB`, Redis, Neo4j
//! and the object mappers of web frameworks are told.

use crate::findings::Findings;
use crate::result::Span;
use crate::rule::Rule;

/// Judges statements, in lower case.
pub(super) fn judge(lower: &str, span: Span, findings: &mut Findings) {
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
