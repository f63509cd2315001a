import type { Attachment } from '../../kernel/attachment.ts'
import type { Artifact, JsonObject, PermissionPreview, PlanQueuedEvent } from '../../kernel/events.ts'
import type { Plan } from '../../kernel/plan-step.ts'
import type { TenantId } from '../../kernel/tenant.ts'

export type { Plan, PlanStep } from '../../kernel/plan-step.ts'

/** The effect of a tool call: the call runs, the client is asked for permission first, the client executes it (D45), or it is refused (D5.1). */
export type Policy = 'allow' | 'ask' | 'client' | 'deny'

/** Whether a call with an input that a person has written may run here: nobody is asked again. */
export const mayRunEdited = (policy: Policy): boolean => policy === 'allow' || policy === 'ask'

/** The result of a call, as the model reads it. A failure is a result too: its text says what to do next. */
export type ToolOutcome = {
  output: string
  isError: boolean
  /** Images and PDFs for models that accept them. `output` names each (`attachmentLine`). */
  attachments?: readonly Attachment[]
  /** Files that the call has delivered to the user. `output` names each. */
  artifacts?: readonly Artifact[]
  /** Ends the run with this event after the results of the turn have been sent. */
  ending?: PlanQueuedEvent
}

/** The task of a sub-agent, which begins with an empty history. */
export type AgentTask = {
  description: string
  prompt: string
  system?: string
  /** The tools it may use. Without this field: all tools of its caller that a sub-agent may have. */
  tools?: readonly string[]
}

export type AgentReport = { status: 'completed' | 'failed' | 'cancelled'; result: string; error?: string }

/** Starts sub-agents of the run that called the tool (D5.3). Their events appear on the run's stream. */
export interface SubAgents {
  /** 0 when the run itself called the tool, 1 or 2 when a sub-agent did. */
  readonly depth: number
  /** The reason, in words for the model, why these tasks may not start now; `undefined` when they may. */
  refusal(tasks: readonly AgentTask[]): string | undefined
  run(task: AgentTask): Promise<AgentReport>
}

/** The history that Dream reads and the place where it stores entries (D5.3); both belong to a session or a customer. */
export interface MemorySource {
  history(): Promise<string>
  keep(entries: readonly string[]): Promise<void>
}

/** Queues an approved plan. The note says why it was not queued (api.md "plan_queued"). */
export type QueuePlan = (plan: Plan) => Promise<{ plan_id: string } | { note: string }>

/** Services of a run that only some tools need. */
export type ToolServices = {
  /** `undefined` when the run belongs to no session and no customer. */
  memory?: MemorySource | undefined
  /** When present, an approved plan is queued and the run ends (`auto_queue_plan`). */
  queuePlan?: QueuePlan
}

/** The owner of tool calls: `scope` identifies the session, plan or run, which has its own folder. */
export type ToolOwner = { tenant: TenantId; scope: string }

/** A question for a person: to fill in a form with a flat schema, or to open an address. */
export type Question = { message: string } & ({ form: JsonObject } | { url: string })

/** `cancel`: nobody has answered, or nobody could be asked. */
export type Answer = { action: 'accept'; content?: JsonObject } | { action: 'decline' | 'cancel' }

export type AskPerson = (question: Question) => Promise<Answer>

export type ToolContext = ToolServices & {
  /** Asks the person who also decides about permissions. A call ends only after its questions. */
  ask: AskPerson
  owner: ToolOwner
  /** Absolute path of the run's folder. It may not exist yet; a tool that writes creates it. */
  workspace: string
  /** Aborted when the run ends early. The tool then stops its work, including child processes and connections. */
  signal: AbortSignal
  /**
   * Throws `unavailable` when this process may not act for the run at this moment. Call it in the same event-loop turn as each effect
   * outside of this process: time may have passed since the call began, and another process may have taken over the run. A call that
   * is refused before its first effect is run again once the process may act.
   */
  assertMayAct: () => void
  /** Reports progress to the client: from 0 to 1 if the total is known, else a count of the things that `detail` names. */
  report: (progress: number, detail: string) => void
  /** The policy of another call, for things that this call reaches beyond its input: the target of a link or redirect, or a file that it finds. */
  policyOf: ToolBox['policyOf']
  agents: SubAgents
}

