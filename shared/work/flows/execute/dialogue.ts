import type { Models, Tools } from '../../../agent/engine/resources.ts'
import { runUnattended } from '../../../agent/engine/unattended-run.ts'
import type { ModelRoute, PriceOf, StructuredOutput, WindowOf } from '../../../agent/providers/port.ts'
import type { ReadFile } from '../../../agent/providers/shown-files.ts'
import type { AttachedFile } from '../../../kernel/attachment.ts'
import type { AgentEvent, ErrorEvent, OutputProblem } from '../../../kernel/events.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { FlowRoute } from '../port.ts'
import { type FlowLog, RunCost } from './flow-log.ts'
import type { StructuredOutputs } from './structured.ts'

/** An agent as one model sees it. */
export type Speaker = {
  /** In the events: `main` or the name of a sub-agent. */
  name: string
  system: string
  prompt: string
  form: StructuredOutput
  tools: Tools
}

/** The parts of an execution that every agent uses. */
export type DialogueDeps = {
  log: FlowLog
  structured: StructuredOutputs
  checker: Pick<SchemaChecker, 'check'>
  signal: AbortSignal
  priceOf: PriceOf
  windowOf: WindowOf
  maxTurns: number
  /** Those of the input, which every agent reads. */
  files?: readonly AttachedFile[] | undefined
  readFile?: ReadFile | undefined
}

/** `text` is that of the last turn. */
export type Ending =
  | { kind: 'ok'; output: unknown; text: string }
  | { kind: 'invalid'; text: string; problems: readonly OutputProblem[] }
  | Failed
export type Failed = Pick<ErrorEvent, 'code' | 'error' | 'detail' | 'retry_after_secs'>

/** Runs an agent with one model to its checked output, over all its tries. */
export async function converse(
  { name, system, prompt, form, tools }: Speaker,
  { route, model }: { route: FlowRoute; model: ModelRoute },
  deps: DialogueDeps,
): Promise<Ending> {
  const { checker, structured, maxTurns, signal, log, files, readFile } = deps
  const output = { ...form, checker, native: structured.of(route) }
  const reader = new TurnReader(name, log)
  const end = await runUnattended(
    { prompt, files, systemPrompt: system, maxTurns, output },
    { models: modelsOf(model, deps), tools, signal, readFile },
    (event) => reader.read(event),
  )
  const text = end.answer.texts.join('')
  if (!('failure' in end)) return { kind: 'ok', output: end.output, text }
  const { code, problems = [] } = end.failure
  return code === 'invalid_output' ? { kind: 'invalid', text, problems } : end.failure
}

function modelsOf(model: ModelRoute, { priceOf, windowOf }: DialogueDeps): Models {
  const route = { primary: model, fallback: undefined }
  return { main: () => route, subAgents: () => route, summaries: () => route, priceOf, windowOf }
}

/** Reads the events of one run of the engine: reports its turns and warnings. */
class TurnReader {
  readonly #agent: string
  readonly #log: FlowLog
  readonly #cost = new RunCost()
  #model = ''
  /** Those that the agent was asked to correct last. */
  #problems: readonly OutputProblem[] = []

  constructor(agent: string, log: FlowLog) {
    this.#agent = agent
    this.#log = log
  }

  async read(event: AgentEvent): Promise<void> {
    const spent = this.#cost.of(event)
    if (spent) this.#log.spend(spent)
    if (event.type === 'artifact') this.#log.deliver(event)
    if (event.type === 'turn_start') this.#model = event.model
    if (event.type === 'turn_end')
      await this.#log.turnEnded({ agent: this.#agent, problems: this.#problems, model: this.#model }, event)
    if (event.type !== 'warning') return
    if (event.code === 'output_invalid') this.#problems = event.detail['problems'] as OutputProblem[]
    else await this.#log.warn(this.#agent, event)
  }
}
