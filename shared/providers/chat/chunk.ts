import { parseJson } from '../../json.ts'

/** One chunk of a streamed completion: the fields that are read. Servers differ, so every field is checked before use. */
export type Chunk = {
  error?: unknown
  choices: { delta?: Delta | null; finish_reason?: unknown }[]
  usage?: ChatUsage | null
}

export type Delta = {
  content?: unknown
  refusal?: unknown
  /** Thinking, as DeepSeek, vLLM and others name it. */
  reasoning_content?: unknown
  /** Thinking, as most servers of gpt-oss name it. */
  reasoning?: unknown
  tool_calls?: unknown
}

export type ChatUsage = {
  prompt_tokens?: unknown
  completion_tokens?: unknown
  prompt_tokens_details?: { cached_tokens?: unknown; cache_write_tokens?: unknown } | null
}

/** Parses a chunk; `undefined` when the text is not one. */
export function parseChunk(json: string): Chunk | undefined {
  const chunk = parseJson(json) as Partial<Chunk> | null | undefined
  if (typeof chunk !== 'object' || chunk === null) return undefined
  return Array.isArray(chunk.choices) || isPresent(chunk.error) ? (chunk as Chunk) : undefined
}

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
