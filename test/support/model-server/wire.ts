import type { ToolCall } from './acts.ts'
import type { Failure, Finish, Usage } from './script.ts'

export type Json = { [key: string]: unknown }

export type Format = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google'

/** One request, as far as its answer depends on it. */
export type Call = {
  /** Random hexadecimal digits: every id of the answer is made of them. */
  id: string
  model: string
  createdSecs: number
  body: Json
  usage: Usage
  /** What the model does first, which some openings depend on. */
  opensWith: 'text' | 'thinking' | 'tool'
}

export type Ending = { finish: Finish; stopSequence: string | undefined; usage: Usage }

export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'thinking'; text: string }
  | { kind: 'tool'; call: ToolCall }

/**
 * Turns what the model does into the bytes of one answer. It knows which block is open, so its methods are called in
 * the order of the stream. What `tool` returns is one write each.
 */
export interface Encoder {
  open(): string
  text(piece: string): string
  thinking(piece: string): string
  tool(call: ToolCall): string[]
  error(failure: Failure): string
  close(ending: Ending): string
}

/** One provider's wire format. */
export type Wire = {
  format: Format
  requestIdHeader: string
  /** A streamed answer. */
  stream(call: Call): Encoder
  /** The body of an answer that is not streamed. */
  whole(call: Call, blocks: Block[], ending: Ending): unknown
  /** The body of an HTTP error. */
  errorBody(failure: Failure, id: string, retryAfter?: number | string): unknown
  contextTooLong: Failure
  /** The provider opens the stream before it looks at the request: its errors come in the stream, after the opening. */
  opensBeforeFailing: boolean
}

/** One server-sent event. */
export const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** The encoder of an answer that is not streamed: it says nothing before its end. */
export function wholeEncoder(wire: Wire, call: Call): Encoder {
  const blocks: Block[] = []
  const add = (kind: 'text' | 'thinking', piece: string) => {
    const last = blocks.at(-1)
    if (last?.kind === kind) last.text += piece
    else blocks.push({ kind, text: piece })
    return ''
  }
  return {
    open: () => '',
    text: (piece) => add('text', piece),
    thinking: (piece) => add('thinking', piece),
    tool: (toolCall) => {
      blocks.push({ kind: 'tool', call: toolCall })
      return []
    },
    error: (failure) => JSON.stringify(wire.errorBody(failure, call.id)),
    close: (ending) => JSON.stringify(wire.whole(call, blocks, ending)),
  }
}

/** The input of a call as JSON; no input is an empty one, and what is malformed stays the text it is. */
export function inputOf({ pieces }: ToolCall): unknown {
  const text = pieces.join('') || '{}'
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
