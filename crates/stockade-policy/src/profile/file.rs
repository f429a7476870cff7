//! Reads one profile file into a layer.
//!
//! Protects against a file that says less than its author meant: every key must be known, every
//! value of the right kind, and each complaint names line and column. With a ceiling (a project's
//! file) keys that grant are refused, and values that can go either way are compared.

use std::ffi::OsStr;
use std::ops::Range;
use std::str::FromStr;

use stockade_rules::Origin;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::host::{Allowed, HostPattern};

use super::diagnostic::{Diagnostic, SourceText};
use super::environment::{EnvName, EnvVar};
use super::error::LoadError;
use super::keys::{KEYS, Key, Project, SHORT, Setting, keys_of, tables};
use super::layer::{BuiltIn, Layer};
use super::limits::LimitSetting;
use super::merge::Merged;
use super::place::Place;
use super::sourced::Sourced;
use super::suggest::nearest;

/// The size of a file beyond which nobody wrote it by hand.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// What a file says, and what it builds upon.
#[derive(Debug, Default)]
pub(super) struct FileLayer {
    pub(super) layer: Layer,
    pub(super) extends: Option<Extends>,
}

/// What a file builds upon.
#[derive(Debug)]
pub(super) enum Extends {
    BuiltIn(BuiltIn, Origin),
    File(String, Range<usize>),
}

/// Reads a file; with a ceiling it must not grant anything beyond it.
pub(super) fn read_layer(
    text: &SourceText<'_>,
    place: &Place<'_>,
    ceiling: Option<&Merged>,
) -> Result<FileLayer, LoadError> {
    let document = DeTable::parse(text.as_str()).map_err(|error| {
        let span = error.span().unwrap_or_default();
        LoadError::Syntax(Box::new(text.diagnostic(span, error.message(), None)))
    })?;
    let document = document.get_ref();
    let reader = Reader {
        text,
        place,
        ceiling,
    };
    reader.check_version(document)?;
    let mut out = FileLayer::default();
    for (name, value) in document {
        if tables().any(|table| table == name.get_ref().as_ref()) {
            reader.read_table(name, value, &mut out)?;
        } else {
            reader.read_key("", name, value, &mut out)?;
        }
    }
    Ok(out)
}

type Name<'i> = Spanned<std::borrow::Cow<'i, str>>;
type Value<'i> = Spanned<DeValue<'i>>;

struct Reader<'a> {
    text: &'a SourceText<'a>,
    place: &'a Place<'a>,
    ceiling: Option<&'a Merged>,
}

