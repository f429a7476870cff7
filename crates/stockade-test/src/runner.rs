//! The two doors of the product behind one description of a case.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::Failure;
use crate::flag::Flag;
use crate::world::World;

/// How boxed commands are started.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "the product has two doors")]
pub enum Runner {
    /// `stockade run [flags] -- command`.
    Cli {
        /// The program under test.
        program: PathBuf,
    },
    /// A driver that does the same through the library: it is called as
    /// `driver --case FILE -- command`, where FILE holds a [`DriverCase`] in JSON.
    Library {
        /// The driver.
        driver: PathBuf,
    },
}

/// What the library driver reads.
#[derive(Debug, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a file format between two of our own programs"
)]
pub struct DriverCase {
    /// Id of the case, for messages.
    pub id: String,
    /// The flags that the command line would carry, in order.
    pub flags: Vec<Flag>,
}

impl Runner {
    /// The words to put before a command to run it inside.
    ///
    /// # Errors
    /// If the description for the driver can't be written.
    pub fn prefix(&self, id: &str, flags: &[Flag], world: &World) -> Result<Vec<String>, Failure> {
        match self {
            Self::Cli { program } => {
                let mut words = vec![program.display().to_string(), "run".to_owned()];
                words.extend(flags.iter().flat_map(|flag| flag.arguments(world)));
                words.push("--".to_owned());
                Ok(words)
            }
            Self::Library { driver } => {
                let flags = flags.iter().map(|flag| flag.expanded(world)).collect();
                let case = DriverCase {
                    id: id.to_owned(),
                    flags,
                };
                let file = world.witness().join("case.json");
                let json = serde_json::to_vec(&case).map_err(|e| format!("case {id}: {e}"))?;
                fs::write(&file, json).map_err(|e| format!("{}: {e}", file.display()))?;
                Ok(vec![
                    driver.display().to_string(),
                    "--case".to_owned(),
                    file.display().to_string(),
                    "--".to_owned(),
                ])
            }
        }
    }

    /// The file under test.
    pub fn program(&self) -> &PathBuf {
        match self {
            Self::Cli { program } => program,
            Self::Library { driver } => driver,
        }
    }

    /// Whether boxed commands go through the command line.
    pub fn is_cli(&self) -> bool {
        matches!(self, Self::Cli { .. })
    }
}
