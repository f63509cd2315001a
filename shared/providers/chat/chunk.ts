/** One chunk of a streamed completion, as far as it is read. Servers differ: no field is what it should be until it was looked at. */
export type Chunk = {
  error?: unknown
  choices: { delta?: Delta | null; finish_reason?: unknown }[]
  usage?: ChatUsage | null
}

export type Delta = {
  content?: unknown
  refusal?: unknown
  /** DeepSeek's, vLLM's and others' name for it; that of those who serve gpt-oss is `reasoning`. */
  reasoning_content?: unknown
  reasoning?: unknown
  tool_calls?: unknown
}

export type ChatUsage = {
  prompt_tokens?: unknown
  completion_tokens?: unknown
  prompt_tokens_details?: { cached_tokens?: unknown; cache_write_tokens?: unknown } | null
}

/** `undefined` for what is no chunk. */
export function parseChunk(json: string): Chunk | undefined {
  try {
    const chunk = JSON.parse(json) as Partial<Chunk> | null
    if (typeof chunk !== 'object' || chunk === null) return undefined
    return Array.isArray(chunk.choices) || isThere(chunk.error) ? (chunk as Chunk) : undefined
  } catch {
    return undefined
  }
}

export const isThere = (value: unknown) => value !== undefined && value !== null

/** Is it text, or nothing? */
export const isTextOrNothing = (value: unknown): value is string | null | undefined =>
  typeof value === 'string' || value === undefined || value === null

export type Piece = { kind: 'text' | 'thinking'; text: string }

/** Content in parts, as Mistral sends it: `[{"type": "thinking", "thinking": [{"type": "text", …}]}, {"type": "text", …}]`. */
export function piecesOf(content: readonly unknown[]): Piece[] {
  return content.flatMap((part): Piece[] => {
    const { type, text, thinking } = Object(part) as { type?: unknown; text?: unknown; thinking?: unknown }
    if (type === 'text' && typeof text === 'string') return [{ kind: 'text', text }]
    if (type !== 'thinking' || !Array.isArray(thinking)) return []
    return piecesOf(thinking).map((piece) => ({ kind: 'thinking', text: piece.text }))
  })
}
