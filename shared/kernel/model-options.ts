import { isJsonObject } from './json.ts'
/** How a model is called (D1.3 MODEL_OPTIONS; `options` of a tenant's instance); the same for every wire format. */
export type ModelOptions = {
  /** The most tokens of one answer. */
  max_output_tokens?: number
  temperature?: number
  reasoning_effort?: ReasoningEffort
  /** Tokens; overrides what the catalogue or the server says (D5.8). */
  context_window?: number
  /** Sent with each request besides the provider's own. */
  headers?: Record<string, string>
  /** The limit for the first byte of an answer, and between two bytes (D5.8). */
  timeout_secs?: number
  parallel_tool_calls?: boolean
  /** OpenAI's flex tier, for calls that can wait (D54.9). */
  flex?: boolean
}

const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number]

/** The field that is wrong, as a JSON pointer inside the options, and the value that it must have. */
export type OptionsProblem = { pointer: string; expected: string }

const MAX_HEADERS = 16

/** Headers that the connection, the body or the provider's key decide. */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'anthropic-version',
  'api-key',
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-api-key',
  'x-goog-api-key',
])

type Check = { expected: string; fits(value: unknown): boolean }

const FLAG: Check = { expected: 'true or false', fits: (value) => typeof value === 'boolean' }

const CHECKS: Record<keyof ModelOptions, Check> = {
  max_output_tokens: wholeNumber(1, 1_000_000),
  temperature: { expected: 'a number from 0 to 2', fits: (value) => isNumber(value, 0, 2) },
  reasoning_effort: {
    expected: `one of ${REASONING_EFFORTS.join(', ')}`,
    fits: (value) => REASONING_EFFORTS.some((effort) => effort === value),
  },
  context_window: wholeNumber(1, 100_000_000),
  headers: { expected: `an object of at most ${MAX_HEADERS} header names and their values`, fits: isHeaderTable },
  timeout_secs: wholeNumber(1, 3_600),
  parallel_tool_calls: FLAG,
  flex: FLAG,
}

/** The first problem of `value` as model options; `undefined` when it is fine. An unknown field is a problem: it would have no effect. */
export function findOptionsProblem(value: unknown): OptionsProblem | undefined {
  if (!isJsonObject(value)) return { pointer: '', expected: 'a JSON object' }
  for (const [name, field] of Object.entries(value)) {
    if (!Object.hasOwn(CHECKS, name)) {
      return { pointer: `/${name}`, expected: `one of ${Object.keys(CHECKS).join(', ')}` }
    }
    const { expected, fits } = CHECKS[name as keyof ModelOptions]
    if (!fits(field)) return { pointer: `/${name}`, expected }
  }
  return isJsonObject(value['headers']) ? findHeaderProblem(value['headers']) : undefined
}

function findHeaderProblem(headers: Record<string, unknown>): OptionsProblem | undefined {
  for (const [name, value] of Object.entries(headers)) {
    const pointer = `/headers/${name}`
    if (!/^[\w!#$%&'*+.^`|~-]{1,64}$/.test(name)) return { pointer, expected: 'named by a valid header name' }
    if (RESERVED_HEADERS.has(name.toLowerCase()))
      return { pointer, expected: 'left out: the server sets this header itself' }
    if (!/^[\x20-\x7e]{0,1024}$/.test(String(value))) {
      return { pointer, expected: 'at most 1024 printable ASCII characters' }
    }
  }
  return undefined
}

function isHeaderTable(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const values = Object.values(value)
  return values.length <= MAX_HEADERS && values.every((each) => typeof each === 'string')
}

function wholeNumber(min: number, max: number): Check {
  return {
    expected: `a whole number from ${min} to ${max}`,
    fits: (value) => Number.isInteger(value) && isNumber(value, min, max),
  }
}

const isNumber = (value: unknown, min: number, max: number): boolean =>
  typeof value === 'number' && value >= min && value <= max
