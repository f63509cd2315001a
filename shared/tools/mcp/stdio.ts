import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type JSONRPCMessage,
  ReadBuffer,
  SdkError,
  SdkErrorCode,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import { OutputCap } from '../process/output-cap.ts'
import { endProcessGroup } from '../process/process-group.ts'
import type { StdioServer } from './config.ts'

const STDERR_CHARS = 1_000
/** How long a server may take to exit after its input was closed, and then after SIGTERM. */
const EXIT_MS = 1_000
const TERM_MS = 1_000
/** How long to wait for the pipes to close after the server has exited. */
const DRAIN_MS = 200

/**
 * Runs an MCP server as a child process in its own process group: ending only a launcher such as npx would leave the server
 * running, and Ctrl+C in a terminal must not reach the server while runs are finishing. The server's environment holds PATH,
 * HOME and similar variables, and those of the config.
 */
export class StdioGroupTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #server: StdioServer
  readonly #messages = new ReadBuffer()
  readonly #stderr = new OutputCap(STDERR_CHARS)
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #exited: Promise<unknown> = Promise.resolve()

  constructor(server: StdioServer) {
    this.#server = server
  }

  /** The server's standard error output, which tells the operator why it did not start. */
  get stderr(): string {
    return this.#stderr.text().trim()
  }

  async start(): Promise<void> {
    const { command, args, env } = this.#server
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    await once(child, 'spawn')
    this.#child = child
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.#stderr.add(text))
    for (const stream of [child.stdin, child.stdout, child.stderr])
      stream.on('error', (cause) => this.#reportError(cause))
    this.#exited = this.#waitForExit(child).catch((cause: unknown) => this.#reportError(cause))
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stdin = this.#child?.stdin
    if (!stdin?.writable) throw new SdkError(SdkErrorCode.NotConnected, 'the server has exited')
    stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    await promise
  }

  async close(): Promise<void> {
    const child = this.#child
    if (!child) return
    child.stdin.end()
    const hasExited = await Promise.race([once(child, 'exit'), delay(EXIT_MS, false, { ref: false })])
    if (!hasExited && child.pid !== undefined) await endProcessGroup(child.pid, TERM_MS)
    await this.#exited
  }

  #read(chunk: Buffer): void {
    try {
      this.#messages.append(chunk)
    } catch (cause) {
      this.#reportError(cause)
      // The message is over 10 MB, so the rest of the output cannot be parsed.
      this.close().catch((failure: unknown) => this.#reportError(failure))
    }
    while (this.#readOne());
  }

  /** Returns `false` when no complete message is left. Skips a line that is not JSON-RPC. */
  #readOne(): boolean {
    try {
      const message = this.#messages.readMessage()
      if (message) this.onmessage?.(message)
      return message !== null
    } catch (cause) {
      this.#reportError(cause)
      return true
    }
  }

  #reportError(cause: unknown): void {
    this.onerror?.(cause instanceof Error ? cause : new Error('the server failed', { cause }))
  }

  /** Waits until the server has exited, reports that once, and ends the processes that it left running. */
  async #waitForExit(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<void> {
    const closed = once(child, 'close')
    await once(child, 'exit')
    await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })])
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    this.#child = undefined
    this.onclose?.()
    if (child.pid !== undefined) await endProcessGroup(child.pid, TERM_MS)
  }
}
