import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Session } from '../../../services/worker/sessions/session.ts'
import { Sessions, type SessionsLimits } from '../../../services/worker/sessions/sessions.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { Run, RunExecutor } from '../../../shared/work/runs/run.ts'
import { Runs } from '../../../shared/work/runs/runs.ts'
import { DONE } from '../events.ts'

const runs = () =>
  new Runs(
    { maxLive: 100, resumeMs: 60_000, maxJournalBytes: 1e6 },
    { onBug: (_run, cause) => expect.fail(String(cause)), onEvent: () => {}, onForgotten: () => {} },
  )

type Limits = {
  maxSessions?: number
  maxPerTenant?: number
  maxBytes?: number
  maxBytesPerTenant?: number
  idleMs?: number
}

/** Limits of sessions, without a limit where none is given. */
export function limitsOf({
  maxSessions = 10,
  maxBytes = 1e6,
  idleMs = 60_000,
  ...perTenant
}: Limits = {}): SessionsLimits {
  const { maxPerTenant = maxSessions, maxBytesPerTenant = maxBytes } = perTenant
  const room = {
    sessions: { max: maxSessions, maxPerTenant },
    memory: { max: maxBytes, maxPerTenant: maxBytesPerTenant },
  }
  return { room, idleMs }
}

export function setUp(limits: Limits = {}) {
  const removed = Promise.withResolvers<Session>()
  const sessions = new Sessions(limitsOf(limits), async (session) => {
    removed.resolve(session)
    return true
  })
  const known = runs()
  const post = (session: Session, execute: RunExecutor, prompt = 'x'): Run => {
    sessions.checkRoom(session)
    const run = known.open({ id: newId('run'), tenant: session.tenant, sessionId: session.id })
    session.post({ run, message: { prompt }, execute })
    return run
  }
  return { sessions, post, removed: removed.promise }
}

export const identity = { id: 's1', tenant: DEFAULT_TENANT, token: 'a1' }

/** Runs until `gate` resolves. */
export const waitFor = (gate: Promise<void>): RunExecutor =>
  async function* () {
    await gate
    yield DONE
  }

/** Makes one turn with this model. */
export const turnOf = (model: string): RunExecutor =>
  async function* () {
    yield { type: 'turn_start', turn_number: 1, model }
    yield DONE
  }

/** Resolves after all timers of this length that were started before: Node runs them in their order. */
export const timersOf = (ms: number): Promise<void> => sleep(ms)
