import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { CallWatch } from '../call-watch.ts'
import {
  breachFailure,
  brokenOff,
  type FailedCall,
  filtered,
  malformedKey,
  missingKey,
  truncated,
} from '../failures/failures.ts'
import type { ModelLimits } from '../limits.ts'
import type { Failure, ModelPart, ModelProvider, ModelRequest } from '../port.ts'
import { toFailure } from './classify.ts'
import { type Fetch, watchedFetch } from './fetch.ts'
import { PartReader, toUsage } from './parts.ts'
import { toCallOptions } from './prompt.ts'
import { createTransport } from './transport.ts'
import { openVendor, type Vendor, type VendorType } from './vendors.ts'

export type AiSdkSettings = {
  type: VendorType
  baseUrl?: string
  apiKey?: string
  /** Must honour its signal; redirects are told to it as `manual`. */
  fetch?: Fetch
  limits: ModelLimits
}

type FinishPart = Extract<LanguageModelV4StreamPart, { type: 'finish' }>

/** Where each provider's users keep its key. */
const KEY_VARIABLE: Record<VendorType, string> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  google: 'GOOGLE_GENERATIVE_AI_API_KEY',
}

/** How many models' objects are kept: building one costs a schema for its chunks. */
const MAX_MODELS = 64

/** Opens a provider over the AI SDK's package for its wire format, used through `doStream` alone. */
export async function openAiSdkProvider(settings: AiSdkSettings): Promise<ModelProvider> {
  const { type, apiKey = '', limits } = settings
  const watches = new WeakMap<AbortSignal, CallWatch>()
  const transport = settings.fetch ?? (await createTransport(limits))
  const fetch = watched(transport, watches)
  const vendor = await openVendor(type, { baseUrl: settings.baseUrl, apiKey, fetch })
  const models = new Map<string, LanguageModelV4>()
  const refusal = keyProblem(settings)
  return {
    type,
    stream(request, signal) {
      const call: FailedCall = { type, model: request.model, apiKey, keyVariable: KEY_VARIABLE[type] }
      if (refusal) return refuse(refusal(call))
      const model = modelOf(request.model, models, vendor)
      return streamTurn({ request, signal, call, model, vendor, limits, watches })
    },
  }
}

/** At another address than the provider's own the key is the gateway's affair. A key that is no header would be told in an error. */
function keyProblem({ apiKey = '', baseUrl }: AiSdkSettings): typeof missingKey | undefined {
  if (apiKey === '' && baseUrl === undefined) return missingKey
  return /^[\x21-\x7e]*$/.test(apiKey) ? undefined : malformedKey
}

/** The package hands a call's signal through to `fetch`: by it the call's watch is found. */
function watched(transport: Fetch, watches: WeakMap<AbortSignal, CallWatch>): Fetch {
  return async (input, init) => {
    const watch = init?.signal && watches.get(init.signal)
    if (!watch) throw new Error('a request to a model without its watch')
    return watchedFetch(watch, transport)(input, init)
  }
}

function modelOf(id: string, models: Map<string, LanguageModelV4>, vendor: Vendor): LanguageModelV4 {
  const known = models.get(id)
  if (known) return known
  const [oldest] = models.keys()
  if (oldest !== undefined && models.size >= MAX_MODELS) models.delete(oldest)
  const model = vendor.model(id)
  models.set(id, model)
  return model
}

async function* refuse(failure: Failure): AsyncGenerator<ModelPart, void, undefined> {
  yield { type: 'failure', failure }
}

type Turn = {
  request: ModelRequest
  signal: AbortSignal
  call: FailedCall
  model: LanguageModelV4
  vendor: Vendor
  limits: ModelLimits
  watches: WeakMap<AbortSignal, CallWatch>
}

/** One model call. Leaving the iteration, at whatever point, closes the connection. */
async function* streamTurn(turn: Turn): AsyncGenerator<ModelPart, void, undefined> {
  const { request, signal, model, vendor, limits, watches } = turn
  const watch = new CallWatch(limits, signal)
  const answer = new PartReader(vendor)
  let finish: FinishPart | undefined
  let failure: Failure | undefined
  watches.set(watch.signal, watch)
  try {
    const { stream } = await model.doStream({ ...toCallOptions(request, vendor), abortSignal: watch.signal })
    const reader = stream.getReader()
    while (!failure && !signal.aborted) {
      const { done, value: part } = await reader.read()
      if (done) break
      if (part.type === 'finish') {
        finish ??= part
        watch.expectEnd()
      }
      const isWrong = part.type === 'error' && !finish && !vendor.mayIgnore?.(part.error)
      if (isWrong) failure = failureOf(part.error, watch, turn)
      for (const piece of answer.take(part)) yield piece
    }
  } catch (error) {
    // Once everything has been said, it does not matter how the connection ends.
    if (!finish && !signal.aborted) failure = failureOf(error, watch, turn)
  } finally {
    watch.close()
  }
  if (signal.aborted) return
  yield failure ? { type: 'failure', failure } : ending(finish, answer, turn.call)
}

function failureOf(error: unknown, { breach, isSent }: CallWatch, { call, limits }: Turn): Failure {
  if (breach) return breachFailure(breach, call, limits)
  if (!isSent) throw error
  return toFailure(error, call)
}

/** What the last part of the answer comes to. */
function ending(finish: FinishPart | undefined, answer: PartReader, call: FailedCall): ModelPart {
  const { unified, raw } = finish?.finishReason ?? { unified: 'interrupted' }
  const reason = finish && answer.finish(finish.finishReason)
  if (finish && reason) return { type: 'finish', reason, usage: toUsage(finish.usage) }
  if (unified === 'content-filter') return { type: 'failure', failure: filtered(call) }
  return { type: 'failure', failure: unified === 'interrupted' ? truncated(call) : brokenOff(call, raw) }
}
