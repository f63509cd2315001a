import { Conversation } from '../../../agent/engine/conversation.ts'
import type { Models, RunResources, Tools } from '../../../agent/engine/resources.ts'
import { run } from '../../../agent/engine/run.ts'
import type { ModelRoute, PriceOf, StructuredOutput, WindowOf } from '../../../agent/providers/port.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { AgentEvent, ErrorEvent, OutputProblem } from '../../../kernel/events.ts'
import type { FlowRoute } from '../port.ts'
import { type FlowLog, RunCost } from './flow-log.ts'
import type { StructuredOutputs } from './structured.ts'

/** An agent as one model sees it. */
export type Speaker = {
  /** In the events: `main` or the name of a sub-agent. */
  name: string
  system: string
  form: StructuredOutput
  tools: Tools
}

/** The parts of an execution that every agent uses. */
export type DialogueDeps = {
  log: FlowLog
  structured: StructuredOutputs
  signal: AbortSignal
  priceOf: PriceOf
  windowOf: WindowOf
  maxTurns: number
}

/** `text` is that of the last turn. `turns` counts the complete turns before the failure. */
export type Reply = { text: string } | { failure: Failed; turns: number }
export type Failed = Pick<ErrorEvent, 'code' | 'error' | 'detail'>

/** The conversation of one agent with one model, over all its tries. */
export class Dialogue {
  readonly #speaker: Speaker
  readonly #route: FlowRoute
  readonly #model: ModelRoute
  readonly #deps: DialogueDeps
  #conversation = new Conversation()

  constructor(speaker: Speaker, { route, model }: { route: FlowRoute; model: ModelRoute }, deps: DialogueDeps) {
    this.#speaker = speaker
    this.#route = route
    this.#model = model
    this.#deps = deps
  }

  /** Sends a message and runs the agent to its answer; `problems` are those that the message asks to correct. A provider that rejects the form of the answer is asked without it. */
  async ask(prompt: string, problems: readonly OutputProblem[]): Promise<Reply> {
    const { structured } = this.#deps
    const { messages, messageCount } = this.#conversation
    const form = await structured.formFor(this.#route, this.#speaker.form)
    const reply = await this.#run({ prompt, output: form }, problems)
    if (!form || !mayBeOfForm(reply)) return reply
    structured.refuse(this.#route)
    this.#conversation = new Conversation({ messages, messageCount })
    return this.#run({ prompt, output: undefined }, problems)
  }

  async #run({ prompt, output }: Question, problems: readonly OutputProblem[]): Promise<Reply> {
    const { maxTurns } = this.#deps
    const reader = new ReplyReader({ agent: this.#speaker.name, problems }, this.#deps.log)
    const input = {
      prompt,
      conversation: this.#conversation,
      systemPrompt: this.#speaker.system,
      background: undefined,
      maxTurns,
      stopSequences: [],
      warnings: [],
      output,
    }
    for await (const event of run(input, this.#resources())) await reader.read(event)
    return reader.reply
  }

  #resources(): RunResources {
    const { signal, priceOf, windowOf } = this.#deps
    const route = { primary: this.#model, fallback: undefined }
    const models: Models = { main: () => route, subAgents: () => route, summaries: () => route, priceOf, windowOf }
    return { models, tools: this.#speaker.tools, permissions: { openAsk: refuseAsk }, signal }
  }
}

type Question = { prompt: string; output: StructuredOutput | undefined }

const refuseAsk = () => Promise.reject(new AppError('permission', 'nobody can be asked in a queued run'))

/** Only a rejected first request may be due to the form: later ones have been accepted with it. */
const mayBeOfForm = (reply: Reply): boolean =>
  'failure' in reply &&
  reply.turns === 0 &&
  reply.failure.code === 'provider_rejected' &&
  reply.failure.detail.startsWith('http_4')

type Try = { agent: string; problems: readonly OutputProblem[] }

/** Reads the events of one run of the engine: reports its turns and warnings, and keeps the text of its last turn. */
class ReplyReader {
  readonly #try: Try
  readonly #log: FlowLog
  readonly #cost = new RunCost()
  #texts: string[] = []
  #model = ''
  #turns = 0
  #failure: Failed | undefined

  constructor(attempt: Try, log: FlowLog) {
    this.#try = attempt
    this.#log = log
  }

  get reply(): Reply {
    return this.#failure ? { failure: this.#failure, turns: this.#turns } : { text: this.#texts.join('') }
  }

  async read(event: AgentEvent): Promise<void> {
    const spent = this.#cost.of(event)
    if (spent) this.#log.spend(spent)
    if (event.type === 'turn_start') {
      this.#model = event.model
      this.#texts = []
    }
    if (event.type === 'text') this.#texts.push(event.text)
    if (event.type === 'error') this.#failure = event
    if (event.type === 'warning') await this.#log.warn(this.#try.agent, event)
    if (event.type !== 'turn_end') return
    this.#turns++
    await this.#log.turnEnded({ ...this.#try, model: this.#model }, event)
  }
}
