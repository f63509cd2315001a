import { isOneShotSession, logSessionOf, oneShotSessionOf } from '../../../shared/agent/sessions/one-shot.ts'
import type { Inbox } from '../../../shared/cluster/commands/inbox.ts'
import { callersPatienceMs, withDeadline } from '../../../shared/kernel/async/deadline.ts'
import { isRunId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { storeUnavailable } from '../../../shared/platform/store/unavailable.ts'
import type { BusyMarks } from './busy-marks.ts'
import type { SessionSaver } from './session-saver.ts'
import type { Sessions } from './sessions.ts'
import type { StoredSessions } from './stored-sessions.ts'

export type DurableInboxDeps = {
  sessions: Sessions
  stored: StoredSessions
  saver: Pick<SessionSaver, 'save' | 'note' | 'refuseIfStalled'>
  /** Marks the sessions that have runs. Left out: runs end with this worker. */
  marks?: Pick<BusyMarks, 'add'> | undefined
}

/** How long the store may take when the caller does not say how long it waits. */
const STORE_MS = 800

/**
 * The inbox of a worker whose sessions are stored (D32): it opens the session that a command names, and answers when the change is stored. If that
 * takes longer than the caller waits, it refuses the command and undoes the change (D36).
 */
export function createDurableInbox(inbox: Inbox, deps: DurableInboxDeps): Inbox {
  const { stored, marks } = deps
  const sendMessage: Inbox['sendMessage'] = (tenant, runId, message) =>
    inTime(() =>
      stored.act(tenant, message.sessionId, () => {
        refuseIfLate()
        return inbox.sendMessage(tenant, runId, message)
      }),
    )
  return {
    ...inbox,
    sendMessage,
    ...(marks && keptRuns({ ...inbox, sendMessage }, { ...deps, marks })),
    createSession: createStored(inbox, deps),
    getSession: (...args) => stored.act(args[0], args[1], () => inbox.getSession(...args)),
    listMessages: (...args) => stored.act(args[0], args[1], () => inbox.listMessages(...args)),
    branchOf: (...args) => stored.act(args[0], args[1], () => inbox.branchOf(...args)),
    listFiles: (...args) => atFolder(stored, args, () => inbox.listFiles(...args)),
    readFile: (...args) => atFolder(stored, args, () => inbox.readFile(...args)),
    ...changedSessions(inbox, deps),
    deleteSession: (tenant, id, token) =>
      inTime(() =>
        stored.act(tenant, id, async () => {
          refuseIfLate()
          const session = deps.sessions.get(tenant, id)
          if (token === undefined || token === session.token) await stored.remove(session)
          await inbox.deleteSession(tenant, id, token)
        }),
      ),
  }
}

/** The folder of a run outside of sessions exists as long as the run. */
const atFolder = async <T>(
  stored: StoredSessions,
  [tenant, id]: [TenantId, string, ...unknown[]],
  act: () => Promise<T>,
): Promise<T> => (isRunId(id) ? act() : stored.act(tenant, id, act))

/** Throws when the session was opened too late for the caller, so that it is not changed. */
function refuseIfLate(): void {
  if (callersPatienceMs() <= 0) throw storeUnavailable('too slow')
}

const patienceMs = (): number => Math.min(callersPatienceMs(), STORE_MS)

/** Rejects with the store's reason while the caller still waits. */
const inTime = async <T>(work: () => T | Promise<T>): Promise<T> => {
  const done = work()
  return done instanceof Promise ? withDeadline(done, callersPatienceMs(), () => storeUnavailable('too slow')) : done
}

type ChangeDeps = Pick<DurableInboxDeps, 'sessions' | 'stored' | 'saver'>

/** The commands that change a session. A change that is not stored in time is undone. */
const changedSessions = (
  inbox: Inbox,
  { sessions, stored, saver }: ChangeDeps,
): Pick<Inbox, 'renameSession' | 'forgetRemembered'> => {
  const change = async <T>(tenant: TenantId, id: string, act: () => T | Promise<T>): Promise<T> => {
    refuseIfLate()
    const { title, remembered } = sessions.get(tenant, id)
    const before = [...remembered.entries]
    const answer = await act()
    const session = sessions.get(tenant, id)
    try {
      await saver.save(session, patienceMs())
    } catch (cause) {
      session.title = title
      remembered.restore(before)
      saver.note(session) // The failed write may have been carried out all the same, so the old state is written again.
      throw cause
    }
    return answer
  }
  return {
    renameSession: async (tenant, id, title) =>
      stored.act(tenant, id, () => change(tenant, id, () => inbox.renameSession(tenant, id, title))),
    forgetRemembered: async (tenant, id, toolName) =>
      stored.act(tenant, id, () => change(tenant, id, () => inbox.forgetRemembered(tenant, id, toolName))),
  }
}

const createStored =
  (inbox: Inbox, { sessions, stored, saver }: ChangeDeps): Inbox['createSession'] =>
  async (tenant, id, token, begin) => {
    const isKnown = sessions.find(tenant, id) !== undefined
    const summary = await inbox.createSession(tenant, id, token, begin)
    const session = sessions.get(tenant, id)
    try {
      await inTime(() => stored.add(session))
      if (session.conversation.messages.length > 0) await saver.save(session, patienceMs())
    } catch (cause) {
      if (!isKnown) {
        session.log?.close('refused')
        void stored.takeBack(session)
        await inbox.deleteSession(tenant, id, token).catch(() => {}) // It may have been removed meanwhile.
      }
      throw cause
    }
    return summary
  }

type KeptRunsDeps = Pick<DurableInboxDeps, 'sessions' | 'saver'> & { marks: Pick<BusyMarks, 'add'> }

/** Stores that a run is accepted. If the store is too slow, the run is withdrawn before it has begun. */
const accepting =
  (inbox: Inbox, { sessions, saver, marks }: KeptRunsDeps) =>
  async (tenant: TenantId, runId: string, sessionId: string): Promise<void> => {
    const session = sessions.get(tenant, sessionId)
    const isOneShot = isOneShotSession(sessionId)
    const written = Promise.all([!isOneShot && marks.add(session), saver.save(session, patienceMs())])
    try {
      await session.accept(withDeadline(written, patienceMs(), () => storeUnavailable('too slow')))
    } catch (cause) {
      if (isOneShot && session.log?.isUnwritten) session.log.close('deleted') // From now on nothing of the session is stored.
      await Promise.resolve(inbox.cancelRun(tenant, runId, { isAccepted: false })).catch(() => {}) // Fails when the run has gone with its session.
      throw cause
    }
  }

/**
 * A run's acceptance, its steering and its cancellation are answered once they are stored, so that a worker that
 * continues the session knows of them.
 */
const keptRuns = (
  inbox: Inbox,
  deps: KeptRunsDeps,
): Pick<Inbox, 'startRun' | 'sendMessage' | 'acceptRun' | 'steerRun' | 'cancelRun'> => {
  const { sessions, saver } = deps
  const store = accepting(inbox, deps)
  return {
    async startRun(tenant, runId, request) {
      saver.refuseIfStalled()
      await inbox.startRun(tenant, runId, request)
      await store(tenant, runId, oneShotSessionOf(runId))
    },
    async sendMessage(tenant, runId, message) {
      saver.refuseIfStalled()
      await inbox.sendMessage(tenant, runId, message)
      await store(tenant, runId, message.sessionId)
    },
    async acceptRun(tenant, runId) {
      const session = sessions.find(tenant, sessionOf(inbox, tenant, runId))
      const isNews = session?.runs?.confirmInBackground(runId)
      await inbox.acceptRun(tenant, runId)
      // If the worker dies, no gateway follows a background run: only the log then shows that it was accepted.
      if (session && isNews) await saver.save(session, patienceMs())
    },
    async steerRun(tenant, runId, steer) {
      saver.refuseIfStalled()
      await inbox.steerRun(tenant, runId, steer)
      const session = sessions.find(tenant, sessionOf(inbox, tenant, runId))
      if (session) await saver.save(session, patienceMs())
    },
    async cancelRun(tenant, runId, client) {
      await inbox.cancelRun(tenant, runId, client)
      const session = sessions.find(tenant, sessionOf(inbox, tenant, runId))
      const isOpen = session?.runs?.end(runId) ?? false
      if (session && (isOpen || session.log?.isDue)) await saver.save(session, patienceMs())
    },
  }
}

/** Empty for a run that was cancelled before it began: it is not known any more. */
function sessionOf(inbox: Inbox, tenant: TenantId, runId: string): string {
  try {
    return logSessionOf({ id: runId, sessionId: inbox.getRun(tenant, runId).session_id })
  } catch {
    return oneShotSessionOf(runId)
  }
}
