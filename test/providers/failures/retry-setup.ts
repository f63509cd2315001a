import type { WarningEvent } from '../../../shared/events.ts'
import { callModel, type ModelCall } from '../../../shared/providers/failures/failover.ts'
import { failure } from '../../../shared/providers/failures/failures.ts'
import type { CallPart } from '../../../shared/providers/failures/retry.ts'
import type { Failure, FailureCode, ModelPart, ModelProvider } from '../../../shared/providers/port.ts'
import { never } from '../ai-sdk/setup.ts'

/** An answer that is well. */
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

/** Gives one list of parts for each request, and counts the requests. */
export function scripted(type: string, ...answers: ModelPart[][]): ModelProvider & { models: string[] } {
  const models: string[] = []
  async function* stream({ model }: { model: string }) {
    models.push(model)
    yield* answers[models.length - 1] ?? OK
  }
  return { type, models, stream }
}

type Options = Partial<Pick<ModelCall, 'signal' | 'retry'>> & { fallback?: ModelProvider }

/** A call with waits short enough for a test. */
export function start(provider: ModelProvider, { fallback, signal = never(), retry = {} }: Options = {}) {
  return callModel({
    primary: { provider, model: 'big' },
    ...(fallback && { fallback: { provider: fallback, model: 'spare' } }),
    request: { messages: [{ role: 'user', text: 'hi' }], tools: [], stopSequences: [] },
    signal,
    retry: { baseDelayMs: 2, random: () => 1, ...retry },
  })
}

/** The whole of a call. */
export async function call(provider: ModelProvider, options: Options = {}) {
  const parts: CallPart[] = []
  for await (const part of start(provider, options)) parts.push(part)
  const warnings = parts.filter((part): part is WarningEvent => part.type === 'warning')
  return { parts, warnings, last: parts.at(-1), types: parts.map(({ type }) => type) }
}
