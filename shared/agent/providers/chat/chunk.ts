import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import type { ChatUsage } from './usage.ts'

/** One chunk of a streamed completion: the fields that are used. Servers differ, so every field is checked before use. */
export type Chunk = {
  error?: unknown
  choices: Choice[]
  usage?: ChatUsage | null
  /** OpenAI's name of the tier that served the answer. */
  service_tier?: unknown
}

export type Choice = {
  delta?: Delta | null
  /** In place of `delta` when the completion is not streamed. */
  message?: Delta | null
  finish_reason?: unknown
  /** The stop sequence that ended the answer, under vLLM's name and under SGLang's. */
  stop_reason?: unknown
  matched_stop?: unknown
  /** Where Moonshot counts its tokens. */
  usage?: ChatUsage | null
}

export type Delta = {
  content?: unknown
  refusal?: unknown
  /** Thinking, as DeepSeek, vLLM and others name it. */
  reasoning_content?: unknown
  /** Thinking, as most servers of gpt-oss name it. */
  reasoning?: unknown
  /** Thinking with signatures, as OpenRouter sends it. */
  reasoning_details?: unknown
  tool_calls?: unknown
}

/** Parses a chunk; `undefined` when the text is not one. Most servers leave `choices` out of some chunks. */
export function parseChunk(json: string): Chunk | undefined {
  const chunk = parseJson(json)
  if (!isJsonObject(chunk)) return undefined
  const { choices, error } = chunk
  if (isPresent(choices)) return Array.isArray(choices) ? (chunk as Chunk) : undefined
  return { ...chunk, choices: [], error: error ?? (isError(chunk) ? chunk : undefined) }
}

/** Some servers send an error without the field `error`: older vLLM with `object`, FastAPI with `detail`. */
const isError = ({ object, detail, message, msg }: Record<string, unknown>): boolean =>
  object === 'error' || isPresent(detail) || typeof message === 'string' || typeof msg === 'string'

export const isPresent = (value: unknown) => value !== undefined && value !== null

export const isOptionalText = (value: unknown): value is string | null | undefined =>
  typeof value === 'string' || value === undefined || value === null

export type ContentPiece = { kind: 'text' | 'thinking'; text: string }

/** Reads content in parts, Mistral's form: `[{"type": "thinking", "thinking": [{"type": "text", …}]}, {"type": "text", …}]`. */
export function contentPieces(content: readonly unknown[]): ContentPiece[] {
  return content.flatMap((part): ContentPiece[] => {
    const { type, text, thinking } = Object(part) as { type?: unknown; text?: unknown; thinking?: unknown }
    if (type === 'text' && typeof text === 'string') return [{ kind: 'text', text }]
    if (type !== 'thinking' || !Array.isArray(thinking)) return []
    return contentPieces(thinking).map((piece) => ({ kind: 'thinking', text: piece.text }))
  })
}
