// A server, and the messages between it and this program.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

import { type ErrorObject, type Output, StockadeError } from "./types.js";

interface Pending {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

/** Requests are answered in any order; output goes to whoever listens for its command. */
export class Connection {
  readonly server: ChildProcessByStdio<Writable, Readable, null>;
  private lastId = 0;
  private readonly pending = new Map<number, Pending>();
  private readonly listeners = new Map<string, (output: Output) => void>();
  /** Output of commands whose name is not known here yet. */
  private readonly early = new Map<string, Output[]>();
  private readonly ended: Promise<void>;
  private isEnded = false;

  constructor() {
    const program = process.env["STOCKADE_BIN"] ?? "stockade";
    this.server = spawn(program, ["serve", "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
    // A server that is gone is noticed by the end of its output.
    this.server.stdin.on("error", () => {});
    const lines = createInterface({ input: this.server.stdout });
    lines.on("line", (line) => this.take(JSON.parse(line)));
    this.ended = new Promise((resolve) => {
      const finish = (message: string) => {
        this.isEnded = true;
        for (const { reject } of this.pending.values()) reject(new StockadeError("ended", message));
        this.pending.clear();
        resolve();
      };
      this.server.on("error", (error) => finish(`can't start stockade: ${error.message}`));
      lines.on("close", () => finish("stockade has ended"));
    });
  }

  call<T>(method: string, params: object): Promise<T> {
    if (this.isEnded) return Promise.reject(new StockadeError("ended", "stockade has ended"));
    const id = ++this.lastId;
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (result: unknown) => void, reject });
      this.server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  listen(command: string, listener: (output: Output) => void): void {
    this.listeners.set(command, listener);
    for (const output of this.early.get(command) ?? []) listener(output);
    this.early.delete(command);
  }

  forget(command: string): void {
    this.listeners.delete(command);
  }

  async close(): Promise<void> {
    this.server.stdin.end();
    await this.ended;
  }

  private take(message: {
    id?: number;
    method?: string;
    params?: Output;
    result?: unknown;
    error?: ErrorObject;
  }): void {
    if (message.method === "output" && message.params) {
      const { command } = message.params;
      const listener = this.listeners.get(command);
      if (listener) listener(message.params);
      else this.early.set(command, [...(this.early.get(command) ?? []), message.params]);
      return;
    }
    const pending = this.pending.get(message.id ?? 0);
    this.pending.delete(message.id ?? 0);
    if (message.error) pending?.reject(StockadeError.of(message.error));
    else pending?.resolve(message.result);
  }
}
