import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { type ModelServer, startModelServer } from './model-server.ts'

/** The AI SDK's clients, connected to a model server. */
const CLIENTS = {
  'openai-compatible': ({ url }: ModelServer): LanguageModelV4 =>
    createOpenAICompatible({ name: 'test', baseURL: url, apiKey: 'k', includeUsage: true }).chatModel('m'),
  'openai chat': ({ url }: ModelServer): LanguageModelV4 => createOpenAI({ baseURL: url, apiKey: 'k' }).chat('m'),
  'openai responses': ({ url }: ModelServer): LanguageModelV4 => createOpenAI({ baseURL: url, apiKey: 'k' })('m'),
  anthropic: ({ url }: ModelServer): LanguageModelV4 => createAnthropic({ baseURL: url, apiKey: 'k' })('claude-x'),
  google: ({ googleUrl }: ModelServer): LanguageModelV4 =>
    createGoogle({ baseURL: googleUrl, apiKey: 'k' })('gemini-x'),
}

export type ClientName = keyof typeof CLIENTS

export const HI = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
} satisfies LanguageModelV4CallOptions

/** Opens a stream that can be read part by part. */
export async function open(model: LanguageModelV4, options: Partial<LanguageModelV4CallOptions> = {}) {
  const { stream } = await model.doStream({ ...HI, ...options })
  const reader = stream.getReader()
  return {
    /** Reads up to the next part of a type. */
    async next(type: LanguageModelV4StreamPart['type']) {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`the stream ended before ${type}`)
        if (value.type === type) return value
      }
    },
    async rest() {
      const parts: LanguageModelV4StreamPart[] = []
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return parts
        parts.push(value)
      }
    },
  }
}

/** All parts of an answer. */
export const drain = async (model: LanguageModelV4, options: Partial<LanguageModelV4CallOptions> = {}) =>
  (await open(model, options)).rest()

export const partsOf = <T extends LanguageModelV4StreamPart['type']>(parts: LanguageModelV4StreamPart[], type: T) =>
  parts.filter((part): part is Extract<LanguageModelV4StreamPart, { type: T }> => part.type === type)

export const deltas = (
  parts: LanguageModelV4StreamPart[],
  type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta',
) => partsOf(parts, type).map(({ delta }) => delta)

/** Reads a JSON body. */
export const bodyOf = async (res: Response | Promise<Response>) => JSON.parse(await (await res).text())

/** Resolves with the reason with which a promise rejects. */
export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error('the promise did not reject')
    },
    (cause: unknown) => cause,
  )

type Use = () => { server: ModelServer; model: LanguageModelV4 }

/** Runs the same tests for each client. Each test has a server of its own, which must have no open request at its end. */
export function eachClient(title: string, tests: (name: ClientName, use: Use) => void) {
  for (const name of Object.keys(CLIENTS) as ClientName[]) {
    describe(`${title}, read by the ${name} client`, () => {
      let server: ModelServer
      beforeEach(async () => {
        server = await startModelServer()
      })
      afterEach(async () => {
        await server.close()
        if (server.openRequests() + server.openConnections() > 0)
          throw new Error('a request or a connection is left open')
      })
      tests(name, () => ({ server, model: CLIENTS[name](server) }))
    })
  }
}
