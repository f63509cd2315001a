import { Writable } from 'node:stream'
import winston from 'winston'
import { createPlain, type Plain } from './log-plain.ts'

const LEVELS = { error: 0, warn: 1, info: 2, debug: 3 }

export type LogLevel = keyof typeof LEVELS
export type LogFields = Readonly<Record<string, unknown>>

/** One JSON line per call: time, level, msg, then the fields. An error goes into a field, such as `cause`. */
export type Log = Readonly<Record<LogLevel, (msg: string, fields?: LogFields) => void>>

export type LogOptions = {
  level: LogLevel
  /** Values that become `[redacted]` wherever they occur; those under 4 characters would hide ordinary text and stay. */
  secrets?: readonly string[]
  /** Takes each line, line feed included; stdout unless given. */
  write?: (line: string) => void
}

/** Logging never throws and never stalls: values are cut to size before they are rendered. */
export function createLog({ level, secrets = [], write }: LogOptions): Log {
  const plain = createPlain(secrets.filter((secret) => secret.length >= 4))
  const logger = winston.createLogger({
    level,
    levels: LEVELS,
    transports: write ? toWriter(write) : new winston.transports.Console({ eol: '\n' }),
    format: { transform: (info) => Object.assign(info, { [MESSAGE]: render(info, plain) }) },
  })
  const at = (name: LogLevel) => {
    if (LEVELS[name] > LEVELS[level]) return () => {}
    return (message: string, fields?: LogFields) => void logger.log({ level: name, message, fields })
  }
  return Object.freeze({ error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') })
}

/** Where winston's transports look for the finished line. */
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

/** A log shipper takes lines of this length whole. */
const MAX_BYTES = 16 * 1024

/** How many characters of fields to try with; JSON makes up to six bytes of one, so the last always fits. */
const BUDGETS = [10_000, 1_500]

type Entry = { level: string; message: unknown; fields?: LogFields }

function render({ level, message, fields = {} }: Entry, plain: Plain): string {
  const time = new Date().toISOString()
  let line = ''
  for (const budget of BUDGETS) {
    const { msg, rest, isCut } = plain(String(message), fields, budget)
    const own = { time, level, msg } // Before the fields for the order, after them so that no field replaces one.
    line = JSON.stringify({ ...own, ...rest, ...own, ...(isCut && { truncated: true }) })
    if (Buffer.byteLength(line) < MAX_BYTES) break
  }
  return line
}
