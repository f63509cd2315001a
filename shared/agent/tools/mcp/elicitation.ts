import type { ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/client'
import type { JsonObject } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import type { AskPerson, Question } from '../port.ts'

const MAX_MESSAGE_CHARS = 2_000
const MAX_FORM_CHARS = 32_768
const MAX_URL_CHARS = 2_048

/** The calls of one connection, and the questions that their server asks a person meanwhile (D40.4). */
export class Questions {
  readonly #server: string
  readonly #onProblem: (problem: string) => void
  readonly #calls = new Set<AskPerson>()

  constructor(server: string, onProblem: (problem: string) => void) {
    this.#server = server
    this.#onProblem = onProblem
  }

  /** Runs the work of a call; until it ends, the call's person can be asked. */
  async during<T>(ask: AskPerson, work: () => Promise<T>): Promise<T> {
    this.#calls.add(ask)
    try {
      return await work()
    } finally {
      this.#calls.delete(ask)
    }
  }

  /** Asks the person of the call that runs. The protocol does not say to which call a question belongs, so nobody is asked when several calls run. */
  async answer(params: ElicitRequestParams): Promise<ElicitResult> {
    const [ask, ...others] = this.#calls
    const question = this.#questionOf(params)
    if (!ask || !question) return { action: 'cancel' }
    if (others.length === 0) return (await ask(question)) as ElicitResult
    this.#onProblem(
      `The MCP server ${this.#server} asked a question while several calls ran, so that nobody could be asked: give it the scope session.`,
    )
    return { action: 'cancel' }
  }

  /** `undefined` for a question that must not be shown to a person. */
  #questionOf(params: ElicitRequestParams): Question | undefined {
    const message = `The MCP server ${this.#server} asks: ${truncate(params.message, MAX_MESSAGE_CHARS)}`
    if (params.mode === 'url') {
      const isShown = params.url.length <= MAX_URL_CHARS && /^https?:$/.test(URL.parse(params.url)?.protocol ?? '')
      return isShown ? { message, url: params.url } : undefined
    }
    const form = params.requestedSchema as JsonObject
    return JSON.stringify(form).length <= MAX_FORM_CHARS ? { message, form } : undefined
  }
}
