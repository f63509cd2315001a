import { Writable } from 'node:stream'
import winston from 'winston'
import { createPlain, type Plain } from './log-plain.ts'
import { traceFields } from './trace.ts'

const LEVELS = { error: 0, warn: 1, info: 2, debug: 3 }

export type LogLevel = keyof typeof LEVELS
export type LogFields = Readonly<Record<string, unknown>>

/** Writes one JSON line per call: time, level, msg, the ids of the request and of its trace, then the fields. An error is passed in a field, such as `cause`. */
export type Log = Readonly<Record<LogLevel, (msg: string, fields?: LogFields) => void>>

export type LogOptions = {
  level: LogLevel
  /**
   * Values that are replaced by `[redacted]` wherever they occur. Shorter ones than 4 characters are left: they would hide
   * ordinary text.
   */
  secrets?: readonly string[]
  /** Receives each line with its line feed. Default: standard output. */
  write?: (line: string) => void
}

/**
 * Creates the log. Logging never throws, and never blocks the event loop for long: values are truncated before they are
 * rendered.
 */
export function createLog({ level, secrets = [], write }: LogOptions): Log {
  const plain = createPlain(secrets.filter((secret) => secret.length >= 4))
  const transport = write ? toWriter(write) : new winston.transports.Console({ eol: '\n' })
  const at = (name: LogLevel) => {
    if (LEVELS[name] > LEVELS[level]) return () => {}
    return (message: string, fields?: LogFields) => {
      const line = render({ level: name, message, fields: { ...traceFields(), ...fields } }, plain)
      transport.log?.({ [LEVEL]: name, [MESSAGE]: line }, () => {})
    }
  }
  return Object.freeze({ error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') })
}

/**
 * The properties in which winston's transports expect the level and the finished line. Lines go to the transport directly: the streams
 * of a winston logger in front of it would cost more than the line itself.
 */
const LEVEL = Symbol.for('level')
const MESSAGE = Symbol.for('message')

function toWriter(write: (line: string) => void) {
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, next) {
      write(line)
      next()
    },
  })
  return new winston.transports.Stream({ stream, eol: '\n' })
}

/** Log collectors accept lines of this length without splitting them. */
const MAX_BYTES = 16 * 1024

/** Numbers of characters to try in this order. JSON needs at most six bytes per character, so the last one always fits. */
const BUDGETS = [10_000, 1_500]

type Entry = { level: string; message: unknown; fields?: LogFields }

function render({ level, message, fields = {} }: Entry, plain: Plain): string {
  const time = new Date().toISOString()
  let line = ''
  for (const budget of BUDGETS) {
    const { msg, rest, isCut } = plain(String(message), fields, budget)
    const own = { time, level, msg } // Spread first for the order, and again last so that no field overrides them.
    line = JSON.stringify({ ...own, ...rest, ...own, ...(isCut && { truncated: true }) })
    if (Buffer.byteLength(line) < MAX_BYTES) break
  }
  return line
}
