//! `stockade serve`: sandboxes for a program that speaks JSON-RPC.

use std::io::{self, BufReader, Write};

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    if args.schema {
        let schema = stockade_serve::schema();
        let text = serde_json::to_string_pretty(&schema).map_err(io::Error::from)?;
        writeln!(io::stdout().lock(), "{text}")?;
        return Ok(Exit::Success);
    }
    let input = BufReader::new(io::stdin());
    stockade_serve::serve(input, io::stdout()).map_err(|error| {
        let error = anyhow::Error::new(error).context("can't read from the client");
        Failure::new(Exit::NotSetUp, error)
    })?;
    Ok(Exit::Success)
}
