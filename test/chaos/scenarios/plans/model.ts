import { setTimeout as sleep } from 'node:timers/promises'
import { ModelServer } from '../../../support/model-server/model-server.ts'
import type { Answer } from '../../../support/model-server/script.ts'
import { readOrder } from './form.ts'

const WRITTEN = /^Wrote \d+ bytes/

/** A provider outside of the product that carries out the orders of steps, and remembers when each was sent. Times are those of `Date.now()`. */
export class StepModel implements AsyncDisposable {
  /** Tool results other than the success of Write. */
  readonly refusedTools: string[] = []
  readonly #server = new ModelServer({ record: false })
  readonly #starts = new Map<string, number[]>()
  readonly #answers = new Map<string, number[]>()
  readonly #writes = new Map<string, number[]>()
  readonly #waiting = new Map<string, number>()
  #begun = 0

  static async start(): Promise<StepModel> {
    const model = new StepModel()
    model.#server.otherwise(({ prompt, results }) => {
      const [result] = results
      return result ? model.#goOn(result) : model.#begin(prompt)
    })
    await model.#server.listen(0)
    return model
  }

  /** Settings of processes that use this model. */
  get env(): Record<string, string> {
    return { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm', MODEL_BASE_URL: this.#server.url }
  }

  /** The times at which a step's prompt arrived: each begins an execution of the step. */
  startsOf(token: string): readonly number[] {
    return this.#starts.get(token) ?? []
  }

  /** The times of the answers that end an execution. */
  answersOf(token: string): readonly number[] {
    return this.#answers.get(token) ?? []
  }

  /** How many executions of steps have begun. */
  get begun(): number {
    return this.#begun
  }

  /** When a tool of this step has succeeded and was reported. */
  writesOf(token: string): readonly number[] {
    return this.#writes.get(token) ?? []
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.close()
  }

  async #begin(prompt: string): Promise<Answer> {
    const { token, ms, writes } = readOrder(prompt)
    note(this.#starts, token)
    this.#begun++
    if (!writes) return this.#answer(token, ms)
    this.#waiting.set(token, ms / 2)
    await sleep(ms / 2)
    return [{ tool: 'Write', id: token, input: { path: `${token}.txt`, content: token } }]
  }

  /** The id of a tool call is the token of its step. */
  #goOn({ id: token, text }: { id: string; text: string }): Promise<Answer> {
    if (!WRITTEN.test(text)) this.refusedTools.push(`${token}: ${text}`)
    note(this.#writes, token)
    return this.#answer(token, this.#waiting.get(token) ?? 0)
  }

  async #answer(token: string, ms: number): Promise<string> {
    await sleep(ms)
    note(this.#answers, token)
    return token
  }
}

const note = (times: Map<string, number[]>, token: string): void => {
  times.set(token, [...(times.get(token) ?? []), Date.now()])
}
