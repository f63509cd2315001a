import {
  AgentEngine,
  ApiError,
  ConnectionFailed,
  type PermissionAsk,
  RunFailed,
  RunLost,
} from '../../shared/client/client.ts'
import type { ExpectedRun, Head, RunHead } from './scenario.ts'
import { runFlow, watchInbox, watchPlan } from './work-scenario.ts'

/** The result of a client at the end of a scenario, and the numbers of the events. */
export type Outcome = Head['expect'] & { ids: number[] }

/** Plays one scenario with our client. It runs in Node and in a browser. */
export async function runScenario(url: string, head: Head): Promise<Outcome> {
  const engine = new AgentEngine({
    url: `${url}/${head.name}`,
    retry: { resumeMs: 10_000 },
    timeouts: { stallMs: head.name === 'stall' ? 300 : 10_000 },
  })
  switch (head.kind) {
    case 'flow':
      return runFlow(engine)
    case 'plan':
      return { ...(await watchPlan(engine)), ids: [] }
    case 'inbox':
      return { ...(await watchInbox(engine, head.expect)), ids: [] }
    case undefined:
      return playRun(engine, head)
  }
}

async function playRun(
  engine: AgentEngine,
  { permissions, idempotency_key }: RunHead,
): Promise<ExpectedRun & { ids: number[] }> {
  const replies: Promise<boolean>[] = []
  const left: PermissionAsk[] = []
  const run = engine.run(
    { prompt: 'hi' },
    {
      ...(idempotency_key === false && { idempotencyKey: null }),
      onPermission(ask) {
        const reply = permissions === 'deny' ? ask.deny('not now') : permissions ? ask.allow() : allowLate(ask)
        replies.push(reply)
        if (!permissions) left.push(ask)
        return reply
      },
    },
  )
  const ids: number[] = []
  let text = ''
  const copying = (async () => {
    for await (const part of run.textStream()) text += part
  })()
  const end = await (async () => {
    for await (const { id } of run) ids.push(id)
    await copying
    return { end: (await run.result()).stopReason === 'plan_queued' ? ('plan_queued' as const) : ('done' as const) }
  })().catch(endOf)
  await copying.catch(() => {}) // It has failed as the run has.
  const isWhole = end.end === 'done' || end.end === 'plan_queued'
  const counted = replies.length > 0 ? { counted: await Promise.all(replies) } : {}
  const how = left.length > 0 ? { how: left.map(({ resolution }) => String(resolution?.how)) } : {}
  return { events: ids.length, text: isWhole ? text : '', ...end, ...counted, ...how, ids }
}

/** Leaves a request to others, and replies when that is decided. */
async function allowLate(ask: PermissionAsk): Promise<boolean> {
  await new Promise((resolve) => ask.signal.addEventListener('abort', resolve))
  return ask.allow()
}

function endOf(cause: unknown): Pick<ExpectedRun, 'end' | 'code'> {
  if (cause instanceof RunFailed) return { end: 'error', code: cause.code }
  if (cause instanceof RunLost) return { end: 'lost' }
  if (cause instanceof ApiError) return { end: 'refused' }
  if (cause instanceof ConnectionFailed) return { end: 'connection' }
  throw cause
}
