import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { MessagePage } from '../../../../shared/cluster/commands/sessions.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { STEER } from '../../params.ts'
import { readResponse } from '../shared/response-stream.ts'
import { artifactChunks } from './asides.ts'
import { type UiMessage, UiMessageProjection } from './message.ts'

type Message = MessagePage['messages'][number]
/** `basePath`: the path under which files of messages are served. */
type Reading = { broker: Broker; tenant: TenantId; signal: AbortSignal; basePath: string }

/** A run whose answer is not in the history is shown from its events; at most this many runs, the newest. */
const MAX_REPLAYED = 20
const PAGE = 200

/** The messages of a session's current branch; none if the session does not exist. */
async function listBranch(
  { broker, tenant }: Pick<Reading, 'broker' | 'tenant'>,
  sessionId: string,
): Promise<Message[]> {
  const found: Message[] = []
  try {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await broker.listMessages(tenant, sessionId, {
        limit: PAGE,
        ...(cursor !== undefined && { cursor }),
      })
      for (const message of page.messages) found.push(message)
      cursor = page.next_cursor
    }
  } catch (cause) {
    if (!hasKind(cause, 'not_found')) throw cause
  }
  return found
}

/**
 * The messages of a chat as its page shows them. The newest run and runs without an answer are shown from their events, with approvals and
 * errors, as long as those are kept.
 */
export async function uiMessages(reading: Reading, sessionId: string): Promise<UiMessage[]> {
  const messages = fold(await listBranch(reading, sessionId), { sessionId, basePath: reading.basePath })
  const replayed = messages.filter(
    ({ runId, answer }, i) => runId !== null && (answer === undefined || i === messages.length - 1),
  )
  for (const turn of replayed.slice(-MAX_REPLAYED)) {
    const told = turn.runId === null ? undefined : await replay(reading, turn.runId, sessionId)
    if (told) turn.answer = told
  }
  return messages.flatMap(({ asked, answer }) => [...asked, ...(answer ? [answer] : [])])
}

/** The messages that one run has added, or, in the history that a session was created with, one user message and its answer. */
type Turn = { runId: string | null; asked: UiMessage[]; answer: UiMessage | undefined }

function fold(messages: readonly Message[], { sessionId, basePath }: { sessionId: string; basePath: string }): Turn[] {
  const turns: Turn[] = []
  for (const message of messages) {
    const { id, client_id: clientId = id, run_id: runId, role, blocks } = message
    const last = turns.at(-1)
    if (last && isSteer(message, last)) {
      answerIn(last, message, sessionId).parts.push({
        type: 'data-steered',
        id: clientId,
        data: { text: textOf(blocks) },
      })
      continue
    }
    const isBehindAnswer = role === 'user' && last?.answer !== undefined
    if (isBehindAnswer && runId !== null && last.runId === runId) continue // The engine's own message, which asks the model to correct its answer.
    const isNew = last?.runId !== runId || isBehindAnswer
    const turn: Turn = isNew || !last ? { runId, asked: [], answer: undefined } : last
    if (turn !== last) turns.push(turn)
    if (role === 'user')
      turn.asked.push({ id: clientId, role, parts: blocks.map((block) => askedPart(block, basePath)) })
    if (role === 'assistant') {
      const answer = answerIn(turn, message, sessionId)
      if (runId === null) answer.id = clientId
      answer.parts.push({ type: 'step-start' }, ...blocks.map(partOf))
    }
    if (role === 'tool') for (const block of blocks) addResult(turn.answer?.parts ?? [], block, basePath)
  }
  return turns
}

/** Whether a message steered the running run. It is then shown as a part of the run's answer, as in the stream. */
const isSteer = ({ client_id: id, run_id: runId }: Message, last: Turn): boolean =>
  runId !== null && runId === last.runId && id !== undefined && STEER.pattern.test(id)

function answerIn(turn: Turn, { id, client_id: clientId = id, run_id: runId }: Message, sessionId: string): UiMessage {
  const metadata = runId !== null && { metadata: { runId, sessionId } }
  turn.answer ??= { ...{ id: runId ?? clientId, role: 'assistant', parts: [] }, ...metadata }
  return turn.answer
}

type Block = Message['blocks'][number]

const textOf = (blocks: readonly Block[]): string =>
  blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n')

function askedPart(block: Block, basePath: string): JsonObject {
  if (block.type !== 'file') return { ...block }
  const { name: filename, media_type: mediaType, file_id: id } = block
  return { type: 'file', mediaType, filename, url: `${basePath}/files/${id}/content` }
}

function partOf(block: Block): JsonObject {
  if (block.type === 'text') return { type: 'text', text: block.text, state: 'done' }
  if (block.type === 'thinking') return { type: 'reasoning', text: block.text, state: 'done' }
  const { id: toolCallId, tool_name: toolName, input } = block as Extract<Block, { type: 'tool_use' }>
  return { type: 'dynamic-tool', toolName, toolCallId, providerExecuted: true, state: 'input-available', input }
}

function addResult(parts: JsonObject[], block: Block, basePath: string): void {
  if (block.type !== 'tool_result') return
  const { id, output, is_error: isError, artifacts = [] } = block
  const result = isError ? { state: 'output-error', errorText: output } : { state: 'output-available', output }
  Object.assign(parts.findLast(({ toolCallId }) => toolCallId === id) ?? {}, result)
  for (const artifact of artifacts)
    parts.push(...artifactChunks({ ...artifact, tool_use_id: id }, basePath).map((part) => ({ ...part })))
}

/** The message of a run so far; `undefined` when its events are not kept. */
async function replay(
  { broker, tenant, signal, basePath }: Reading,
  runId: string,
  sessionId: string,
): Promise<UiMessage | undefined> {
  try {
    const { event_count: until } = await broker.getRun(tenant, runId)
    const frames = await broker.followRun(tenant, runId, 0)
    const projection = new UiMessageProjection(runId, sessionId, basePath)
    await readResponse({ frames, passed: until }, projection, { signal, until })
    const { message } = projection
    const isWhole = message.metadata['errorCode'] !== 'stream_gap'
    return isWhole && (message.parts.length > 0 || message.metadata['error'] !== undefined) ? message : undefined
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}

/** The run that answers now in a session, or has answered last, as long as its events are kept. */
export async function newestRun(broker: Broker, tenant: TenantId, sessionId: string): Promise<string | undefined> {
  try {
    const { active_run_id: active, last_run_id: last } = await broker.getSession(tenant, sessionId)
    const runId = active ?? last ?? undefined
    if (runId !== undefined) await broker.getRun(tenant, runId)
    return runId
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}
