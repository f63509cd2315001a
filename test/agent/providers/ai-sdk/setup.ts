import { createProvider, type ProviderSettings } from '../../../../services/wiring/models/create-provider.ts'
import type { ModelLimits } from '../../../../shared/agent/providers/limits.ts'
import type { Failure, ModelPart, ModelProvider, ModelRequest } from '../../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../../shared/kernel/async/batch.ts'
import type { ModelOptions } from '../../../../shared/kernel/model-options.ts'
import type { ModelServer } from '../../../support/model-server/model-server.ts'

/** Every wire format, by the configuration that selects it. */
export const DIALECTS = [
  'openai-compatible',
  'ollama',
  'ollama natively',
  'openai behind a gateway',
  'openai',
  'anthropic',
  'google',
] as const
export type Dialect = (typeof DIALECTS)[number]

/** A `fetch` that sends requests for OpenAI's own address to the server. */
const redirected =
  (server: ModelServer): typeof globalThis.fetch =>
  (input, init) =>
    fetch(typeof input === 'string' ? input.replace('https://api.openai.com/v1', server.url) : input, init)

export function settingsFor(dialect: Dialect, server: ModelServer): ProviderSettings {
  if (dialect === 'openai') return { type: 'openai', fetch: redirected(server) }
  if (dialect === 'ollama natively') return { type: 'ollama', baseUrl: new URL(server.url).origin }
  if (dialect === 'google') return { type: 'google', baseUrl: server.googleUrl }
  if (dialect === 'openai behind a gateway') return { type: 'openai', baseUrl: server.url }
  return { type: dialect, baseUrl: server.url }
}

export const KEY = 'sk-test-0123456789'

export const connect = (
  dialect: Dialect,
  server: ModelServer,
  limits: Partial<ModelLimits> = {},
  options: ModelOptions = {},
) => createProvider({ apiKey: KEY, ...settingsFor(dialect, server), limits, options })

export const request = (fields: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'test-model',
  messages: [{ role: 'user', text: 'hi' }],
  tools: [],
  stopSequences: [],
  ...fields,
})

export const never = () => new AbortController().signal

/** All parts of an answer. */
export async function ask(provider: ModelProvider, asked = request(), signal = never()): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of oneByOne(provider.stream(asked, signal))) parts.push(part)
  return parts
}

/** The failure with which an answer ended. */
export async function failureOf(provider: ModelProvider, asked = request()): Promise<Failure> {
  const last = (await ask(provider, asked)).at(-1)
  if (last?.type !== 'failure') throw new Error(`no failure but ${JSON.stringify(last)}`)
  return last.failure
}

export type PartOf<Type extends ModelPart['type']> = Extract<ModelPart, { type: Type }>

export const partsOf = <Type extends ModelPart['type']>(parts: ModelPart[], type: Type): PartOf<Type>[] =>
  parts.filter((part): part is PartOf<Type> => part.type === type)

export const textOf = (parts: ModelPart[], type: 'text_delta' | 'thinking_delta' = 'text_delta') =>
  partsOf(parts, type)
    .map(({ text }) => text)
    .join('')
