// Commands in a sandbox.

import type { Connection } from "./connection.js";
import {
  type Chunk, type Result, type Stream, type Waited, StockadeError, decode, encode, parts,
} from "./types.js";

/** A command that nobody listens to stops after this much output, as at a full pipe. */
export const WINDOW_BYTES = 1 << 20;
export const OUTPUT_LIMIT = 64 << 20;
const INPUT_BYTES = 1 << 19;

interface About {
  session: string;
  command: string;
}

/** A command that was started in a sandbox; iterating streams its output. */
export class Command implements AsyncIterable<Chunk> {
  private readonly chunks: Chunk[] = [];
  private readonly kept: Record<Stream, Buffer[]> = { stdout: [], stderr: [], terminal: [] };
  private readonly keptBytes: Record<Stream, number> = { stdout: 0, stderr: 0, terminal: 0 };
  private isTruncated = false;
  private takenBytes = 0;
  private waiting: (() => void)[] = [];
  private isOver = false;
  private readonly end: Promise<Waited>;

  /** @internal `collects`: nobody will listen, the output is for `wait`. */
  constructor(
    private readonly connection: Connection,
    private readonly about: About,
    private readonly collects: boolean,
    private readonly outputLimit = OUTPUT_LIMIT,
  ) {
    connection.listen(about.command, ({ stream, data }) => {
      const chunk = { stream, data: decode(data) };
      if (this.collects) this.keep(chunk);
      else this.chunks.push(chunk);
      this.wake();
    });
    this.end = connection.call<Waited>("wait", about);
    const finish = () => {
      this.isOver = true;
      connection.forget(about.command);
      this.wake();
    };
    this.end.then(finish, finish);
  }

  /** @internal Settled when the command has ended. */
  get ended(): Promise<unknown> {
    return this.end;
  }

  get running(): boolean {
    return !this.isOver;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    for (;;) {
      const chunk = this.chunks.shift();
      if (chunk) {
        this.take(chunk);
        yield chunk;
      } else if (this.isOver) {
        return;
      } else {
        await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
    }
  }

  /** Writes to the command's input. */
  async write(data: string | Uint8Array): Promise<void> {
    for (const part of parts(data, INPUT_BYTES)) {
      await this.connection.call("stdin", { ...this.about, data: encode(part) });
    }
  }

  /** Ends the command's input. */
  async closeStdin(): Promise<void> {
    await this.connection.call("stdin", { ...this.about, eof: true });
  }

  /** Writes all of the input of a command, which may end without reading it. */
  async feed(input: string | Uint8Array): Promise<void> {
    try {
      await this.write(input);
      await this.closeStdin();
    } catch (error) {
      const kinds = ["ended", "no_such_command"];
      if (!(error instanceof StockadeError) || !kinds.includes(error.kind)) throw error;
    }
  }

  /** Changes the size of the command's terminal. */
  async resize(rows: number, cols: number): Promise<void> {
    await this.connection.call("resize", { ...this.about, size: { rows, cols } });
  }

  /** Sends a signal; 9 kills everything that the command started. */
  async signal(signal: number): Promise<void> {
    await this.connection.call("signal", { ...this.about, signal });
  }

  /** Kills the command and everything that it started. */
  async kill(): Promise<void> {
    if (this.isOver) return;
    // A command that has ended meanwhile, or its sandbox, needs no signal.
    await this.signal(9).catch(() => {});
  }

  /** Waits for the end; the result has the output, up to a limit for each stream. */
  async wait(): Promise<Result> {
    for await (const _ of this);
    const ended = await this.end;
    const all = (...streams: Stream[]) => Buffer.concat(streams.flatMap((stream) => this.kept[stream]));
    return {
      exitCode: ended.exit_code,
      ending: ended.ending,
      signal: ended.signal,
      denials: ended.denials,
      wallMicros: ended.wall_micros,
      cpuMicros: ended.cpu_micros,
      peakMemoryKib: ended.peak_memory_kib,
      usageScope: ended.usage_scope,
      stdout: all("stdout", "terminal"),
      stderr: all("stderr"),
      truncated: this.isTruncated,
    };
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }

  private take(chunk: Chunk): void {
    this.keep(chunk);
    this.takenBytes += chunk.data.length;
    if (this.takenBytes >= WINDOW_BYTES / 2 && !this.isOver) {
      // The answer is of no interest, nor is a command that has ended.
      this.connection.call("credit", { ...this.about, bytes: this.takenBytes }).catch(() => {});
      this.takenBytes = 0;
    }
  }

  private keep({ stream, data }: Chunk): void {
    const room = this.outputLimit - this.keptBytes[stream];
    if (data.length > room) this.isTruncated = true;
    const part = data.subarray(0, Math.max(0, room));
    this.keptBytes[stream] += part.length;
    if (part.length > 0) this.kept[stream].push(part);
  }
}
