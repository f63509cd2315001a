import type { Batched } from '../../kernel/async/batch.ts'
import type { AttachedFile, Attachment } from '../../kernel/attachment.ts'
import type { Artifact, JsonObject, RunErrorCode, WarningEvent } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ModelPrice } from '../../platform/config/json-values.ts'
import type { ToldLimits } from './told-limits.ts'

/** Data that a provider has attached to a block and requires back unchanged, such as the signature of its thinking; by namespace. */
export type ProviderMeta = Record<string, JsonObject>

export type AssistantBlock =
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string; meta?: ProviderMeta }
  | { type: 'tool_use'; id: string; toolName: string; input: JsonObject; meta?: ProviderMeta }

export type ToolResultBlock = {
  id: string
  toolName: string
  output: string
  isError: boolean
  /** `output` names each of them. */
  attachments?: readonly Attachment[]
  /** The files that the call has delivered. Providers do not get them: `output` names each. */
  artifacts?: readonly Artifact[]
}

/**
 * The place of a message in its session. `seq` rises through the history; `runId` is `null` for a message that was not added by a run. `at` is an
 * ISO 8601 timestamp. `parent` is the id of the message before, and `null` where a branch begins.
 */
export type MessageStamp = { seq: number; runId: string | null; at: string; id: string; parent: string | null }

/**
 * One entry of a conversation's history. Messages of sessions have a stamp and `client`, the id that a client has given
 * the message. Providers get neither.
 */
export type Message = {
  stamp?: MessageStamp
  client?: string
} /** The history keeps attached files as `files`; a provider gets `attachments` instead. */ & (
  | { role: 'user'; text: string; files?: readonly AttachedFile[]; attachments?: readonly Attachment[] }
  | { role: 'assistant'; blocks: AssistantBlock[] }
  | { role: 'tool'; results: ToolResultBlock[] }
)

/** A tool as the model sees it. */
export type ToolDefinition = { name: string; description: string; inputSchema: JsonObject }

export type ModelRequest = {
  model: string
  system?: string | undefined
  messages: readonly Message[]
  tools: readonly ToolDefinition[]
  stopSequences: readonly string[]
  /** The answer's text must be JSON that fits this schema, by the provider's own feature for that. */
  output?: StructuredOutput | undefined
  choices?: ModelChoices | undefined
  /** Left out: the call has normal priority and no customer. */
  caller?: Caller | undefined
  /** Called with the account's limits from the headers of an answer. */
  onTold?: ((told: ToldLimits) => void) | undefined
  /** Called when the call has waited for its turn and its request is sent. Providers without a queue never call it. */
  onSent?: (() => void) | undefined
  /** Set when another model can take over: the call waits no longer than this for its turn. */
  maxWaitMs?: number | undefined
  /** The same call had no answer in a cheaper tier, so this one uses the normal tier. */
  isUrgent?: boolean | undefined
}

/** In the order in which calls get their turns at a provider (D52). */
export const PRIORITIES = ['interactive', 'normal', 'batch'] as const
export type Priority = (typeof PRIORITIES)[number]

/**
 * The caller of a model; its priority is `normal` by default. With a deadline, in milliseconds since 1970, its calls
 * wait for their turns until then (D54.7).
 */
export type Caller = {
  priority?: Priority | undefined
  customer?: string | undefined
  deadlineMs?: number | undefined
  unhurried?: Unhurried | undefined
}

/**
 * A run whose calls may wait for a vendor's batches (D58.6): until `untilMs` they are sent there, and from `liveMs` on
 * none waits. `asked`: its calls that have already waited.
 */
export type Unhurried = {
  tenant: TenantId
  runId: string
  untilMs: number
  liveMs: number
  expiresMs: number
  asked: Set<string>
}

/**
 * The options of one run for its model calls (D42). An option that a model does not accept is left out. `toolChoice`
 * names a tool, requires any, or forbids all.
 */
export type ModelChoices = {
  temperature?: number | undefined
  effort?: 'low' | 'medium' | 'high' | undefined
  maxOutputTokens?: number | undefined
  toolChoice?: 'none' | 'required' | { name: string } | undefined
}

/** `name` consists of letters, digits, `_` and `-`. */
export type StructuredOutput = { name: string; schema: JsonObject }

/** Token counts of one turn. `input` is the whole input, including the cached parts. */
export type Usage = {
  input: number
  cacheRead: number
  cacheWrite: number
  output: number
  /** The part of the normal price that the turn costs. */
  priceFactor?: number
}

/** The counts that a provider has reported for a turn; a missing one was not reported. */
export type CountedUsage = Partial<Pick<Usage, 'input' | 'output' | 'priceFactor'>> &
  Pick<Usage, 'cacheRead' | 'cacheWrite'>

export type FailureCode = Extract<
  RunErrorCode,
  | 'provider_auth'
  | 'provider_rate_limited'
  | 'provider_unavailable'
  | 'provider_rejected'
  | 'context_too_long'
  | 'content_filtered'
  | 'unsupported_attachment'
  | 'timeout'
  | 'budget_exhausted'
  | 'storage_unavailable'
>

/** Why a model call failed. The message is the adapter's own text: no key, no stack, no internal address (D4.8). */
export type Failure = {
  code: FailureCode
  message: string
  /** A short label for warnings: `http_503`, `connection_reset`, `no_answer`, … */
  reason: string
  /** Whether the same request may be sent again (D5.5). */
  isRetryable: boolean
  /** Whether the fallback may be called. True for retryable failures, and for accounts out of credit (402). */
  isFailover: boolean
  retryAfterMs?: number
  /** The context window, which a `context_too_long` failure may name. */
  windowTokens?: number
  /** The account's limits in a response that refuses the rate of requests. */
  told?: ToldLimits
}

