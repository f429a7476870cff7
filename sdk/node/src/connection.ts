// A server, and the messages between it and this program.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";

import { noProgram, program } from "./program.js";
import { type ErrorObject, type Output, StockadeError } from "./types.js";

interface Pending {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

interface Limits {
  line_bytes: number;
  requests: number;
}

interface Message {
  id?: number;
  method?: string;
  params?: Output;
  result?: unknown;
  error?: ErrorObject;
}

const NEWLINE = 0x0a;
const CLOSE_MS = 10_000;

/** Requests are answered in any order; output goes to whoever listens for its command. */
export class Connection {
  readonly server: ChildProcessByStdio<Writable, Readable, null>;
  private lastId = 0;
  private readonly pending = new Map<number, Pending>();
  private readonly listeners = new Map<string, (output: Output) => void>();
  /** Output of commands whose name is not known here yet. */
  private readonly early = new Map<string, Output[]>();
  private readonly ended: Promise<void>;
  private failure: StockadeError | undefined;
  private limits: Limits = { line_bytes: 1 << 16, requests: 2 };
  private inFlight = 0;
  private users = 1;
  private readonly queue: (() => void)[] = [];
  private unread: Buffer[] = [];

  private constructor(private readonly name: string) {
    // A process group of its own, so that Ctrl-C interrupts this program only.
    this.server = spawn(name, ["serve", "--stdio"], { stdio: ["pipe", "pipe", "inherit"], detached: true });
    // A server that is gone is noticed by the end of its output.
    this.server.stdin.on("error", () => {});
    this.server.stdout.on("data", (data: Buffer) => this.split(data));
    this.ended = new Promise((resolve) => {
      const finish = (error: StockadeError) => {
        this.fail(error);
        resolve();
      };
      this.server.on("error", (error) => finish(noProgram(`can't start \`${name}\`: ${error.message}`)));
      this.server.on("close", (code, signal) => {
        const how = signal ?? `code ${code}`;
        finish(new StockadeError("ended", `stockade has ended with ${how}`));
      });
    });
    this.idle();
  }

  static async open(): Promise<Connection> {
    const connection = new Connection(program());
    try {
      const answer = await connection.call<{ limits: Limits }>("initialize", { protocol: 1, client: "node" });
      connection.limits = answer.limits;
      return connection;
    } catch (error) {
      await connection.close();
      if (!(error instanceof StockadeError) || error.kind !== "ended") throw error;
      throw noProgram(`\`${connection.name} serve --stdio\` does not answer: ${error.message}`);
    }
  }

  /** Sends a request that the server answers at once, or whenever a command does something. */
  call<T>(method: string, params: object): Promise<T> {
    if (this.failure) return Promise.reject(this.failure);
    const id = ++this.lastId;
    const line = `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
    if (Buffer.byteLength(line) > this.limits.line_bytes) {
      const text = `a message has at most ${this.limits.line_bytes} bytes`;
      return Promise.reject(new StockadeError("invalid_params", text));
    }
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (result: unknown) => void, reject });
      this.busy();
      this.server.stdin.write(line);
    });
  }

  /** Sends a request that the server works on, of which it accepts a number at once. */
  async work<T>(method: string, params: object): Promise<T> {
    if (this.inFlight >= Math.max(1, this.limits.requests >> 1)) {
      await new Promise<void>((resolve) => this.queue.push(resolve));
    }
    this.inFlight += 1;
    try {
      return await this.call<T>(method, params);
    } finally {
      this.inFlight -= 1;
      this.queue.shift()?.();
    }
  }

  listen(command: string, listener: (output: Output) => void): void {
    this.listeners.set(command, listener);
    for (const output of this.early.get(command) ?? []) listener(output);
    this.early.delete(command);
  }

  forget(command: string): void {
    this.listeners.delete(command);
  }

  /** Counts one more sandbox that uses the server. */
  share(): void {
    this.users += 1;
  }

  /** Ends the server with the last sandbox that uses it. */
  async release(): Promise<void> {
    this.users -= 1;
    if (this.users === 0) await this.close();
  }

  /** Ends the server, and every session with it. */
  async close(): Promise<void> {
    this.fail(new StockadeError("ended", "the sandbox is closed"));
    this.busy();
    this.server.stdin.end();
    const timer = setTimeout(() => this.server.kill("SIGKILL"), CLOSE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  private fail(error: StockadeError): void {
    this.failure ??= error;
    const pending = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of pending) reject(this.failure);
  }

  /** Splits at newlines only: `readline` takes U+2028 for one, which JSON may contain. */
  private split(data: Buffer): void {
    for (let rest = data; ; ) {
      const at = rest.indexOf(NEWLINE);
      if (at < 0) {
        if (rest.length > 0) this.unread.push(rest);
        return;
      }
      const line = Buffer.concat([...this.unread, rest.subarray(0, at)]);
      this.unread = [];
      rest = rest.subarray(at + 1);
      try {
        this.take(JSON.parse(line.toString()) as Message);
      } catch {
        // No server of this protocol, or one that is out of step: nothing it says counts.
        this.fail(new StockadeError("ended", "the answer was no message of the protocol"));
        this.server.kill("SIGKILL");
        return;
      }
    }
  }

  private take(message: Message): void {
    if (message.method === "output" && message.params) {
      const { command } = message.params;
      const listener = this.listeners.get(command);
      const early = this.early.get(command);
      if (listener) listener(message.params);
      else if (early) early.push(message.params);
      else this.early.set(command, [message.params]);
      return;
    }
    const pending = this.pending.get(message.id ?? 0);
    this.pending.delete(message.id ?? 0);
    if (this.pending.size === 0) this.idle();
    if (message.error) pending?.reject(StockadeError.of(message.error));
    else pending?.resolve(message.result);
  }

  /** Lets this program exit although the sandbox is open: the server then ends. */
  private idle(): void {
    this.server.unref();
    for (const pipe of this.pipes()) pipe.unref();
  }

  private busy(): void {
    this.server.ref();
    for (const pipe of this.pipes()) pipe.ref();
  }

  private pipes(): Socket[] {
    return [this.server.stdin, this.server.stdout] as unknown as Socket[];
  }
}
