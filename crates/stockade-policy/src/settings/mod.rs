//! Settings of package managers and other clients, copied without the secrets in them.
//!
//! A client that can't read its settings asks the wrong registry; one that can read all of them
//! hands its token to whatever runs inside. The copy keeps what is neither named like a secret nor
//! looks like one. Comments are left out, addresses lose their users, passwords and queries, and a
//! file that can't be understood has no copy at all.

mod git;
mod ini;
mod json;
mod pip;
mod secrets;
mod toml;
mod xml;
mod yaml;

/// A file with settings, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingsFile {
    /// Where it is, relative to the home directory.
    pub path: &'static str,
    /// How it is written.
    pub format: SettingsFormat,
}

/// How a file with settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsFormat {
    /// git-config(1).
    Git,
    /// As the npm package `ini` reads it.
    Ini,
    /// JSON.
    Json,
    /// As Python's `configparser` reads it.
    Pip,
    /// TOML.
    Toml,
    /// XML, as Maven's settings have it.
    Xml,
    /// The part of YAML that Yarn writes: mappings and lists in blocks, scalars on one line.
    Yaml,
}

/// The files that are seen inside as a copy without secrets.
pub const SETTINGS_FILES: &[SettingsFile] = {
    use SettingsFormat::{Git, Ini, Json, Pip, Toml, Xml, Yaml};
    const fn file(path: &'static str, format: SettingsFormat) -> SettingsFile {
        SettingsFile { path, format }
    }
    &[
        file(".cargo/config", Toml),
        file(".cargo/config.toml", Toml),
        file(".config/git/config", Git),
        file(".config/pip/pip.conf", Pip),
        file(".docker/config.json", Json),
        file(".gitconfig", Git),
        file(".m2/settings.xml", Xml),
        file(".npmrc", Ini),
        file(".pip/pip.conf", Pip),
        file(".pypirc", Pip),
        file(".yarnrc.yml", Yaml),
    ]
};

/// The largest file that is copied, in bytes.
pub const MAX_SETTINGS_BYTES: usize = 256 * 1024;

/// The settings without their secrets; none if the text can't be understood.
pub fn without_secrets(format: SettingsFormat, text: &[u8]) -> Option<String> {
    if text.len() > MAX_SETTINGS_BYTES {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        SettingsFormat::Git => git::copy(text),
        SettingsFormat::Ini => Some(ini::copy(text)),
        SettingsFormat::Json => json::copy(text),
        SettingsFormat::Pip => pip::copy(text),
        SettingsFormat::Toml => toml::copy(text),
        SettingsFormat::Xml => xml::copy(text),
        SettingsFormat::Yaml => yaml::copy(text),
    }
}

#[cfg(test)]
mod tests;