export type PreviewContext = Pick<ToolContext, 'workspace' | 'policyOf'>

/** The subject of a call, for rules such as `Write(docs/*)`; `rule` is the text between the rule's brackets. */
export type RuleSubject = {
  /** Whether the rule names the call, and the call does nothing else. */
  isOnly(rule: string): boolean
  /** Whether the rule names the call, or one of the things that it does. `undefined`: uncertain. */
  includes(rule: string): boolean | undefined
}

export type ToolHints = {
  read_only?: boolean
  destructive?: boolean
  idempotent?: boolean
  open_world?: boolean
}

export interface Tool {
  readonly name: string
  readonly description: string
  /** The MCP server that offers it. */
  readonly server?: string
  /** Its name for people. */
  readonly title?: string
  /** The hints of its MCP server, which may be wrong. */
  readonly hints?: ToolHints
  /** JSON Schema (draft 2020-12) of the input. The engine validates the input before it calls `run`. */
  readonly inputSchema: JsonObject
  readonly defaultPolicy: Policy
  /** Each call needs the client's permission, even under the policy `allow`. */
  readonly alwaysAsks?: boolean
  /** Whether it reads or writes the run's folder. */
  readonly usesFiles?: boolean
  /** A call changes nothing: neither files nor anything outside. Other tools are refused in plan mode. */
  readonly isReadOnly?: boolean
  /** An interrupted call may be repeated: a second call changes nothing more than the first. */
  readonly isIdempotent?: boolean
  /** Permission to call it ends plan mode. */
  readonly endsPlanMode?: boolean
  ruleSubject?(input: JsonObject): RuleSubject
  /** Returns the text of the permission request: what the call would do. */
  describe(input: JsonObject): string
  /** Shows what the call would do; `undefined` where that cannot be shown. It changes nothing. */
  preview?(input: JsonObject, context: PreviewContext): Promise<PermissionPreview | undefined>
  /** Says what is wrong with an input that fits the schema. The model gets this text before the client is asked for permission. */
  problemWith?(input: JsonObject): string | undefined
  /** Returns every failure that the model or the environment caused as an outcome. Throws only for a bug. */
  run(input: JsonObject, context: ToolContext): Promise<ToolOutcome>
}

export const succeed = (output: string): ToolOutcome => ({ output, isError: false })
export const fail = (output: string): ToolOutcome => ({ output, isError: true })

/** The tools of a process, with their policies and input checks. */
export interface ToolBox {
  /** In the order in which the model sees them. */
  readonly tools: readonly Tool[]
  find(name: string): Tool | undefined
  /** `isEdited`: a person has written the input and is not asked again, so a call that a rule may deny is denied. */
  policyOf(name: string, input: JsonObject, isEdited?: boolean): Policy
  /** Says, in words for the model, what is wrong with an input; `undefined` when it is valid. */
  problemWith(name: string, input: JsonObject): Promise<string | undefined>
  /** Says what is wrong with the answer to a form that a tool has asked for. */
  formProblem?(form: JsonObject, content: JsonObject): Promise<string | undefined>
  /** Resolves when the tools of servers that started with the process are listed, or no longer awaited. Never rejects. */
  readonly ready?: Promise<void> | undefined
  /** The MCP servers; their tools are added once they are listed. */
  servers?(): readonly { name: string; state: ServerState; instructions?: string | undefined }[]
  /** Ends the processes that tools keep for a session, plan or run that has ended or continues in another process. */
  release?(owner: ToolOwner): void
}

/** `unavailable`: the server could not be reached for its latest list of tools, and is tried again. */
export type ServerState = 'starting' | 'ready' | 'unavailable'
