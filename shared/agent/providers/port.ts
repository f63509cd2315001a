import type { Batched } from '../../kernel/async/batch.ts'
import type { AttachedFile, Attachment } from '../../kernel/attachment.ts'
import type { Artifact, JsonObject, RunErrorCode, WarningEvent } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ModelPrice } from '../../platform/config/json-values.ts'
import type { ToldLimits } from './told-limits.ts'

/** Data that a provider attached to a block and requires back unchanged, such as the signature of its thinking, by namespace. */
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
  /** The files that the call has delivered. No provider reads them: `output` names each. */
  artifacts?: readonly Artifact[]
}

/**
 * The place of a message in its session. `seq` rises through the history; `runId` is `null` for a message that no run has added. `at` is an
 * ISO 8601 timestamp. `parent` is the id of the message before, and `null` where a branch begins.
 */
export type MessageStamp = { seq: number; runId: string | null; at: string; id: string; parent: string | null }

/** One entry of a conversation's history. The messages of sessions have a stamp, and `client`, the id that a client has given it. No provider reads either. */
export type Message = {
  stamp?: MessageStamp
  client?: string
} /** `files` are what the history keeps of attached files; a provider gets `attachments` in their place. */ & (
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
  /** The answer's text is to be JSON of this schema, by the provider's own feature for it. */
  output?: StructuredOutput | undefined
  choices?: ModelChoices | undefined
  /** Left out: nobody waits for the answer at once, and no customer is known. */
  caller?: Caller | undefined
  /** Called with the limits of the account that the headers of an answer name. */
  onTold?: ((told: ToldLimits) => void) | undefined
  /** Called when the call has had its turn and its request is sent. Providers whose calls have no turns never call it. */
  onSent?: (() => void) | undefined
  /** Another model takes over: the call waits no longer than this for its turn. */
  maxWaitMs?: number | undefined
  /** A call of a cheaper tier had no answer: this one goes in the normal tier. */
  isUrgent?: boolean | undefined
}

/** In the order in which calls have their turns at a provider (D52). */
export const PRIORITIES = ['interactive', 'normal', 'batch'] as const
export type Priority = (typeof PRIORITIES)[number]

/** For whom a model is called; `normal` unless it says. With a deadline, in milliseconds since 1970, its calls wait for their turns until then (D54.7). */
export type Caller = {
  priority?: Priority | undefined
  customer?: string | undefined
  deadlineMs?: number | undefined
  unhurried?: Unhurried | undefined
}

/** A run whose calls may wait for a vendor's batches (D58.6): until `untilMs` they are sent there, and from `liveMs` on none waits. `asked`: its calls that have. */
export type Unhurried = {
  tenant: TenantId
  runId: string
  untilMs: number
  liveMs: number
  expiresMs: number
  asked: Set<string>
}

/** What one run has chosen for its model calls (D42). What a model does not take is left out. `toolChoice` names a tool, or requires any or none. */
export type ModelChoices = {
  temperature?: number | undefined
  effort?: 'low' | 'medium' | 'high' | undefined
  maxOutputTokens?: number | undefined
  toolChoice?: 'none' | 'required' | { name: string } | undefined
}

/** `name` consists of letters, digits, `_` and `-`. */
export type StructuredOutput = { name: string; schema: JsonObject }

/** Token counts of one turn. `input` is the whole input, the cached parts included. */
export type Usage = {
  input: number
  cacheRead: number
  cacheWrite: number
  output: number
  /** What it costs, as a part of the price. */
  priceFactor?: number
}

/** What a provider has counted of a turn. A count that it has left out is missing. */
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
  /** The same request may be sent again (D5.5). */
  isRetryable: boolean
  /** The fallback may be called. True for retryable failures, and for accounts out of credit (402). */
  isFailover: boolean
  retryAfterMs?: number
  /** The context window, which a `context_too_long` may name. */
  windowTokens?: number
  /** The limits of the account that a refusal for the rate of requests names. */
  told?: ToldLimits
}

/**
 * One part of a model's answer. A block of text or thinking is its deltas, then its end. The last part is always `finish` or
 * `failure`. The iteration throws only for a bug.
 */
export type ModelPart =
  | { type: 'text_delta'; text: string }
  | { type: 'text_end' }
  | { type: 'thinking_delta'; text: string }
  | { type: 'thinking_end'; meta?: ProviderMeta }
  /** `input` is the JSON text as the model wrote it; it may be malformed. */
  | { type: 'tool_call'; id: string; toolName: string; input: string; meta?: ProviderMeta }
  /** `usage` is missing when the provider has counted nothing. */
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
  /** Name of the tenant's instance; `undefined`: it is the server's own. */
  readonly instance?: string | undefined
  /** What may be sent to each model of the instance, as its tenant has configured. */
  readonly caps?: InstanceLimits | undefined
  /** The configured context window in tokens; `undefined`: the catalogue's counts. */
  readonly contextWindow?: number | undefined
  /** At most this many tokens come back of a call; `undefined`: the model's own limit counts. */
  readonly maxOutputTokens?: number | undefined
  /** Configured prices by model, which replace every other. */
  readonly prices?: ReadonlyMap<string, ModelPrice> | undefined
  /** Asks the server for a model's window in tokens; missing where servers do not tell. Never rejects. */
  askWindow?(model: string, signal: AbortSignal): Promise<number | undefined>
  /** Asks the server what a model can do, in its words such as `tools` and `vision`; missing where servers do not tell. Never rejects. */
  askCapabilities?(model: string, signal: AbortSignal): Promise<readonly string[] | undefined>
  /** Whether the model takes tools, as far as is known: one that has refused them gets none. Missing: it does. */
  takesTools?(model: string): boolean
  /** Whether the model takes files of this type in a message, as far as is known. Missing: it does. */
  takesFile?(model: string, mediaType: string): boolean
  /** Whether its next call has its answer already, so that nobody is called. Missing: it has not. */
  isAnswered?(): boolean
  /** What all processes know of a model of the instance. Missing: each process knows what its own calls tell. */
  stateOf?: ((model: string) => ModelState | undefined) | undefined
  /**
   * Has the call of a run without haste answered by a batch of the vendor, and returns the provider to stream it from, after a warning where it waits; `undefined`: it is called as always.
   * Missing: its vendor has no batches.
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
  /** It has failed of late: calls that have another model pass it over. */
  rests(now: number): boolean
  /** As `rests`. After a rest it returns `false` to one call, which finds out whether the model answers again. */
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
  /** Reads from the connection only when a chunk is requested, so that a slow reader slows the sender down. */
  body: AsyncIterable<Uint8Array>
}

/** What a call may need of a model (D56). */
export type Ability = 'tools' | 'images' | 'schema'

/** A model, the provider that serves it, and for whom it is called. `lacks`: what a probe has found that it cannot do. */
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
