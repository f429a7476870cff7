// What the server answers; docs/protocol.md describes it.

export interface Denial {
  operation: string;
  subject: string;
  host?: string;
  rule: string;
  origin?: string;
  grant: string;
  errno: number;
}

export type Bytes = { text: string } | { base64: string };

export interface Output {
  session: string;
  command: string;
  stream: Stream;
  data: Bytes;
}

export type Stream = "stdout" | "stderr" | "terminal";

export interface Chunk {
  stream: Stream;
  data: Buffer;
}

/** The answer to `wait`. */
export interface Waited {
  exit_code: number;
  ending: Result["ending"];
  signal: number | null;
  denials: Denial[];
  wall_micros: number;
  cpu_micros: number;
  peak_memory_kib: number;
  usage_scope: Result["usageScope"];
}

/** What adding grants did. */
export interface Allowed {
  /** Whether the sandbox was built again: then `/tmp` is empty and background processes are gone. */
  rebuilt: boolean;
  warnings: string[];
}

/** What belongs to no single command of a sandbox. */
export interface Closed {
  denials: Denial[];
  network: unknown[];
}

export interface ErrorObject {
  code: number;
  message: string;
  data: { kind: string; hint?: string; errno?: number; denials?: Denial[]; paths?: string[] };
}

/** Why something could not be done; `kind` is stable. */
export class StockadeError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly hint?: string,
    readonly errno?: number,
    readonly denials: Denial[] = [],
    readonly paths: string[] = [],
  ) {
    super(message);
    this.name = "StockadeError";
  }

  static of({ message, data }: ErrorObject): StockadeError {
    return new StockadeError(data.kind, message, data.hint, data.errno, data.denials, data.paths);
  }
}

export function decode(data: Bytes): Buffer {
  return "text" in data ? Buffer.from(data.text) : Buffer.from(data.base64, "base64");
}

export function encode(data: Buffer): Bytes {
  return { base64: data.toString("base64") };
}

/** Bytes in parts of a size; an empty one if there are none. */
export function* parts(data: string | Uint8Array, size: number): Generator<Buffer> {
  const bytes = Buffer.from(data as Uint8Array);
  for (let at = 0; at === 0 || at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The policy of a sandbox. */
export interface Settings {
  workspace?: string;
  overlay?: boolean;
  readOnly?: boolean;
  read?: string[];
  write?: string[];
  deny?: string[];
  denyWrite?: string[];
  allow?: string[];
  block?: string[];
  resolve?: string[];
  sockets?: string[];
  network?: "off" | "open";
  env?: Record<string, string>;
  keepEnv?: string[];
  limits?: string[];
  timeoutMs?: number;
  policy?: string;
  noUserFiles?: boolean;
  bestEffort?: boolean;
}

export interface StartOptions {
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs?: number;
  stdin?: boolean;
  terminal?: { rows: number; cols: number };
  /** Kills the command when it is aborted. */
  signal?: AbortSignal;
}

export interface RunOptions extends Omit<StartOptions, "stdin" | "terminal"> {
  input?: string | Uint8Array;
  /** Bytes to keep of each stream; the rest is dropped. 64 MiB by default. */
  outputLimit?: number;
}

export interface Result {
  exitCode: number;
  ending: "exited" | "signalled" | "timed_out" | "limit" | "killed" | "lost";
  signal: number | null;
  denials: Denial[];
  wallMicros: number;
  cpuMicros: number;
  peakMemoryKib: number;
  /** Whose CPU time it is: all that the command started, or what was waited for. */
  usageScope: "all" | "waited";
  stdout: Buffer;
  stderr: Buffer;
  /** Whether output above `outputLimit` was dropped. */
  truncated: boolean;
}

export interface Change {
  path: string;
  from?: string;
  kind: string;
  text?: string;
}

export interface Entry {
  name: string;
  kind: "file" | "directory" | "symlink" | "other";
}

export interface Stat {
  kind: Entry["kind"];
  size: number;
  mode: number;
  modified_ms: number;
  target: string | null;
}

export interface Committed {
  written: number;
  removed: number;
  adjusted: number;
  kept: string[];
  kept_back: { path: string; reason: string }[];
}

/** Names as the protocol spells them. */
export function snakeCase(settings: object): Record<string, unknown> {
  const spell = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [spell(name), value]));
}
