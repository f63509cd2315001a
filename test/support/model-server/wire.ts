import { parseJson } from '../../../shared/kernel/json.ts'
import type { ToolCall } from './acts.ts'
import type { Failure, Finish, Usage } from './script.ts'

export type Json = { [key: string]: unknown }

export type Format = 'openai-chat' | 'openai-responses' | 'anthropic' | 'google' | 'ollama'

/** The properties of a request on which its answer depends. */
export type Call = {
  /** Random hexadecimal digits, from which every id of the answer is built. */
  id: string
  model: string
  createdSecs: number
  body: Json
  usage: Usage
  /** The kind of the first block; in some formats the opening depends on it. */
  opensWith: 'text' | 'thinking' | 'tool'
}

export type Ending = { finish: Finish; rawFinish?: string | undefined; stopSequence: string | undefined; usage: Usage }

export type Block =
  | { kind: 'text'; text: string }
  | { kind: 'thinking'; text: string }
  | { kind: 'tool'; call: ToolCall }

/**
 * Encodes one answer in a wire format. It tracks the open block, so its methods must be called in the order of the stream. Each
 * item that `tool` returns is one write.
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
  /** Creates the encoder of a streamed answer. */
  stream(call: Call): Encoder
  /** Builds the body of an answer that is not streamed. */
  whole(call: Call, blocks: Block[], ending: Ending): unknown
  /** Builds the body of an HTTP error. */
  errorBody(failure: Failure, id: string, retryAfter?: number | string): unknown
  contextTooLong: Failure
  /** The provider opens the stream before it checks the request, so its errors are events after the opening. */
  opensBeforeFailing: boolean
}

/** Encodes one server-sent event. */
export const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** Creates the encoder of an answer that is not streamed: it returns everything at the end. */
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

/** Parses the input of a call. A missing input is an empty object; malformed JSON is returned as text. */
export function inputOf({ pieces }: ToolCall): unknown {
  const text = pieces.join('') || '{}'
  const input = parseJson(text)
  return input === undefined ? text : input
}
