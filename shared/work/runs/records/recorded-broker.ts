import { setTimeout as sleep } from 'node:timers/promises'
import { runHasEnded } from '../../../agent/engine/messages/steering.ts'
import type { Broker } from '../../../cluster/commands/broker.ts'
import { isLost, type RunSummary } from '../../../cluster/commands/runs.ts'
import { FollowedRun } from '../../../cluster/following/followed-run.ts'
import type { FrameStream, Frames } from '../../../cluster/journal/frame-stream.ts'
import { failureFrame, LOST_SEQ } from '../../../cluster/journal/frames.ts'
import { hasKind } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { type StoredSessions, withStoredSessions } from '../../sessions/stored-lists.ts'
import { aboutRequest } from './record.ts'
import { isAway, type RunHistory } from './run-history.ts'
import type { RunWitness } from './run-witness.ts'

export type RecordedBrokerDeps = {
  history: RunHistory
  /** Watches the runs that this process starts. */
  witness?: RunWitness | undefined
  /** The stored sessions, which outlive their worker (D32). */
  sessions?: StoredSessions | undefined
}

/** The broker, extended by runs that exist only as records (D20), and by sessions that are in no worker's memory (D32). */
export const createRecordedBroker = (broker: Broker, { history, witness, sessions }: RecordedBrokerDeps): Broker => ({
  ...broker,
  ...(witness && watchedStarts(broker, witness)),
  ...(sessions && withStoredSessions(broker, sessions)),
  listRuns: (tenant, filter) => history.list(tenant, (known) => broker.listRuns(tenant, known), filter),
  getRun: (tenant, runId) =>
    orRecorded(
      async () => withPhases(await broker.getRun(tenant, runId), () => history.get(tenant, runId)),
      () => history.get(tenant, runId),
    ),
  followRun: (tenant, runId, after) => {
    const read = (from: number) =>
      replay(history, { tenant, runId, after: from, areSessionsKept: sessions !== undefined })
    const readRest = async (from: number) => recordedSoon(await endOf(broker, tenant, runId), () => read(from))
    return orRecorded(
      async () => withRest(await broker.followRun(tenant, runId, after), readRest),
      () => read(after),
    )
  },
  async steerRun(tenant, runId, steer) {
    const read = async () => (await history.get(tenant, runId)) && Promise.reject(runHasEnded())
    await orRecorded(() => broker.steerRun(tenant, runId, steer), read)
  },
  async cancelRun(tenant, runId) {
    await orRecorded(
      async () => [await broker.cancelRun(tenant, runId)],
      () => history.get(tenant, runId), // The run has ended already, as the caller wants.
    )
  },
})

const watchedStarts = (broker: Broker, witness: RunWitness): Pick<Broker, 'startRun' | 'sendMessage'> => ({
  async startRun(tenant, request, onNamed) {
    const run = await broker.startRun(tenant, request, onNamed)
    witness.watch(run, { tenant, kind: 'run', ...aboutRequest(request) })
    return run
  },
  async sendMessage(tenant, session_id, message, onNamed) {
    const run = await broker.sendMessage(tenant, session_id, message, onNamed)
    witness.watch(run, { tenant, kind: 'message', session_id, ...aboutRequest(message) })
    return run
  },
})

/**
 * The frames of a run from its process. If the process has dropped the next frames, because the run has ended and others needed the memory, the
 * frames of the record follow (D20.3), once. The rest of a large frame that was partly sent can come only from the process.
 */
export function withRest(
  frames: FrameStream,
  readRest: (after: number) => Promise<FrameStream | undefined>,
): FrameStream {
  let isRead = false
  return new FollowedRun(frames, {
    mayGoOn: (end) => end?.failure === 'stream_gap' && !isRead,
    async followElsewhere({ failure, after, isInsideFrame }) {
      isRead = true
      const stream = isInsideFrame ? undefined : await readRest(after)
      return stream ? { stream } : { end: failure }
    },
  })
}

