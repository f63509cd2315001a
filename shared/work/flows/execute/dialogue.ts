import { Conversation } from '../../../agent/engine/conversation.ts'
import type { Models, Tools } from '../../../agent/engine/resources.ts'
import { runUnattended } from '../../../agent/engine/unattended-run.ts'
import type { ModelRoute, PriceOf, StructuredOutput, WindowOf } from '../../../agent/providers/port.ts'
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
    const { maxTurns, log, signal } = this.#deps
    const { name, system, tools } = this.#speaker
    const task = { prompt, conversation: this.#conversation, systemPrompt: system, maxTurns, output }
    const reader = new TurnReader({ agent: name, problems }, log)
    const end = await runUnattended(task, { models: this.#models(), tools, signal }, (event) => reader.read(event))
    return 'failure' in end ? { failure: end.failure, turns: reader.turns } : { text: end.answer.texts.join('') }
  }

  #models(): Models {
    const { priceOf, windowOf } = this.#deps
    const route = { primary: this.#model, fallback: undefined }
    return { main: () => route, subAgents: () => route, summaries: () => route, priceOf, windowOf }
  }
}

type Question = { prompt: string; output: StructuredOutput | undefined }

/** Only a rejected first request may be due to the form: later ones have been accepted with it. */
const mayBeOfForm = (reply: Reply): boolean =>
  'failure' in reply &&
  reply.turns === 0 &&
  reply.failure.code === 'provider_rejected' &&
  reply.failure.detail.startsWith('http_4')

type Try = { agent: string; problems: readonly OutputProblem[] }

/** Reads the events of one run of the engine: reports its turns and warnings. */
class TurnReader {
  readonly #try: Try
  readonly #log: FlowLog
  readonly #cost = new RunCost()
  #model = ''
  turns = 0

  constructor(attempt: Try, log: FlowLog) {
    this.#try = attempt
    this.#log = log
  }

  async read(event: AgentEvent): Promise<void> {
    const spent = this.#cost.of(event)
    if (spent) this.#log.spend(spent)
    if (event.type === 'turn_start') this.#model = event.model
    if (event.type === 'warning') await this.#log.warn(this.#try.agent, event)
    if (event.type !== 'turn_end') return
    this.turns++
    await this.#log.turnEnded({ ...this.#try, model: this.#model }, event)
  }
}
