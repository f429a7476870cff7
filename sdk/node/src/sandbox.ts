// Sandboxes that stay open.

import { Command, WINDOW_BYTES } from "./command.js";
import { Connection } from "./connection.js";
import {
  type Allowed, type Bytes, type Change, type Closed, type Committed, type Entry, type Result, type RunOptions,
  type Settings, type StartOptions, type Stat, StockadeError, decode, encode, parts, snakeCase,
} from "./types.js";

const FILE_BYTES = 2 << 20;

/** A sandbox that stays open; everything in it ends when it is closed. */
export class Sandbox {
  private closing: Promise<Closed | null> | undefined;

  private constructor(
    private readonly connection: Connection,
    private readonly session: string,
    readonly workspace: string,
    readonly backend: string,
    readonly warnings: string[],
  ) {}

  static async open(settings: Settings = {}): Promise<Sandbox> {
    const connection = await Connection.open();
    try {
      const opened = await connection.work<{
        session: string; workspace: string; backend: string; warnings: string[];
      }>("open", snakeCase(settings));
      return new Sandbox(connection, opened.session, opened.workspace, opened.backend, opened.warnings);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Ends the sandbox and everything in it; null if it had ended by itself. */
  close(): Promise<Closed | null> {
    this.closing ??= (async () => {
      const closed = await this.connection.work<Closed>("close", { session: this.session }).catch(() => null);
      await this.connection.release();
      return closed;
    })();
    return this.closing;
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Starts a command; a string is for a shell. A command whose output nobody takes stops after
   * 1 MiB of it, as at a full pipe. `signal` kills it.
   */
  start(command: string | string[], options: StartOptions = {}): Promise<Command> {
    return this.begin(command, options, false);
  }

  /** Runs a command to its end; `signal` kills it, and the promise is rejected. */
  async run(command: string | string[], options: RunOptions = {}): Promise<Result> {
    const { input, outputLimit, ...rest } = options;
    const running = await this.begin(command, { ...rest, stdin: input !== undefined }, true, outputLimit);
    if (input !== undefined) await running.feed(input);
    const result = await running.wait();
    rest.signal?.throwIfAborted();
    return result;
  }

  /** Reads a file, or a part of it, as the sandbox sees it. */
  async read(path: string, { offset = 0, length = Infinity } = {}): Promise<Buffer> {
    const read: Buffer[] = [];
    for (let count = 0; count < length; ) {
      const params = { path, offset: offset + count, length: Math.min(length - count, FILE_BYTES) };
      const { data, eof } = await this.call<{ data: Bytes; eof: boolean }>("files.read", params);
      const part = decode(data);
      read.push(part);
      count += part.length;
      if (eof) break;
    }
    return Buffer.concat(read);
  }

  /** Writes a file as a command would; `mode` has the permission bits of a new file. */
  async write(
    path: string,
    data: string | Uint8Array,
    { parents = false, append = false, mode }: { parents?: boolean; append?: boolean; mode?: number } = {},
  ): Promise<void> {
    let isFirst = true;
    for (const part of parts(data, FILE_BYTES)) {
      await this.call("files.write", { path, data: encode(part), append: append || !isFirst, parents, mode });
      isFirst = false;
    }
  }

  async list(path = "."): Promise<Entry[]> {
    return (await this.call<{ entries: Entry[] }>("files.list", { path })).entries;
  }

  stat(path: string): Promise<Stat> {
    return this.call("files.stat", { path });
  }

  /** What commands changed in the overlay. */
  async diff({ text = false } = {}): Promise<Change[]> {
    return (await this.call<{ changes: Change[] }>("diff", { text })).changes;
  }

  /** Applies changes to the workspace; all of them if there are no paths. */
  commit(paths: string[] = [], conflicts: "refuse" | "ours" | "theirs" = "refuse"): Promise<Committed> {
    return this.call("commit", { paths, conflicts });
  }

  async discard(): Promise<void> {
    await this.call("discard", {});
  }

  /** Adds grants. For paths no command may run meanwhile, and the sandbox is built again. */
  async allow(
    grants: { hosts?: string[]; sockets?: string[]; read?: string[]; write?: string[] },
  ): Promise<Allowed> {
    // A server that answers nothing has built the sandbox again.
    return { rebuilt: true, warnings: [], ...(await this.call<Partial<Allowed>>("allow", grants)) };
  }

  /** Keeps what the overlay has now under a name; no command may run meanwhile. */
  async snapshot(name: string): Promise<void> {
    await this.call("snapshot", { name });
  }

  /** Returns the overlay to a snapshot; no command may run meanwhile. */
  async restore(name: string): Promise<void> {
    await this.call("restore", { name });
  }

  async snapshots(): Promise<string[]> {
    return (await this.call<{ snapshots: string[] }>("snapshots.list", {})).snapshots;
  }

  async removeSnapshot(name: string): Promise<void> {
    await this.call("snapshots.remove", { name });
  }

  /** A second sandbox with the same policy, whose overlay begins as a copy of this one's. */
  async fork(): Promise<Sandbox> {
    const { session } = await this.call<{ session: string }>("fork", {});
    this.connection.share();
    return new Sandbox(this.connection, session, this.workspace, this.backend, this.warnings);
  }

  /** What the sandbox enforces, clause by clause. */
  report(): Promise<Record<string, unknown>> {
    return this.call("report", {});
  }

  private async begin(
    command: string | string[],
    { signal: abort, ...options }: StartOptions,
    collects: boolean,
    outputLimit?: number,
  ): Promise<Command> {
    abort?.throwIfAborted();
    const argv = typeof command === "string" ? ["sh", "-c", command] : command;
    const credit = collects ? undefined : WINDOW_BYTES;
    const started = await this.call<{ command: string }>("exec", { argv, credit, ...snakeCase(options) });
    const about = { session: this.session, command: started.command };
    const running = new Command(this.connection, about, collects, outputLimit);
    if (abort) {
      const kill = () => void running.kill();
      if (abort.aborted) kill();
      abort.addEventListener("abort", kill, { once: true });
      const forget = () => abort.removeEventListener("abort", kill);
      running.ended.then(forget, forget);
    }
    return running;
  }

  private async call<T>(method: string, params: object): Promise<T> {
    // A sandbox and its forks share a connection, which may still be open.
    if (this.closing) throw new StockadeError("ended", "the sandbox is closed");
    return this.connection.work(method, { session: this.session, ...params });
  }
}
