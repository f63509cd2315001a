import { callModel, type ModelCall } from '../../../../shared/agent/providers/failures/failover.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { CallPart } from '../../../../shared/agent/providers/failures/retry.ts'
import type { Failure, FailureCode, ModelPart, ModelProvider } from '../../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
import type { WarningEvent } from '../../../../shared/kernel/events.ts'
import { never } from '../ai-sdk/setup.ts'

/** A complete answer. */
export const OK: ModelPart[] = [
  { type: 'text_delta', text: 'well' },
  { type: 'text_end' },
  { type: 'finish', reason: 'end_turn', usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 } },
]

/** An answer that is a failure. */
export const fails = (
  code: FailureCode,
  reason: string,
  fields: Partial<Failure> = { isRetryable: true },
): ModelPart[] => [{ type: 'failure', failure: failure(code, reason, `it says ${reason}`, fields) }]

export const DOWN = fails('provider_unavailable', 'http_503')

/** A provider that answers each request with the next list of parts, and records which model was requested. */
export function scripted(type: string, ...answers: ModelPart[][]): ModelProvider & { models: string[] } {
  const models: string[] = []
  async function* stream({ model }: { model: string }) {
    models.push(model)
    yield* answers[models.length - 1] ?? OK
  }
  return { type, models, stream }
}

/** As `scripted`, and logs when each stream is opened and closed: `openai 1 opens`, `openai 1 closes`. */
export function logged(type: string, log: string[], ...answers: ModelPart[][]): ModelProvider {
  let count = 0
  async function* stream() {
    const number = ++count
    log.push(`${type} ${number} opens`)
    try {
      yield* answers[number - 1] ?? OK
    } finally {
      log.push(`${type} ${number} closes`)
    }
  }
  return { type, stream }
}

type Options = Partial<Pick<ModelCall, 'signal' | 'retry' | 'fallback'>>

/** Calls the model `big` of a provider. The waits between requests are short enough for a test. */
export const start = (provider: ModelProvider, { fallback, signal = never(), retry = {} }: Options = {}) =>
  oneByOne(
    callModel({
      primary: { provider, model: 'big' },
      fallback,
      request: { messages: [{ role: 'user', text: 'hi' }], tools: [], stopSequences: [] },
      signal,
      retry: { baseDelayMs: 2, random: () => 1, ...retry },
    }),
  )

/** All parts of a call. */
export async function call(provider: ModelProvider, options: Options = {}) {
  const parts: CallPart[] = []
  for await (const part of start(provider, options)) parts.push(part)
  const warnings = parts.filter((part): part is WarningEvent => part.type === 'warning')
  return { parts, warnings, last: parts.at(-1), types: parts.map(({ type }) => type) }
}

/** The fallback's route, with the model `spare`. */
export const spare = (provider: ModelProvider) => ({ provider, model: 'spare' })