/** Asks the processes first, because a process that has the run knows more than the record. The record is read when no process has the run. */
async function orRecorded<A, B>(ask: () => Promise<A>, read: () => Promise<B | undefined>): Promise<A | B> {
  try {
    return await ask()
  } catch (cause) {
    const isUnknown = hasKind(cause, 'not_found')
    if (!isUnknown && !isAway(cause)) throw cause
    const recorded = await read().catch((failure: unknown) => {
      throw isUnknown ? failure : cause
    })
    if (recorded === undefined) throw cause
    return recorded
  }
}

/** A process frees the events of a run once they are stored, and with them its phases and its request. */
async function withPhases(run: RunSummary, read: () => Promise<RunSummary | undefined>): Promise<RunSummary> {
  const isComplete = run.ended_at === null || run.phases !== undefined
  if (isComplete || run.kind === 'flow' || run.kind === 'plan') return run
  const recorded = await read().catch((cause: unknown) => {
    if (!isAway(cause)) throw cause
    return undefined
  })
  const { phases, request } = recorded ?? {}
  return phases || request ? { ...run, ...(phases && { phases }), ...(request && { request }) } : run
}

/** When a run has ended, in milliseconds since 1970; `undefined` while it continues. */
async function endOf(broker: Pick<Broker, 'getRun'>, tenant: TenantId, runId: string): Promise<number | undefined> {
  try {
    const { ended_at } = await broker.getRun(tenant, runId)
    return ended_at === null ? undefined : Date.parse(ended_at)
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return 0
    if (!isAway(cause)) throw cause
    return undefined
  }
}

/** A record is written within this time after the end of its run. */
const RECORDED_WITHIN_MS = 1_000
const LOOK_EVERY_MS = 50

/** Reads the record of a run, and repeats this for a while if there is none yet. Returns none if the store does not answer. */
async function recordedSoon<T>(
  endedMs: number | undefined,
  read: () => Promise<T | undefined>,
): Promise<T | undefined> {
  if (endedMs === undefined) return undefined
  for (;;) {
    const recorded = await read().catch((cause: unknown) => {
      if (!isAway(cause)) throw cause
      return undefined
    })
    if (recorded !== undefined || Date.now() > endedMs + RECORDED_WITHIN_MS) return recorded
    await sleep(LOOK_EVERY_MS)
  }
}

type Following = { tenant: TenantId; runId: string; after: number; areSessionsKept: boolean }

/** The frames of a run after number `after`, as far as they are recorded. */
async function replay(
  history: RunHistory,
  { tenant, runId, after, areSessionsKept }: Following,
): Promise<FrameStream | undefined> {
  const record = await history.get(tenant, runId)
  if (!record) return undefined
  // If the run was recorded as lost, frames that its process stored later would show another end.
  const frames = record.event_count === 0 ? undefined : await history.frames(tenant, runId)
  if (frames !== undefined) return piecesOf(frames, after)
  const isSessionKept = areSessionsKept && record.session_id !== undefined
  const code = record.code === 'worker_lost' ? 'worker_lost' : 'stream_gap'
  return streamOf(failureFrame(isLost(record) ? LOST_SEQ : after, code, { isSessionKept }))
}

async function* streamOf(frames: Frames): FrameStream & AsyncGenerator<Frames, void, undefined> {
  yield frames
}

/** Frames are sent in pieces of this size, so that a slow client takes little memory. */
const PIECE_CHARS = 64 * 1024
/** Explains to clients why event numbers are missing. SSE clients ignore a comment. */
const NOTE = ': recorded without deltas\n\n'
const FRAME = /id: (\d+)\n[^]*?\n\n/gy

async function* piecesOf(text: string, after: number): AsyncGenerator<Frames, void, undefined> {
  let piece = NOTE
  let lastSeq = after
  for (const [frame, seq] of text.matchAll(FRAME)) {
    if (Number(seq) <= after) continue
    if (piece.length + frame.length > PIECE_CHARS) {
      yield { text: piece, lastSeq }
      piece = ''
    }
    piece += frame
    lastSeq = Number(seq)
  }
  yield { text: piece, lastSeq }
}
