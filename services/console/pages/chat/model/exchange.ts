import type { Schema } from '../../../../../shared/client/api.ts'
import type { Block } from '../../../../../shared/client/view/run-view.ts'
import type { LiveRun } from '../../../parts/run/live-run.ts'
import type { SentFile } from './draft-files.ts'

/** A prompt and its answer. `blocks` is an answer of the history; `live` is a run that this tab follows. */
export type Exchange = {
  key: string
  prompt: string | undefined
  /** Those of the prompt. */
  files?: readonly SentFile[]
  runId: string | undefined
  /** The user's message, and the message before it; unknown for a run that this tab has only followed. */
  id?: string
  parentId?: string | null
  at: string | undefined
  blocks: readonly Block[]
  live?: LiveRun
  /** The newest message of the exchange. */
  lastId?: string
  /** How its run failed, or was cancelled. */
  code?: string
}

type Message = Schema<'SessionMessage'>

/** The history of a session as exchanges: each begins with a message of the user. */
export function exchangesOf(messages: readonly Message[]): Exchange[] {
  const exchanges: Exchange[] = []
  const results = resultsIn(messages)
  for (const [i, { id, parent_id: parentId, role, blocks, run_id, at, client_id }] of messages.entries()) {
    const before = exchanges.at(-1)
    if (before && before.runId === run_id && client_id?.startsWith('steer_')) {
      before.blocks = [...before.blocks, { kind: 'steered', id: client_id, text: textOf(blocks) }]
      continue
    }
    const place = { key: `${run_id ?? 'seed'}-${i}`, runId: run_id ?? undefined, id, parentId }
    if (role === 'user' || exchanges.length === 0) exchanges.push({ ...place, prompt: undefined, at, blocks: [] })
    const last = exchanges.at(-1)
    if (last === undefined) continue
    last.lastId = id
    if (role === 'user') Object.assign(last, { prompt: textOf(blocks), files: blocks.filter(isFile) })
    else last.blocks = [...last.blocks, ...blocks.flatMap((block) => blockOf(block, results))]
  }
  return exchanges
}

const textOf = (blocks: Message['blocks']): string =>
  blocks.flatMap((block) => ('text' in block ? [block.text] : [])).join('\n\n')

const isFile = (block: Message['blocks'][number]) => block.type === 'file'

/** Whether the run has left no answer: it may have failed. */
export const isSilent = ({ live, blocks }: Exchange): boolean => !live && blocks.at(-1)?.kind !== 'text'

/** The tools that give work to sub-agents. */
const GIVING = new Set(['Agent', 'Team', 'Dream', 'Skill'])

/** Whether sub-agents may have worked for an answer. */
export const startsSubagents = ({ blocks }: Pick<Exchange, 'blocks'>): boolean =>
  blocks.some((block) => block.kind === 'tool' && GIVING.has(block.call.tool_name))

type Result = Extract<Message['blocks'][number], { type: 'tool_result' }>

const resultsIn = (messages: readonly Message[]): ReadonlyMap<string, Result> =>
  new Map(
    messages.flatMap(({ blocks }) =>
      blocks.flatMap((block) => (block.type === 'tool_result' ? [[block.id, block] as const] : [])),
    ),
  )

function blockOf(block: Message['blocks'][number], results: ReadonlyMap<string, Result>): Block[] {
  if (block.type === 'tool_result' || block.type === 'file') return []
  if (block.type !== 'tool_use') return [{ kind: block.type, text: block.text, isOpen: false }]
  const { type: _type, ...call } = block
  const result = results.get(block.id)
  const files = result?.artifacts?.map((file): Block => ({ kind: 'artifact', ...file, tool_use_id: block.id })) ?? []
  return [{ kind: 'tool', call, ...(result && { result }) }, ...files]
}
