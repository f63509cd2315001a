import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import { hasAttachments, withoutAttachments } from '../attachments.ts'
import { chosenOptions } from '../choices.ts'
import type { ModelRequest } from '../port.ts'
import type { LeftOut, OptionalPart } from '../unsupported-options.ts'
import type { Chunk } from './chunk.ts'
import { toConversation } from './conversation.ts'
import type { ChatBody } from './request.ts'
import { withTools } from './tools-json.ts'

type Target = {
  options: ModelOptions
  leftOut: LeftOut
  origin: string
  /**
   * The window that the server has reported, if it was asked. It is sent with each request, so that the model is not
   * loaded again with another window.
   */
  windowOf(model: string): number | undefined
}

/** Builds requests of Ollama's own format: the same conversation, with the options that only this format has. */
export function createOllamaBody({ options, leftOut, origin, windowOf }: Target): ChatBody {
  return (given) => {
    const { model, messages: all, output, system } = given
    const { toolChoice } = given.choices ?? {}
    const tools = toolChoice === 'none' ? [] : leftOut.takenTools(given) // Ollama's format has no field for the tool choice.
    const messages = leftOut.has(model, 'attachments') ? withoutAttachments(all) : all
    const conversation = toConversation({ ...given, messages }, origin)
    if (toolChoice && tools.length > 0) leftOut.add(model, 'tool_choice')
    const optional = optionalFields(given, { options: chosenOptions(options, given), leftOut, window: windowOf(model) })
    const body = {
      model,
      messages: toMessages(system ? [{ role: 'system', content: system }, ...conversation] : conversation),
      stream: true,
      // Otherwise the server would cut the oldest messages silently.
      truncate: false,
      shift: false,
      ...(optional.effort !== undefined && { think: optional.effort }),
      ...(Object.keys(optional.fields).length > 0 && { options: optional.fields }),
      ...(output && { format: output.schema }),
    }
    const parts: OptionalPart[] = hasAttachments(messages) ? [...optional.parts, 'attachments'] : optional.parts
    return { json: withTools(tools, body), optionalParts: tools.length > 0 ? [...parts, 'tools'] : parts }
  }
}

type Wanted = { options: ModelOptions; leftOut: LeftOut; window: number | undefined }

function optionalFields({ model, tools }: ModelRequest, { options, leftOut, window }: Wanted) {
  const { max_output_tokens, temperature, reasoning_effort, parallel_tool_calls, context_window = window } = options
  if (parallel_tool_calls !== undefined && tools.length > 0) leftOut.add(model, 'parallel_tool_calls')
  const wanted: [part: OptionalPart, name: string, value: number | undefined][] = [
    ['options', 'num_ctx', context_window],
    ['max_output_tokens', 'num_predict', max_output_tokens],
    ['temperature', 'temperature', temperature],
  ]
  const taken = wanted.filter(([part, , value]) => value !== undefined && !leftOut.has(model, part))
  const effort = leftOut.has(model, 'reasoning_effort') ? undefined : thinkOf(reasoning_effort)
  const parts = taken.map(([part]) => part)
  return {
    fields: Object.fromEntries(taken.map(([, name, value]) => [name, value])),
    effort,
    parts: effort === undefined ? parts : [...parts, 'reasoning_effort' as const],
  }
}

function thinkOf(effort: ModelOptions['reasoning_effort']): string | boolean | undefined {
  if (effort === undefined || effort === 'medium') return effort
  if (effort === 'none') return false
  return effort === 'high' || effort === 'xhigh' ? 'high' : 'low'
}

/** Converts messages of the chat format: images are in a separate field, arguments are objects, and results name their tool. */
function toMessages(messages: readonly JsonObject[]): JsonObject[] {
  const toolNames = new Map<unknown, unknown>()
  return messages.map(({ role, content, reasoning_content: thinking, tool_calls, tool_call_id }) => {
    const calls = (Array.isArray(tool_calls) ? tool_calls : []).filter(isJsonObject).map(toCall)
    for (const { id, function: called } of calls) toolNames.set(id, called.name)
    return {
      role,
      ...toContent(content),
      ...(thinking !== undefined && { thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(tool_call_id !== undefined && { tool_call_id, tool_name: toolNames.get(tool_call_id) }),
    }
  })
}

function toCall({ id, function: called }: JsonObject) {
  const { name, arguments: json } = called as { name: string; arguments: string }
  return { id, function: { name, arguments: parseJson(json) ?? {} } }
}

/** Ollama accepts only images; the text of a result names its PDFs. */
function toContent(content: unknown): { content: string; images?: string[] } {
  if (!Array.isArray(content)) return { content: typeof content === 'string' ? content : '' }
  const parts = content.filter(isJsonObject)
  const texts = parts.map(({ text }) => text).filter((text) => typeof text === 'string')
  const urls = parts.map(({ image_url: image }) => (isJsonObject(image) ? String(image['url']) : ''))
  const images = urls.filter((url) => url !== '').map((url) => url.slice(url.indexOf(',') + 1))
  return { content: texts.join('\n\n'), ...(images.length > 0 && { images }) }
}

/** Reads a line of Ollama's answer as a chunk of the chat format. The last line is `done`. */
export function ollamaChunk(json: string): { chunk: Chunk; isLast: boolean } | undefined {
  const line = parseJson(json)
  if (!isJsonObject(line)) return undefined
  const { message, done, done_reason: reason = 'stop', prompt_eval_count, eval_count, error } = line
  const { content, thinking, tool_calls } = isJsonObject(message) ? message : {}
  const isLast = done === true
  const usage = { prompt_tokens: prompt_eval_count, completion_tokens: eval_count }
  const delta = { content, reasoning_content: thinking || undefined, tool_calls }
  const chunk: Chunk = {
    error: error ?? undefined,
    choices: [{ delta, finish_reason: isLast ? reason : null }],
    usage: isLast ? usage : null,
  }
  return { chunk, isLast }
}
