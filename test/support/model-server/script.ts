/** The number of pieces of a text, and the time between two of them (default: as fast as the client reads). */
type Pace = { chunks?: number; everyMs?: number }

/**
 * One step of an answer. Adjacent texts continue one block, also with pauses between them; so does adjacent thinking. A list of
 * texts is sent as these pieces, a single text word by word.
 */
export type Step =
  | ({ text: string | string[] } & Pace)
  | ({ thinking: string | string[] } & Pace)
  /** Numbered one-token texts, `1 2 3 …`. The first is sent at once. */
  | { tokens: number; everyMs?: number }
  /** Calls a tool. A string is sent as the JSON text of the input, even when it is malformed. */
  | { tool: string; input?: unknown; id?: string; chunks?: number }
  | { wait: number }
  | { hold: Promise<unknown> }
  /** Ends the answer with the provider's error as an event of the stream; as its first event when no step is before it. */
  | { error: Failure }
  /** Sends these bytes unchanged: a broken chunk, a comment, an endless text line. */
  | { raw: string }
  /** Resets the connection after everything before it was handed to the network. */
  | { reset: true }
  /** Ends the HTTP response regularly, without the model's last event. */
  | { truncate: true }
  /** Sends nothing more and leaves the response open. */
  | { hang: true }

export type Finish = 'stop' | 'tool_calls' | 'length' | 'content_filter'

/**
 * The token counts of an answer. `input` includes the two cache counts, `output` includes `reasoning`; each format derives its
 * own fields from them.
 */
export type Usage = { input: number; output: number; cacheRead: number; cacheWrite: number; reasoning: number }

/** A provider's error. Default message and code: those of the format's provider for the status. */
export type Failure = { status: number; message?: string; code?: string }

export type ScriptedAnswer = {
  steps: Step[]
  /** Default: `tool_calls` when a tool is called, else `stop`. */
  finish?: Finish
  /** The finish reason on the wire, instead of the format's own name for `finish`. */
  rawFinish?: string
  /** Default: a quarter of the request's length as input, the number of pieces as output, nothing cached. */
  usage?: Partial<Usage>
  /** Ends the answer where one of the request's stop sequences begins, as providers do. */
  honourStop?: boolean
  /** Sends the finish reason, but not the last event, and leaves the response open, with comments, or resets it. */
  afterFinish?: 'silence' | 'comments' | 'reset'
  /** The stop sequence that Anthropic's format reports. Nothing is cut. */
  stopSequence?: string
}

/** An HTTP error. Default body: the format's error for the status. A string body is sent unchanged. */
export type StatusAnswer = Failure & { body?: unknown; headers?: Record<string, string>; retryAfter?: number | string }

export type Refusal = StatusAnswer | { resetBeforeHeaders: true } | { hangBeforeHeaders: true }

/** The answer to one request. A string is short for one text, a list for its steps. */
export type Answer = string | Step[] | ScriptedAnswer | { contextTooLong: true } | Refusal