impl Reader<'_> {
    fn check_version(&self, document: &DeTable<'_>) -> Result<(), LoadError> {
        let version = |span, message: &str, hint: &str| {
            LoadError::Version(self.at(span, message, Some(hint.to_owned())))
        };
        let Some((_, value)) = document.get_key_value("version") else {
            return Err(version(
                0..0,
                "the file does not say its version",
                /*hint*/ "begin the file with `version = 1`",
            ));
        };
        match value.get_ref() {
            DeValue::Integer(number) if number.as_str() == "1" => Ok(()),
            _ => Err(version(
                value.span(),
                "this version of the format is not known",
                /*hint*/ "this Stockade reads `version = 1`",
            )),
        }
    }

    fn read_table(
        &self,
        name: &Name<'_>,
        value: &Value<'_>,
        out: &mut FileLayer,
    ) -> Result<(), LoadError> {
        let table = name.get_ref().as_ref();
        let short = SHORT.iter().find(|(short, _)| *short == table);
        match (value.get_ref(), short) {
            (DeValue::Table(entries), _) => {
                for (name, value) in entries {
                    self.read_key(table, name, value, out)?;
                }
                Ok(())
            }
            (DeValue::String(_), Some((_, only))) => {
                match keys_of(table).find(|key| key.name == *only) {
                    Some(key) => self.set(key, name.span(), value, out),
                    None => Err(self.unknown(table, name)),
                }
            }
            _ => Err(self.wrong(value, "a table", None)),
        }
    }

    fn read_key(
        &self,
        table: &str,
        name: &Name<'_>,
        value: &Value<'_>,
        out: &mut FileLayer,
    ) -> Result<(), LoadError> {
        let key = keys_of(table)
            .find(|key| key.name == name.get_ref().as_ref())
            .ok_or_else(|| self.unknown(table, name))?;
        self.set(key, name.span(), value, out)
    }

    fn set(
        &self,
        key: &Key,
        name: Range<usize>,
        value: &Value<'_>,
        out: &mut FileLayer,
    ) -> Result<(), LoadError> {
        if self.ceiling.is_some() && key.project == Project::Refused {
            return Err(self.widens(
                key,
                name,
                format!(
                    "`{}` grants, and a project's file may only narrow",
                    key.name
                ),
            ));
        }
        let layer = &mut out.layer;
        let network = &mut layer.network;
        match key.setting {
            Setting::Version => {}
            Setting::Extends => out.extends = Some(self.extends(key, value)?),
            Setting::Level => layer.level = Some(self.word(value)?),
            Setting::Backend => layer.backend = Some(self.word(value)?),
            Setting::Require => layer.require = self.list(value, str::parse)?,
            Setting::BestEffort => layer.best_effort = Some(self.switch(value)?),
            Setting::GitConfig => layer.git_config = Some(self.switch(value)?),
            Setting::Home => layer.home = Some(self.word(value)?),
            Setting::Nested => layer.danger_nested_namespaces = Some(self.switch(value)?),
            Setting::Devices => layer.devices = self.list(value, |text| self.path(text))?,
            Setting::Base => layer.base = Some(self.word(value)?),
            Setting::Paths(access) => {
                for entry in self.array(value)? {
                    let text = self.string(entry)?;
                    let origin = self.origin(entry);
                    let text = text.as_ref();
                    let added = self.place.add_rules(text, access, origin, &mut layer.rules);
                    added.map_err(|e| self.bad(entry, &e))?;
                }
            }
            Setting::NetworkMode => network.mode = Some(self.word(value)?),
            Setting::Allow => {
                for entry in self.list(value, str::parse)? {
                    match entry.value {
                        Allowed::Host(host) => {
                            network.allow.push(Sourced::new(host, entry.origin));
                        }
                        Allowed::Preset(preset) => {
                            network.presets.push(Sourced::new(preset, entry.origin));
                        }
                    }
                }
            }
            Setting::Block => network.block = self.list(value, HostPattern::parse_block)?,
            Setting::Resolve => network.resolve = self.list(value, str::parse)?,
            Setting::Methods => network.methods = Some(self.word(value)?),
            Setting::HiddenNames => network.danger_hidden_names = Some(self.switch(value)?),
            Setting::Mask => network.mask = self.list(value, str::parse)?,
            Setting::Unix => network.unix = self.list(value, |text| self.path(text))?,
            Setting::Expose => network.expose = self.ports(value)?,
            Setting::HostPort => network.host_port = self.ports(value)?,
            Setting::EnvSet => layer.environment.set = self.variables(value)?,
            Setting::EnvKeep => {
                layer.environment.keep = self.list(value, |name| EnvName::new(name.as_ref()))?;
            }
            Setting::Limit(limit) => {
                let text = self.scalar(value)?;
                let setting = LimitSetting::parse(limit, &text).map_err(|e| self.bad(value, &e))?;
                layer.limits.push(Sourced::new(setting, self.origin(value)));
            }
            Setting::SeccompMode => layer.seccomp = Some(self.word(value)?),
            Setting::SeccompBlock => layer.seccomp_block = self.list(value, str::parse)?,
        }
        match self.ceiling.and_then(|most| most.exceeded_by(out)) {
            Some(excess) => Err(self.widens(key, value.span(), excess)),
            None => Ok(()),
        }
    }

    fn extends(&self, key: &Key, value: &Value<'_>) -> Result<Extends, LoadError> {
        let text = self.string(value)?;
        match text.parse() {
            Ok(built_in) => Ok(Extends::BuiltIn(built_in, self.origin(value))),
            Err(unknown) if !text.contains(['/', '.']) => Err(LoadError::Extends(
                self.at(
                    value.span(),
                    unknown.to_string(),
                    nearest(text, BuiltIn::WORDS.iter().copied())
                        .map(did_you_mean)
                        .or_else(|| {
                            Some("a file is written with its path, as in \"./base.toml\"".into())
                        }),
                ),
            )),
            Err(_) if self.ceiling.is_some() => Err(self.widens(
                key,
                value.span(),
                "a project's file stands alone: it may extend a built-in, not another file".into(),
            )),
            Err(_) => Ok(Extends::File(text.to_owned(), value.span())),
        }
    }

    fn variables(&self, value: &Value<'_>) -> Result<Vec<Sourced<EnvVar>>, LoadError> {
        let DeValue::Table(entries) = value.get_ref() else {
            let hint = "write it as { NAME = \"value\" }";
            return Err(self.wrong(value, "a table", Some(hint)));
        };
        let mut variables = Vec::new();
        for (name, value) in entries {
            let text = self.string(value)?;
            let variable = EnvName::new(OsStr::new(name.get_ref().as_ref()))
                .and_then(|name| EnvVar::new(name, text))
                .map_err(|e| self.bad(value, &e))?;
            variables.push(Sourced::new(variable, self.origin(value)));
        }
        Ok(variables)
    }

    fn ports(&self, value: &Value<'_>) -> Result<Vec<Sourced<u16>>, LoadError> {
        let port = |entry| match DeValue::as_integer(Spanned::get_ref(entry)) {
            None => Err(self.wrong(entry, "a port number", None)),
            Some(number) => match u16::from_str(number.as_str()) {
                Ok(port) if port > 0 && number.radix() == 10 => {
                    Ok(Sourced::new(port, self.origin(entry)))
                }
                _ => Err(self.bad(entry, "a port is a number from 1 to 65535")),
            },
        };
        self.array(value)?.iter().map(port).collect()
    }

    fn list<T, E: ToString>(
        &self,
        value: &Value<'_>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<Sourced<T>>, LoadError> {
        let entry = |entry| {
            let read = read(self.string(entry)?).map_err(|e| self.bad(entry, &e))?;
            Ok(Sourced::new(read, self.origin(entry)))
        };
        self.array(value)?.iter().map(entry).collect()
    }

    fn word<T: FromStr<Err: ToString>>(&self, value: &Value<'_>) -> Result<Sourced<T>, LoadError> {
        let word = self
            .string(value)?
            .parse()
            .map_err(|e: T::Err| self.bad(value, &e))?;
        Ok(Sourced::new(word, self.origin(value)))
    }

    fn switch(&self, value: &Value<'_>) -> Result<Sourced<bool>, LoadError> {
        match value.get_ref() {
            DeValue::Boolean(on) => Ok(Sourced::new(*on, self.origin(value))),
            _ => Err(self.wrong(value, "true or false", None)),
        }
    }

    /// A string, or a number as if it were one.
    fn scalar(&self, value: &Value<'_>) -> Result<String, LoadError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong(value, "a string or a whole number", None)),
        }
    }

    fn string<'v>(&self, value: &'v Value<'_>) -> Result<&'v str, LoadError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong(value, "a string", None)),
        }
    }

    fn array<'v, 'i>(&self, value: &'v Value<'i>) -> Result<&'v [Value<'i>], LoadError> {
        match value.get_ref() {
            DeValue::Array(entries) => Ok(entries),
            _ => Err(self.wrong(value, "a list", Some("write it in brackets: [ … ]"))),
        }
    }

    fn path(&self, text: &str) -> Result<stockade_rules::AbsPath, stockade_rules::PathError> {
        self.place.path(text.as_ref())
    }

    fn origin(&self, value: &Value<'_>) -> Origin {
        self.text.origin(value.span().start)
    }

    #[expect(
        clippy::unnecessary_box_returns,
        reason = "errors hold it boxed, to be small"
    )]
    fn at(
        &self,
        span: Range<usize>,
        message: impl AsRef<str>,
        hint: Option<String>,
    ) -> Box<Diagnostic> {
        Box::new(self.text.diagnostic(span, message.as_ref(), hint))
    }

    fn bad(&self, value: &Value<'_>, reason: &(impl ToString + ?Sized)) -> LoadError {
        LoadError::Value(self.at(value.span(), reason.to_string(), None))
    }

    fn wrong(&self, value: &Value<'_>, expected: &str, hint: Option<&str>) -> LoadError {
        let found = value.get_ref().type_str();
        LoadError::Value(self.at(
            value.span(),
            format!("expected {expected}, found {found}"),
            hint.map(str::to_owned),
        ))
    }

    fn widens(&self, key: &Key, span: Range<usize>, message: String) -> LoadError {
        let hint = match key.flag {
            Some(flag) => format!(
                "remove it here; if you want it, say so in your own config.toml or with {flag}"
            ),
            None => "remove it here; if you want it, say so in your own config.toml".to_owned(),
        };
        LoadError::Widens(self.at(span, message, Some(hint)))
    }

    fn unknown(&self, table: &str, name: &Name<'_>) -> LoadError {
        let typed = name.get_ref().as_ref();
        let place = if table.is_empty() {
            "at the top of the file".to_owned()
        } else {
            format!("in [{table}]")
        };
        let here = keys_of(table).map(|key| key.name);
        let tables = tables().filter(|_| table.is_empty());
        let hint = match nearest(typed, here.chain(tables)) {
            Some(word) => Some(did_you_mean(word)),
            None => elsewhere(typed),
        };
        let shown: String = typed.chars().take(60).collect();
        LoadError::UnknownKey(self.at(
            name.span(),
            format!("unknown key `{}` {place}", shown.escape_debug()),
            hint,
        ))
    }
}

fn did_you_mean(word: &str) -> String {
    format!(/*hint*/ "did you mean `{word}`?")
}

/// A key that exists, but in another table.
fn elsewhere(name: &str) -> Option<String> {
    let key = KEYS.iter().find(|key| key.name == name)?;
    Some(if key.table.is_empty() {
        format!(
            /*hint*/ "`{name}` stands at the top of the file, before any table"
        )
    } else {
        format!(/*hint*/ "`{name}` belongs in [{}]", key.table)
    })
}
