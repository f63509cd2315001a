import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type JSONRPCMessage,
  SdkError,
  SdkErrorCode,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import { endProcessGroup } from '../process/process-group.ts'
import { makeWorkspace } from '../workspace/workspace.ts'
import { Answers } from './answers.ts'
import { MAX_ANSWER_BYTES, type StdioServerConfig } from './config.ts'
import { MessageLines } from './message-lines.ts'

const STDERR_CHARS = 4_000
/** How long a server may take to exit after its input was closed, and then after SIGTERM. */
const EXIT_MS = 1_000
const TERM_MS = 1_000
/** How long to wait for the pipes to close after the server has exited. */
const DRAIN_MS = 200
/** After this many lines that answer nothing the server's output is not read for a while, so that reading it does not slow down others. */
const MAX_IDLE_LINES = 1_000
const REST_MS = 100
/** A piece of a too long line counts as this many lines. */
const LINES_OF_PIECE = 10

export type StdioOptions = {
  /** The server's working directory when its entry names no `cwd`. */
  folder: string | undefined
  /** Gets the first line of the output that was no message. */
  onSkipped: (line: string) => void
}

/**
 * Runs an MCP server as a child process in its own process group: ending only a launcher such as npx would leave the server
 * running, and Ctrl+C in a terminal must not reach the server while runs are finishing. The server's environment holds PATH,
 * HOME and similar variables, and those of the config. A line of its output that is no message is skipped.
 */
export class StdioGroupTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #server: StdioServerConfig
  readonly #answers = new Answers((message) => this.onmessage?.(message))
  readonly #lines = new MessageLines(MAX_ANSWER_BYTES.stdio, {
    onLine: (line) => this.#readLine(line),
    onTooLong: (start, end) => this.#dropLine(start, end),
  })
  readonly #options: StdioOptions
  #idleLines = 0
  #hasSkipped = false
  #isClosed = false
  #stderr = ''
  #exit = ''
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #exited: Promise<unknown> = Promise.resolve()

  constructor(server: StdioServerConfig, options: StdioOptions) {
    this.#server = server
    this.#options = options
  }

  /** The id of its process, while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** The end of the server's standard error output, which tells the operator why it failed. */
  get stderr(): string {
    return this.#stderr.trim()
  }

  /** How the server ended, for example `exited with code 1`; empty while it runs. */
  get exit(): string {
    return this.#exit
  }

  async start(): Promise<void> {
    const { command, args, env } = this.#server
    const cwd = await this.#folder()
    if (this.#isClosed) throw new Error('it was closed before it started')
    const child = spawn(command, args, {
      cwd,
      env: { ...getDefaultEnvironment(), ...env },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    await once(child, 'spawn')
    this.#child = child
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk, child.stdout))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS)
    })
    for (const stream of [child.stdin, child.stdout, child.stderr])
      stream.on('error', (cause) => this.#reportError(cause))
    this.#exited = this.#waitForExit(child).catch((cause: unknown) => this.#reportError(cause))
    if (this.#isClosed) await this.close() // The transport was closed while the process was starting.
  }

  async #folder(): Promise<string | undefined> {
    const { cwd } = this.#server
    if (cwd !== undefined && !(await isFolder(cwd))) throw new Error(`its cwd ${cwd} is not a folder`)
    const { folder } = this.#options
    if (cwd === undefined && folder !== undefined) await makeWorkspace(folder)
    return cwd ?? folder
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stdin = this.#child?.stdin
    if (!stdin?.writable) throw new SdkError(SdkErrorCode.NotConnected, 'the server has exited')
    this.#answers.sent(message)
    stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    await promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const child = this.#child
    if (!child) return
    child.stdin.end()
    const hasExited = await Promise.race([once(child, 'exit'), delay(EXIT_MS, false, { ref: false })])
    if (!hasExited && child.pid !== undefined) await endProcessGroup(child.pid, TERM_MS)
    await this.#exited
  }

  #read(chunk: Buffer, output: Readable): void {
    this.#lines.push(chunk)
    if (this.#lines.isTooLong) this.#idleLines += LINES_OF_PIECE
    if (this.#idleLines < MAX_IDLE_LINES) return
    this.#idleLines = 0
    output.pause()
    setTimeout(() => output.resume(), REST_MS).unref()
  }

  #readLine(line: string): void {
    try {
      const message = this.#answers.readLine(line)
      if (message === 'skipped') this.#skip(line)
      if (typeof message === 'string') return
      if ('method' in message) this.#idleLines += 1
      this.#answers.received(message)
      this.onmessage?.(message)
    } catch (cause) {
      this.#reportError(cause)
    }
  }

  #dropLine(start: string, end: string): void {
    if (this.#answers.dropLine(start, end, MAX_ANSWER_BYTES.stdio) === 'skipped') this.#skip(start)
  }

  #skip(line: string): void {
    this.#idleLines += 1
    if (this.#hasSkipped || line.trim() === '') return
    this.#hasSkipped = true
    this.#options.onSkipped(line)
  }

  #reportError(cause: unknown): void {
    this.onerror?.(cause instanceof Error ? cause : new Error('the server failed', { cause }))
  }

  /** Waits until the server has exited, reports that once, and ends the processes that it left running. */
  async #waitForExit(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<void> {
    const closed = once(child, 'close')
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
    await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })])
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    this.#child = undefined
    this.#exit = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
    this.onclose?.()
    if (child.pid !== undefined) await endProcessGroup(child.pid, TERM_MS)
  }
}

export const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
