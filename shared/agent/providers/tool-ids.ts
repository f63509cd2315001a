import { createHash } from 'node:crypto'
import type { AssistantBlock, Message, ToolResultBlock } from './port.ts'

/** The ids of tool calls that a server accepts. */
export type IdForm = { pattern: RegExp; make(id: string): string }

const digest = (text: string) =>
  createHash('sha256')
    .update(text)
    .digest('base64')
    .replace(/[^A-Za-z0-9]/g, '')

/** OpenAI accepts 40 characters in its chat format and 64 in its Responses API; Anthropic accepts only these characters. */
export const COMMON_IDS: IdForm = { pattern: /^.{1,40}$/, make: (id) => `call_${digest(id).slice(0, 24)}` }
export const ANTHROPIC_IDS: IdForm = { pattern: /^[A-Za-z0-9_-]{1,64}$/, make: COMMON_IDS.make }
export const MISTRAL_IDS: IdForm = { pattern: /^[A-Za-z0-9]{9}$/, make: (id) => digest(id).slice(0, 9) }

/**
 * Gives the tool calls of a history, and their results, unique ids that the server accepts. Other providers may have made the ids,
 * and some number the calls of each answer from 0. Equal histories get equal ids, so that the provider's cache finds their prefix.
 * Messages whose ids are fine are returned unchanged.
 */
export function withToolIds(messages: readonly Message[], form: IdForm): readonly Message[] {
  const used = new Set<string>()
  let renamed = new Map<string, string[]>()
  return messages.map((message) => {
    if (message.role === 'user') return message
    if (message.role === 'tool')
      return { ...message, results: message.results.map((result) => toResult(result, renamed)) }
    renamed = new Map()
    return { ...message, blocks: message.blocks.map((block) => toBlock(block, { form, used, renamed })) }
  })
}

type Naming = { form: IdForm; used: Set<string>; renamed: Map<string, string[]> }

function toBlock(block: AssistantBlock, { form, used, renamed }: Naming): AssistantBlock {
  if (block.type !== 'tool_use') return block
  let id = form.pattern.test(block.id) ? block.id : form.make(block.id)
  for (let count = 2; used.has(id); count++) id = form.make(`${block.id} ${count}`)
  used.add(id)
  const ids = renamed.get(block.id)
  if (ids) ids.push(id)
  else renamed.set(block.id, [id])
  return id === block.id ? block : { ...block, id }
}

/** Results are in the order of their calls. */
function toResult(result: ToolResultBlock, renamed: Map<string, string[]>): ToolResultBlock {
  const id = renamed.get(result.id)?.shift() ?? result.id
  return id === result.id ? result : { ...result, id }
}
