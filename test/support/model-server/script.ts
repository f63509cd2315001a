/** How the pieces of a text go out: in how many, and one each `everyMs` (default: as fast as the reader takes them). */
type Pace = { chunks?: number; everyMs?: number }

/**
 * What the model does, in order, within one answer. Texts that follow one another continue one block, whatever pauses
 * lie between them; so do thoughts. A list of texts is sent as those pieces, a single text word by word.
 */
export type Step =
  | ({ text: string | string[] } & Pace)
  | ({ thinking: string | string[] } & Pace)
  /** Numbered one-token texts, `1 2 3 …`, the first of them at once. */
  | { tokens: number; everyMs?: number }
  /** Calls a tool. A string is sent as it is, as the JSON text of the input: it may be malformed. */
  | { tool: string; input?: unknown; id?: string; chunks?: number }
  | { wait: number }
  | { hold: Promise<unknown> }
  /** Ends the answer with the provider's own error inside the stream: its first event, when no step is before it. */
  | { error: Failure }
  /** Bytes for the stream as they are: a broken chunk, a comment, an endless line. */
  | { raw: string }
  /** Resets the connection, after everything before it has been handed to the network. */
  | { reset: true }
  /** Ends the HTTP response cleanly, without the model's end. */
  | { truncate: true }
  /** Never sends another byte. */
  | { hang: true }

export type Finish = 'stop' | 'tool_calls' | 'length' | 'content_filter'

/**
 * What the answer costs. `input` holds everything that was read, the two cache numbers included, and `output`
 * everything written, `reasoning` included: each format makes its own sums of it.
 */
export type Usage = { input: number; output: number; cacheRead: number; cacheWrite: number; reasoning: number }

/** A provider's error. Without a message or code it is the one this format's provider gives for the status. */
export type Failure = { status: number; message?: string; code?: string }

export type ScriptedAnswer = {
  steps: Step[]
  /** Default: `tool_calls` when a tool is called, else `stop`. */
  finish?: Finish
  /** Default: a quarter of the request's length for the input, the number of pieces for the output, nothing cached. */
  usage?: Partial<Usage>
  /** Cuts the texts where one of the request's stop sequences begins, as providers do, and ends there. */
  honourStop?: boolean
  /** The stop sequence reported, by Anthropic's format alone, without cutting anything. */
  stopSequence?: string
}

/** An answer without a model. Its body is the format's error for the status, or the one given, a string as it is. */
export type StatusAnswer = Failure & { body?: unknown; headers?: Record<string, string>; retryAfter?: number | string }

export type Refusal = StatusAnswer | { resetBeforeHeaders: true } | { hangBeforeHeaders: true }

/** What one request gets. A bare string is that text, a bare list those steps. */
export type Answer = string | Step[] | ScriptedAnswer | { contextTooLong: true } | Refusal
