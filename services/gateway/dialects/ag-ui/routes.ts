import type { RequestHandler, Response } from 'express'
import type { RouteTable } from '../../../http/routes.ts'
import { nameIgnored } from '../../bodies/body.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { endWithClient, onDisconnectOf } from '../../starting/on-disconnect.ts'
import type { WaitingRun } from '../../starting/waiting-run.ts'
import type { DialectDeps } from '../dialect.ts'
import { systemPromptOf } from '../shared/caller-context.ts'
import { type Source, streamOf } from '../shared/response-stream.ts'
import { AG_UI_WIRE } from './events.ts'
import { AgUiProjection } from './projection.ts'
import { type AgUiRequest, readAgUiRequest } from './request.ts'

/** AG-UI: the id of a thread is that of its session. */
export function agUiRoutes(deps: DialectDeps): RouteTable {
  return { '/ag-ui': { post: deps.admitAnswers(run(deps)) } }
}

function run(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const request = readAgUiRequest(await deps.readBody(req, res, 'DialectRequest'))
    nameIgnored(res, request.ignored)
    const onDisconnect = onDisconnectOf(req) ?? 'cancel' // The protocol has no other way to stop a run.
    const { engineRunId: runId, ...source } = await open(deps, res, request)
    const stream = streamOf(source, new AgUiProjection({ ...request, engineRunId: runId }), AG_UI_WIRE)
    if (onDisconnect === 'cancel') endWithClient(deps.broker, res, { runId, isOver: stream.isOver })
    deps.relay({ runId, ...stream }, res)
  }
}

type Opened = Source & { engineRunId: string }

async function open(deps: DialectDeps, res: Response, request: AgUiRequest): Promise<Opened> {
  const { resumed, threadId } = request
  if (!resumed) return startOrAskAgain(deps, res, request)
  if (request.hasMessage) request.said() // A message that is refused answers nothing.
  await deps.conversations.answer(res, threadId, resumed.answers)
  if (request.hasMessage) return start(deps, res, request)
  const { engineRunId, answers } = resumed
  const frames = await deps.broker.followRun(tenantOf(res), engineRunId, 0)
  return { engineRunId, frames, known: new Set(answers.map(({ id }) => id)) }
}

/** AG-UI's contract: a thread with open interrupts takes nothing but answers to them. A client that has lost them gets them again. */
async function startOrAskAgain(deps: DialectDeps, res: Response, request: AgUiRequest): Promise<Opened> {
  let waiting: WaitingRun | undefined
  const before = async () => {
    waiting = await deps.conversations.waiting(res, request.threadId)
    if (waiting) throw new Error('the thread has open interrupts')
  }
  try {
    if (!request.hasMessage) await before()
    return await start(deps, res, request, before)
  } catch (cause) {
    if (!waiting) throw cause
    const { runId: engineRunId, eventCount } = waiting
    const frames = await deps.broker.followRun(tenantOf(res), engineRunId, 0)
    return { engineRunId, frames, silentUntil: eventCount }
  }
}

async function start(
  { conversations }: DialectDeps,
  res: Response,
  { threadId, runId, said, context }: AgUiRequest,
  before?: () => Promise<void>,
): Promise<Opened> {
  const { prompt, system: instructions, listed, unanswered, seed } = said()
  const system = systemPromptOf(instructions, context)
  const message = { prompt, ...listed, ...(system !== undefined && { system_prompt: system }) }
  const sent = {
    sessionId: threadId,
    message,
    unanswered,
    seed,
    key: `${threadId} ${runId}`,
    ...(before && { before }),
  }
  const started = await conversations.send(res, 'ag-ui', sent)
  return { engineRunId: started.runId, frames: started.frames }
}
