import { isQueuedRun, newId, newRunId, newToken } from '../kernel/ids.ts'
import type { TenantId } from '../kernel/tenant.ts'
import type { Broker, OnNamed, OpenedRun } from './commands/broker.ts'
import type { Inbox, RunInbox } from './commands/inbox.ts'
import { mergeRuns } from './commands/pages.ts'
import type { RunAccess, RunProcesses } from './following/port.ts'
import { type QueuedRunSource, QueuePlaces } from './following/queue-places.ts'
import { RunFinder } from './following/run-finder.ts'
import { CursorStream } from './journal/cursor-stream.ts'
import { answerCall, reply } from './permissions/reply.ts'
import type { PermissionStore } from './permissions/store.ts'

/** The executor of the same process, and its runs. The executor calls `runs.waiting.onStarted` for each run that it begins. */
export type LocalQueue = { inbox: RunInbox; runs: RunFinder }

/** `epoch` is the number by which the store names the executor of this process. */
export function createLocalQueue(inbox: RunInbox, epoch: number, sources: readonly QueuedRunSource[]): LocalQueue {
  const processes = localCalls(inbox, epoch)
  return { inbox, runs: new RunFinder({ places: new QueuePlaces(sources, processes), processes }) }
}

/**
 * The broker of the standalone form: gateway, worker and executor are one process, so a command is a function call. Without a
 * `queue` there are no queued runs.
 */
export function createMemoryBroker(inbox: Inbox, permissions: PermissionStore, queue?: LocalQueue): Broker {
  const onWorker: RunAccess = {
    getRun: async (tenant, runId) => inbox.getRun(tenant, runId),
    async followRun(tenant, runId, after) {
      const frames = new CursorStream(inbox.followRun(tenant, runId, after))
      try {
        await inbox.acceptRun(tenant, runId)
      } catch (cause) {
        await frames.return()
        throw cause
      }
      return frames
    },
    cancelRun: async (tenant, runId) => inbox.cancelRun(tenant, runId),
  }
  const queued = queue?.runs ?? createLocalQueue(inbox, 0, []).runs
  const accessTo = (runId: string) => (isQueuedRun(runId) ? queued : onWorker)
  const inboxes = [inbox, ...(queue ? [queue.inbox] : [])]
  const folderInbox = (scopeId: string) => (isQueuedRun(scopeId) && queue ? queue.inbox : inbox)
  return {
    ...localSessions(inbox),
    ...localStarts(inbox),
    async listRuns(tenant, filter) {
      const pages = inboxes.map((each) => each.listRuns(tenant, filter))
      return mergeRuns(pages, filter.limit)
    },
    getRun: (tenant, runId) => accessTo(runId).getRun(tenant, runId),
    followRun: (tenant, runId, after) => accessTo(runId).followRun(tenant, runId, after),
    cancelRun: (tenant, runId) => accessTo(runId).cancelRun(tenant, runId),
    steerRun: async (...args) => inbox.steerRun(...args),
    listFiles: async (...args) => folderInbox(args[1]).listFiles(...args),
    readFile: async (...args) => folderInbox(args[1]).readFile(...args),
    findPermission: (tenant, scopeId, id) => permissions.find({ tenant, scopeId, id }),
    replyPermission: (tenant, scopeId, id, answer) => reply(permissions, { tenant, scopeId, id }, answer),
    answerCall: (tenant, scopeId, id, answer) => answerCall(permissions, { tenant, scopeId, id }, answer),
    listPermissions: (tenant, page) => permissions.list(tenant, page),
    listRemembered: async (tenant, page) => inbox.listRemembered(tenant, page),
    forgetRemembered: async (...args) => inbox.forgetRemembered(...args),
  }
}

function localStarts(inbox: Inbox): Pick<Broker, 'startRun' | 'sendMessage' | 'estimateRun'> {
  type Start = { tenant: TenantId; begin(runId: string): Promise<void> | void; onNamed: OnNamed | undefined }
  const start = async ({ tenant, begin, onNamed }: Start): Promise<OpenedRun> => {
    const runId = newRunId()
    if (onNamed) await onNamed(runId)
    const beginning = begin(runId)
    if (beginning) await beginning
    const accepting = inbox.acceptRun(tenant, runId)
    // Not awaited: a client that leaves a background run first follows it, and waits for that call.
    if (accepting) accepting.catch(() => {})
    return { runId, frames: new CursorStream(inbox.followRun(tenant, runId, 0)) }
  }
  return {
    estimateRun: async (...args) => inbox.estimateRun(...args),
    startRun: (tenant, request, onNamed) =>
      start({ tenant, begin: (runId) => inbox.startRun(tenant, runId, request), onNamed }),
    sendMessage: (tenant, sessionId, message, onNamed) =>
      start({ tenant, begin: (runId) => inbox.sendMessage(tenant, runId, { ...message, sessionId }), onNamed }),
  }
}

type SessionCalls = Pick<
  Broker,
  'createSession' | 'branchOf' | 'getSession' | 'listSessions' | 'listMessages' | 'renameSession' | 'deleteSession'
>

const localSessions = (inbox: Inbox): SessionCalls => ({
  createSession: async (tenant, sessionId = newId('sess'), ...messages) =>
    inbox.createSession(tenant, sessionId, newToken(), ...messages),
  branchOf: async (...args) => inbox.branchOf(...args),
  getSession: async (...args) => inbox.getSession(...args),
  listSessions: async (...args) => inbox.listSessions(...args),
  listMessages: async (...args) => inbox.listMessages(...args),
  renameSession: async (...args) => inbox.renameSession(...args),
  deleteSession: (tenant, sessionId) => inbox.deleteSession(tenant, sessionId),
})

const localCalls = (inbox: RunInbox, own: number): RunProcesses => ({
  isAlive: async (epoch) => epoch === own,
  getRun: async ({ tenant, runId }) => inbox.getRun(tenant, runId),
  followRun: async ({ tenant, runId }, after) => new CursorStream(inbox.followRun(tenant, runId, after)),
  cancelRun: async ({ tenant, runId }) => inbox.cancelRun(tenant, runId),
})
