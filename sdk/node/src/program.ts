// Finds the program `stockade`.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

import { StockadeError } from "./types.js";

export function noProgram(message: string): StockadeError {
  return new StockadeError("no_program", message, "install stockade, or set STOCKADE_BIN");
}

/** The program: STOCKADE_BIN, else on PATH. */
export function program(): string {
  const named = process.env["STOCKADE_BIN"];
  if (named) return named;
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    // A relative entry may lead into a project, where anybody puts programs.
    if (!isAbsolute(directory)) continue;
    const candidate = join(directory, "stockade");
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      continue;
    }
  }
  throw noProgram("the program `stockade` was not found");
}
