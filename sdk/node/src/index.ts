// Runs untrusted commands in a sandbox that the Linux kernel enforces.

export { inspect, verify } from "./advice.js";
export { Command } from "./command.js";
export { Sandbox } from "./sandbox.js";
export type {
  Allowed, Change, Chunk, Closed, Committed, Denial, Entry, Result, RunOptions, Settings, StartOptions, Stat, Stream,
} from "./types.js";
export { StockadeError } from "./types.js";
