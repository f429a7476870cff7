// Advice about code and text. Nothing is run.

import { spawn } from "node:child_process";

import { noProgram, program } from "./program.js";
import { StockadeError } from "./types.js";

/** What code would do: the document of `stockade verify --json`. */
export function verify(code: string, language: string): Promise<Record<string, unknown>> {
  return ask(["verify", "--json", "--lang", language, "-"], code);
}

/** Prompt injection, secrets and data leaving: the document of `stockade inspect --json`. */
export function inspect(text: string): Promise<Record<string, unknown>> {
  return ask(["inspect", "--json"], text);
}

async function ask(argv: string[], text: string): Promise<Record<string, unknown>> {
  const name = program();
  const child = spawn(name, argv, { stdio: "pipe" });
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (data: Buffer) => output.push(data));
  child.stderr.on("data", (data: Buffer) => errors.push(data));
  // A program that does not read its input says why.
  child.stdin.on("error", () => {});
  child.stdin.end(text);
  await new Promise<void>((resolve, reject) => {
    child.on("error", (error) => reject(noProgram(`can't start \`${name}\`: ${error.message}`)));
    child.on("close", () => resolve());
  });
  try {
    return JSON.parse(Buffer.concat(output).toString()) as Record<string, unknown>;
  } catch {
    throw new StockadeError("invalid_params", Buffer.concat(errors).toString().trim());
  }
}
