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
/** How long a server may take to end by itself after its input was closed, and then after SIGTERM. */
const LEAVE_MS = 1_000
const TERM_MS = 1_000
/** How long the pipes may stay open behind a server that has ended. */
const DRAIN_MS = 200

/**
 * An MCP server as a child process in a group of its own: launchers such as npx leave the server behind when only they are
 * ended, and Ctrl+C at a terminal must not reach it while runs are being finished. Of our environment it sees PATH, HOME and
 * their like, and what the config gives it.
 */
export class StdioGroupTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #server: StdioServer
  readonly #messages = new ReadBuffer()
  readonly #stderr = new OutputCap(STDERR_CHARS)
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #gone: Promise<unknown> = Promise.resolve()

  constructor(server: StdioServer) {
    this.#server = server
  }

  /** What the server wrote to its standard error: why it did not start, for the operator. */
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
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', (cause) => this.#complain(cause))
    this.#gone = this.#ended(child).catch((cause: unknown) => this.#complain(cause))
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stdin = this.#child?.stdin
    if (!stdin?.writable) throw new SdkError(SdkErrorCode.NotConnected, 'the server has ended')
    stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    await promise
  }

  async close(): Promise<void> {
    const child = this.#child
    if (!child) return
    child.stdin.end()
    const hasLeft = await Promise.race([once(child, 'exit'), delay(LEAVE_MS, false, { ref: false })])
    if (!hasLeft && child.pid !== undefined) await endProcessGroup(child.pid, TERM_MS)
    await this.#gone
  }

  #read(chunk: Buffer): void {
    try {
      this.#messages.append(chunk)
    } catch (cause) {
      this.#complain(cause)
      this.close().catch((failure: unknown) => this.#complain(failure)) // A message over 10 MB: what follows is no message.
    }
    while (this.#readOne());
  }

  /** False when no whole message is left. One that is no JSON-RPC is passed over. */
  #readOne(): boolean {
    try {
      const message = this.#messages.readMessage()
      if (message) this.onmessage?.(message)
      return message !== null
    } catch (cause) {
      this.#complain(cause)
      return true
    }
  }

  #complain(cause: unknown): void {
    this.onerror?.(cause instanceof Error ? cause : new Error('the server failed', { cause }))
  }

  /** Ends what the server left behind, then reports the end once. */
  async #ended(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<void> {
    const closed = once(child, 'close')
    await once(child, 'exit')
    await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })])
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    this.#child = undefined
    this.onclose?.()
    if (child.pid !== undefined) await endProcessGroup(child.pid, TERM_MS)
  }
}
