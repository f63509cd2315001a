import type { JsonObject, PlanQueuedEvent } from '../events.ts'

/** What happens when the model calls a tool: it runs, the client is asked first, or it is refused (D5.1). */
export type Policy = 'allow' | 'ask' | 'deny'

/** What the model reads of a call. A failure is a value like any other: `isError`, with a text that says what to do next. */
export type ToolOutcome = {
  output: string
  isError: boolean
  /** Ends the run with this event once the turn's results are told. */
  ending?: PlanQueuedEvent
}

/** What a sub-agent is to do, with a history of its own. */
export type AgentTask = {
  description: string
  prompt: string
  system?: string
  /** The tools it is offered; absent: all that its caller has and a sub-agent may have. */
  tools?: readonly string[]
}

export type AgentReport = { status: 'completed' | 'failed' | 'cancelled'; result: string; error?: string }

/** Sub-agents of the run that a tool was called in (D5.3). Their events reach the run's stream by themselves. */
export interface SubAgents {
  /** 0: the caller is the run itself; 1 and 2: it is a sub-agent. */
  readonly depth: number
  /** Why these may not start now, in words for the model. */
  refusal(tasks: readonly AgentTask[]): string | undefined
  run(task: AgentTask): Promise<AgentReport>
}

/** The history that Dream distils, and where its entries go (D5.3): a session's, or a customer's. */
export interface MemorySource {
  history(): Promise<string>
  keep(entries: readonly string[]): Promise<void>
}

/** One step of a plan (D5.4). */
export type PlanStep = {
  id: string
  prompt: string
  title?: string
  depends_on?: string[]
  writes?: string[]
  idempotent?: boolean
}

export type Plan = { title?: string; steps: PlanStep[]; parallel?: boolean }

/** Hands an approved plan to the queue, or says in a note why not (api.md `plan_queued`). */
export type QueuePlan = (plan: Plan) => Promise<{ plan_id: string } | { note: string }>

/** What a run has for its tools besides its workspace; who starts it decides. */
export type ToolServices = {
  /** Absent: there is nothing to dream of. */
  recall?: MemorySource
  /** Present: an approved plan is queued and ends the run (`auto_queue_plan`). */
  queuePlan?: QueuePlan
}

export type ToolContext = ToolServices & {
  /** Absolute path of the run's own folder. It may not exist yet: whoever writes makes it. */
  workspace: string
  /** Aborted when the run ends early; the tool then stops what it does, child processes and connections included. */
  signal: AbortSignal
  /** Tells the client how far the call is: `progress` from 0 to 1 where the whole is known, else a count of what `detail` names. */
  report: (progress: number, detail: string) => void
  agents: SubAgents
}

export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema (draft 2020-12) of the input; the engine validates against it before `run` is called. */
  readonly inputSchema: JsonObject
  readonly defaultPolicy: Policy
  /** Its calls need the client's word even where the policy is `allow`. */
  readonly alwaysAsks?: boolean
  /** The sentence of the permission request: what would happen. */
  describe(input: JsonObject): string
  /** What is wrong with an input that fits the schema, told to the model before anybody is asked. */
  problemWith?(input: JsonObject): string | undefined
  /** Never throws for anything the model or the world did wrong; a throw is a bug of the tool. */
  run(input: JsonObject, context: ToolContext): Promise<ToolOutcome>
}

export const succeed = (output: string): ToolOutcome => ({ output, isError: false })
export const fail = (output: string): ToolOutcome => ({ output, isError: true })

/** The tools of a process: what the model may call, under which policy, with which input. */
export interface ToolBox {
  /** In the order in which they are offered to the model. */
  readonly tools: readonly Tool[]
  find(name: string): Tool | undefined
  policyOf(name: string): Policy
  /** What is wrong with an input, in words the model can act on; `undefined` when it fits the tool's schema. */
  problemWith(name: string, input: JsonObject): string | undefined
}