/**
 * One part of a model's answer. A block of text or thinking consists of its deltas and its end. The last part is always `finish` or
 * `failure`. The iteration throws only for a bug.
 */
export type ModelPart =
  | { type: 'text_delta'; text: string }
  | { type: 'text_end' }
  | { type: 'thinking_delta'; text: string }
  | { type: 'thinking_end'; meta?: ProviderMeta }
  /** `input` is the JSON text as the model wrote it; it may be malformed. */
  | { type: 'tool_call'; id: string; toolName: string; input: string; meta?: ProviderMeta }
  /** `usage` is missing when the provider has reported no counts. */
  | {
      type: 'finish'
      reason: 'end_turn' | 'stop_sequence' | 'tool_use' | 'max_tokens'
      usage: CountedUsage | undefined
    }
  | { type: 'failure'; failure: Failure }

/** Calls models over one wire format. Aborting `signal` closes the connection and ends the iteration without a last part. */
export interface ModelProvider {
  /** The configured type (`openai`, `anthropic`, …). It selects the price and appears in warnings. */
  readonly type: string
  /** Name of the tenant's instance; `undefined` for the server's own provider. */
  readonly instance?: string | undefined
  /** The limits of each model of the instance, configured by its tenant. */
  readonly caps?: InstanceLimits | undefined
  /** The configured context window in tokens; `undefined`: the catalogue's window is used. */
  readonly contextWindow?: number | undefined
  /** The most tokens of an answer; `undefined`: the model's own limit applies. */
  readonly maxOutputTokens?: number | undefined
  /** Configured prices by model, which replace every other. */
  readonly prices?: ReadonlyMap<string, ModelPrice> | undefined
  /** Asks the server for a model's window in tokens; missing for servers that do not report it. Never rejects. */
  askWindow?(model: string, signal: AbortSignal): Promise<number | undefined>
  /**
   * Asks the server what a model can do, in its own terms, such as `tools` and `vision`; missing for servers that do
   * not report it. Never rejects.
   */
  askCapabilities?(model: string, signal: AbortSignal): Promise<readonly string[] | undefined>
  /** Whether the model accepts tools: `false` once it has refused them. Missing: it does. */
  takesTools?(model: string): boolean
  /** Whether the model accepts files of this type in a message: `false` once it has refused them. Missing: it does. */
  takesFile?(model: string, mediaType: string): boolean
  /** Whether the next call already has its answer, so that no request is sent. Missing: it has not. */
  isAnswered?(): boolean
  /** The state of a model of the instance that all processes share. Missing: each process knows only the results of its own calls. */
  stateOf?: ((model: string) => ModelState | undefined) | undefined
  /**
   * Lets a batch of the vendor answer the call of a run with a deadline. Yields a warning if the call waits, and returns the provider that streams
   * the answer; `undefined`: the call is sent live. Missing: the vendor has no batches.
   */
  pooled?(
    request: ModelRequest,
    signal: AbortSignal,
  ): AsyncGenerator<WarningEvent, ModelProvider | undefined, undefined>
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<Batched<ModelPart>>
}

/** `waiting`: the calls that wait for their turns at a model. */
export interface ModelState {
  readonly waiting: number
  readonly health: ModelHealth
}

/** Whether a model answers. `now` is in milliseconds of `performance.now()`. */
export interface ModelHealth {
  /** Whether it has failed recently: calls that have another model skip it. */
  rests(now: number): boolean
  /** Like `rests`, but after a rest it returns `false` once: that call tests whether the model answers again. */
  isPassedOver(now: number): boolean | Promise<boolean>
  note(outcome: CallOutcome, now: number): void
}

/** `failed`: after its retries. `late`: another request has answered first (D56.3). */
export type CallOutcome = 'answered' | 'failed' | 'late'

/** `limits` of an instance (D52). */
export type InstanceLimits = { tokens_per_minute?: number; requests_per_minute?: number; concurrent?: number }

/** The proxy for https addresses; `except` lists the hosts that are called directly, comma-separated. */
export type HttpsProxy = { url: string; except?: string | undefined }

/** Sends a request and resolves with the head of the response, whatever its status. Redirects are returned, not followed. */
export type Send = (url: string, request: SendRequest) => Promise<SendResponse>

export type SendRequest = {
  method: 'POST' | 'GET'
  headers: Record<string, string>
  body: string | Uint8Array
  /** Aborting it closes the connection at any point; a pending read or send then rejects. */
  signal: AbortSignal
}

export type SendResponse = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Reads from the connection only when a chunk is requested, so that a slow reader slows down the sender. */
  body: AsyncIterable<Uint8Array>
}

/** The abilities that a call may need from a model (D56). */
export type Ability = 'tools' | 'images' | 'schema'

/** A model, the provider that serves it, and the caller. `lacks`: the abilities that it lacks, as a probe has found. */
export type ModelRoute = {
  provider: ModelProvider
  model: string
  caller?: Caller | undefined
  lacks?: readonly Ability[] | undefined
}

/** The fields that select the price of a model, besides its name. */
export type PricedProvider = Pick<ModelProvider, 'type' | 'prices'>

/** The cost of one turn in US dollars; `undefined` when the price is unknown (D4.10). */
export type PriceOf = (provider: PricedProvider, model: string, usage: Usage) => number | undefined

/** The context window in tokens, by provider type and model; `undefined` when it is unknown. */
export type WindowOf = (type: string, model: string) => number | undefined
