import { createRequire } from 'node:module'
import type winston from 'winston'
import { createRedactedCopy, type Plain } from './log-redaction.ts'
import { isoTime } from './time.ts'
import { traceFields } from './trace.ts'

const LEVELS = { error: 0, warn: 1, info: 2, debug: 3 }

export type LogLevel = keyof typeof LEVELS
export type LogFields = Readonly<Record<string, unknown>>

/** Writes one JSON line per call: time, level, msg, the ids of the request and of its trace, then the fields. An error is passed in a field, such as `cause`. */
export type Log = Readonly<Record<LogLevel, (msg: string, fields?: LogFields) => void>>

export type LogOptions = {
  level: LogLevel
  /**
   * Values that are replaced by `[redacted]` wherever they occur. Values shorter than 4 characters are ignored: replacing
   * them would hide ordinary text.
   */
  secrets?: readonly string[]
  /** Receives each line with its line feed. Default: standard output. */
  write?: (line: string) => void
  /**
   * Registers a function to be called when the process ends. If set, lines below level `warn` are written together with
   * others of the same event-loop turn.
   */
  atExit?: (flush: () => void) => void
}

/**
 * Creates the log. Logging never throws, and never blocks the event loop for long: values are truncated before they are
 * rendered.
 */
export function createLog({ level, secrets = [], write, atExit }: LogOptions): Log {
  const plain = createRedactedCopy(secrets.filter((secret) => secret.length >= 4))
  const writeLine = write ?? createConsole(atExit)
  const at = (name: LogLevel) => {
    if (LEVELS[name] > LEVELS[level]) return () => {}
    return (message: string, fields?: LogFields) => {
      const line = render({ level: name, message, fields: { ...traceFields(), ...fields } }, plain)
      writeLine(`${line}\n`, LEVELS[name] <= LEVELS.warn)
    }
  }
  return Object.freeze({ error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') })
}

/** The property in which winston's transports expect the finished line. */
const MESSAGE = Symbol.for('message')

/** The lines of this turn of the event loop. All logs of a process write to the same standard output. */
let waiting = ''

/**
 * Winston's transport to standard output, without its logger: its streams cost more than writing a line, and the
 * whole package takes 35 ms and 9 MiB of each start. A run has two lines, each of which would be a system call of 15 us.
 */
function createConsole(atExit: LogOptions['atExit']): (line: string, isProblem: boolean) => void {
  const require = createRequire(import.meta.url)
  const Console: typeof winston.transports.Console = require('winston/lib/winston/transports/console.js')
  const console = new Console({ eol: '' })
  const flush = () => {
    const lines = waiting
    waiting = ''
    if (lines !== '') console.log?.({ [MESSAGE]: lines }, () => {})
  }
  atExit?.(flush)
  return (line, isProblem) => {
    if (waiting === '') setImmediate(flush)
    waiting += line
    if (isProblem || !atExit) flush()
  }
}

/** Log collectors accept lines of this length without splitting them. */
const MAX_BYTES = 16 * 1024

/** Numbers of characters to try in this order. JSON needs at most six bytes per character, so the last one always fits. */
const BUDGETS = [10_000, 1_500]

type Entry = { level: string; message: unknown; fields?: LogFields }

function render({ level, message, fields = {} }: Entry, plain: Plain): string {
  const time = isoTime()
  let line = ''
  for (const budget of BUDGETS) {
    const { msg, rest, isCut } = plain(String(message), fields, budget)
    const own = { time, level, msg } // Spread first for the order, and again last so that no field overrides them.
    line = JSON.stringify({ ...own, ...rest, ...own, ...(isCut && { truncated: true }) })
    if (Buffer.byteLength(line) < MAX_BYTES) break
  }
  return line
}
