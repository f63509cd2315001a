import type { Answer, Refusal } from './script.ts'
import type { Format } from './wire.ts'

/** The answer to `GET …/models`. */
export function listModels(format: Format, models: string[] | Refusal): Answer {
  return Array.isArray(models) ? { status: 200, body: LISTS[format](models) } : models
}

const openai = (ids: string[]) => ({
  object: 'list',
  data: ids.map((id) => ({ id, object: 'model', created: 1_763_474_589, owned_by: 'system' })),
})

const LISTS: Record<Format, (ids: string[]) => unknown> = {
  'openai-chat': openai,
  'openai-responses': openai,
  ollama: openai,
  anthropic: (ids) => ({
    data: ids.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-02-19T00:00:00Z' })),
    has_more: false,
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
  }),
  google: (ids) => ({
    models: ids.map((id) => ({
      name: `models/${id}`,
      version: '001',
      displayName: id,
      inputTokenLimit: 1_048_576,
      outputTokenLimit: 65_536,
      supportedGenerationMethods: ['generateContent', 'countTokens'],
    })),
  }),
}
