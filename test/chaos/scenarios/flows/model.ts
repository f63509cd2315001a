import { setTimeout as sleep } from 'node:timers/promises'
import { isJsonObject, parseJson } from '../../../../shared/kernel/json.ts'
import { ModelServer } from '../../../support/model-server/model-server.ts'

/** The input of the flow `echo`. The model answers the token after `ms` milliseconds. */
export type EchoInput = { token: string; ms: number }

/** A provider that repeats the token of each prompt, and counts the requests for each token. */
export class EchoModel implements AsyncDisposable {
  readonly #server = new ModelServer({ record: false })
  readonly #counts = new Map<string, number>()

  static async start(): Promise<EchoModel> {
    const model = new EchoModel()
    model.#server.otherwise(async ({ prompt }) => {
      const { token, ms } = inputOf(prompt)
      model.#counts.set(token, model.countOf(token) + 1)
      await sleep(ms)
      return JSON.stringify({ token })
    })
    await model.#server.listen(0)
    return model
  }

  get url(): string {
    return this.#server.url
  }

  /** The number of requests with this token. */
  countOf(token: string): number {
    return this.#counts.get(token) ?? 0
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.close()
  }
}

/** Throws for a prompt that is not the envelope of the flow's input. */
function inputOf(prompt: string): EchoInput {
  const envelope = parseJson(prompt)
  if (isJsonObject(envelope) && isJsonObject(envelope['input'])) return envelope['input'] as EchoInput
  throw new Error(`not the input of a flow: ${prompt}`)
}
