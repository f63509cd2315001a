import type { AttachedFile } from '../../../kernel/attachment.ts'
import { type AppError, invalidRequest } from '../../../kernel/errors.ts'
import { jsonBytes } from '../../../kernel/json.ts'
import type { ApiType } from '../../../platform/api/api-type.ts'
import type { AssistantBlock, Message, ToolResultBlock } from '../../providers/port.ts'
import { placed } from '../attached-files.ts'

type Seed = ApiType<'SeedMessage'> & { client?: string; files?: readonly AttachedFile[] }
type Role = Seed['role']
type Block = NonNullable<Seed['blocks']>[number]
type Typed<T extends AssistantBlock['type']> = Extract<AssistantBlock, { type: T }>
type Call = Typed<'tool_use'>

const MAX_BYTES = 1024 * 1024

/**
 * Returns the history that a session begins with (D23.4). Throws `invalid_request` for a history that no session can have. Its rules: the user
 * begins, a user message may follow anything but a tool call, the assistant does not follow itself, and each tool call has its result in the next
 * message.
 */
export function seedHistory(seeds: readonly Seed[]): Message[] {
  const measured = seeds.map(({ attachments: _data, ...seed }) => seed) // Bytes of files are not kept in the history, so they are not measured.
  if (jsonBytes(measured) > MAX_BYTES)
    throw invalidRequest(`messages must have at most ${MAX_BYTES} bytes as JSON; send fewer of them, or shorter ones`, {
      param: '/messages',
    })
  let next = BEGIN
  const history: Message[] = []
  for (const [index, seed] of seeds.entries()) {
    const message = withFiles(readMessage(seed, index, next), { seed, index, earlier: history })
    next = nextAfter(message)
    if (message.role === 'assistant' && message.blocks.length === 0) continue
    history.push(seed.client === undefined ? message : { ...message, client: seed.client })
  }
  if (next.calls.length > 0) throw unfinished(seeds.length - 1)
  return history
}

type Seeded = { seed: Seed; index: number; earlier: readonly Message[] }

function withFiles(message: Message, { seed: { attachments, files }, index, earlier }: Seeded): Message {
  if (!attachments?.length && !files?.length) return message
  if (message.role !== 'user')
    throw wrong(`/messages/${index}/attachments`, 'left out of a message that is not the user’s')
  return files ? { ...message, files: placed(files, earlier) } : message
}

/** The roles that the next message may have, the calls that its results answer, and whether it follows results. */
type Next = { roles: readonly Role[]; calls: readonly Call[]; hasResults?: boolean }

const BEGIN: Next = { roles: ['user'], calls: [] }

function nextAfter(message: Message): Next {
  if (message.role !== 'assistant')
    return { roles: ['user', 'assistant'], calls: [], hasResults: message.role === 'tool' }
  const calls = message.blocks.filter((block) => block.type === 'tool_use')
  return { roles: calls.length > 0 ? ['tool'] : ['user'], calls }
}

function readMessage(seed: Seed, index: number, { roles, calls, hasResults = false }: Next): Message {
  const at = `/messages/${index}`
  const { role } = seed
  if (!roles.includes(role)) throw wrong(`${at}/role`, `${roles.join(' or ')} here: ${ORDER}`)
  if ((seed.content === undefined) === (seed.blocks === undefined))
    throw wrong(at, 'a message with either content or blocks')
  const { content = '', blocks = [{ type: 'text' as const, text: content }] } = seed
  if (role === 'tool') return { role, results: readResults(blocks, `${at}/blocks`, calls) }
  if (role === 'assistant') return { role, blocks: readAnswer(blocks, at, hasResults) }
  const texts = blocks.flatMap((block, i) => {
    const place = `${at}/blocks/${i}`
    return checked(block, place, ['text', 'file']).type === 'file' ? [] : [textOf(block, place)]
  })
  const text = texts.join('\n\n')
  if (text.trim() === '' && !seed.files?.length && !seed.attachments?.length)
    throw wrong(at, 'a message with text that is not white space alone')
  return { role, text }
}

/** Thinking is left out: providers accept only thinking that they have signed. An answer to tool results may be empty (D4.4). */
function readAnswer(blocks: readonly Block[], at: string, mayBeEmpty: boolean): AssistantBlock[] {
  const read = blocks.flatMap((block, i): AssistantBlock[] => {
    const place = `${at}/blocks/${i}`
    const { type } = checked(block, place, ['text', 'thinking', 'tool_use'])
    if (type === 'thinking') return []
    return [type === 'text' ? { type, text: textOf(block, place) } : readCall(block, place)]
  })
  const ids = read.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
  if (new Set(ids).size < ids.length) throw wrong(at, 'a message whose tool calls have different ids')
  if (ids.length > 0 || read.some((block) => block.type === 'text' && block.text.trim() !== '')) return read
  if (mayBeEmpty) return []
  throw wrong(at, 'a message with text or a tool call')
}

function readCall({ id, tool_name: toolName, input }: Block, at: string): Call {
  if (id === undefined) throw missing(`${at}/id`)
  if (toolName === undefined) throw missing(`${at}/tool_name`)
  if (input === undefined) throw missing(`${at}/input`)
  return { type: 'tool_use', id, toolName, input }
}

/** Returns the results in the order of their calls. */
function readResults(blocks: readonly Block[], at: string, calls: readonly Call[]): ToolResultBlock[] {
  const byId = new Map<string | undefined, Block>()
  for (const [i, block] of blocks.entries()) {
    const { id } = checked(block, `${at}/${i}`, ['tool_result'])
    if (!calls.some((call) => call.id === id) || byId.has(id))
      throw wrong(`${at}/${i}/id`, 'the id of a tool call of the message before, once')
    if (block.output === undefined) throw missing(`${at}/${i}/output`)
    byId.set(id, block)
  }
  return calls.map(({ id, toolName }) => {
    const { output, is_error: isError = false } = byId.get(id) ?? {}
    if (output === undefined) throw wrong(at, 'the results of all tool calls of the message before')
    return { id, toolName, output, isError }
  })
}

function checked(block: Block, at: string, types: readonly Block['type'][]): Block {
  if (types.includes(block.type)) return block
  throw wrong(`${at}/type`, `${types.join(' or ')} in a message of this role`)
}

function textOf({ text }: Block, at: string): string {
  if (text === undefined) throw missing(`${at}/text`)
  return text
}

const ORDER = 'the user begins, assistant does not follow assistant, and tool follows the calls of an assistant'

const unfinished = (index: number): AppError =>
  invalidRequest(`messages[${index}] cannot be the last one: add the tool message that follows it`, {
    param: `/messages/${index}`,
  })

const wrong = (param: string, wanted: string): AppError =>
  invalidRequest(`${nameOf(param)} must be ${wanted}`, { param })

const missing = (param: string): AppError => invalidRequest(`${nameOf(param)} is required in this block`, { param })

/** Turns `/messages/3/role` into `messages[3].role`. */
const nameOf = (pointer: string): string =>
  pointer
    .slice(1)
    .replaceAll(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')
