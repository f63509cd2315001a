import { epochOfRun, isQueuedRun, isRunId, newId } from '../../../kernel/ids.ts'
import type { Broker } from '../../commands/broker.ts'
import type { RunFinder } from '../../following/run-finder.ts'
import type { Executors } from '../../members/executors.ts'
import { lessLoadedOfTwo, type Workers } from '../../members/workers.ts'
import { noWorker, type SessionRouter } from '../../owners/session-router.ts'
import { answerCall, reply } from '../../permissions/reply.ts'
import type { PermissionKey, PermissionStore } from '../../permissions/store.ts'
import type { CallArgs, CallResult } from '../wire/calls.ts'
import { listRemembered, listRuns, listSessions } from './lists.ts'
import type { RunStarts } from './run-starts.ts'
import { createRunId, type RunCalls, type WorkerCalls } from './worker-calls.ts'
import type { WorkerPlaces } from './worker-places.ts'

export type CommandParts = {
  workers: Workers
  executors: Executors
  calls: WorkerCalls
  places: WorkerPlaces
  /** The runs of workers, and those that were queued for executors. */
  runs: RunFinder
  queued: RunFinder
  runCalls: RunCalls
  sessions: SessionRouter
  starts: RunStarts
  permissions: PermissionStore
  expectRun: Required<Broker>['expectRun']
  /** Whether sessions outlive their worker (D32), and whether their runs do. */
  areSessionsKept: boolean
  areRunsKept: boolean
}

type FolderMethod = 'listFiles' | 'readFile'
type SessionMethod = 'branchOf' | 'getSession' | 'listMessages' | 'renameSession' | 'forgetRemembered' | FolderMethod

/** The commands of the API: each is a call of the worker or executor that has the session or run. */
export const createCommands = (parts: CommandParts): Broker => ({
  ...sessionCommands(parts),
  ...startCommands(parts),
  ...runCommands(parts),
  ...folderCommands(parts),
  ...permissionCommands(parts),
})

/** Calls a method of the session that the arguments name, at its owner. */
const callOwner =
  <M extends SessionMethod>({ sessions, calls }: CommandParts, method: M) =>
  (...args: CallArgs<M>): Promise<CallResult<M>> => {
    const [tenant, id] = args
    return sessions.callOwner({ tenant, id }, ({ epoch }) => calls.call({ epoch }, method, args))
  }

/** Calls a method of the run that the arguments name, where it is. */
const callRun =
  <M extends 'steerRun' | FolderMethod>(parts: CommandParts, method: M) =>
  (...args: CallArgs<M>): Promise<CallResult<M>> => {
    const [tenant, runId] = args
    return finderOf(parts, runId).callRun(tenant, runId, (place) => parts.runCalls.call(place, method, args))
  }

const finderOf = ({ runs, queued }: CommandParts, runId: string): RunFinder => (isQueuedRun(runId) ? queued : runs)

type SessionCommands = Pick<
  Broker,
  'createSession' | 'listSessions' | 'deleteSession' | 'listRemembered' | Exclude<SessionMethod, FolderMethod>
>

function sessionCommands(parts: CommandParts): SessionCommands {
  const { workers, calls, sessions, starts } = parts
  return {
    async createSession(tenant, id = newId('sess'), ...messages) {
      await starts.findWorkers()
      return sessions.create(
        { tenant, id },
        {
          create: ({ epoch, token }) => {
            const hasAlternative = workers.eligible.some((other) => other.epoch !== epoch)
            return calls.call({ epoch, hasAlternative }, 'createSession', [tenant, id, token, ...messages])
          },
          undo: ({ epoch, token }) => calls.callInBackground(epoch, 'deleteSession', [tenant, id, token]),
        },
      )
    },
    branchOf: callOwner(parts, 'branchOf'),
    getSession: callOwner(parts, 'getSession'),
    listSessions: (tenant, page) => listSessions(calls, { tenant, page, epochs: workers.alive }),
    listMessages: callOwner(parts, 'listMessages'),
    renameSession: callOwner(parts, 'renameSession'),
    deleteSession: (tenant, id) =>
      sessions.remove({ tenant, id }, ({ epoch, token }) =>
        calls.call({ epoch }, 'deleteSession', [tenant, id, token]),
      ),
    listRemembered: (tenant, page) => listRemembered(calls, { tenant, page, epochs: workers.alive }),
    forgetRemembered: callOwner(parts, 'forgetRemembered'),
  }
}

function startCommands(parts: CommandParts): Pick<Broker, 'startRun' | 'estimateRun' | 'sendMessage'> {
  const { workers, calls, runs, sessions, starts, areSessionsKept, areRunsKept } = parts
  return {
    async startRun(tenant, request, onNamed) {
      const opened = await starts.start(tenant, request, onNamed)
      if (!areRunsKept) return opened
      const { runId, frames } = opened
      return { runId, frames: runs.followed({ tenant, runId, epoch: epochOfRun(runId) }, frames) }
    },
    async estimateRun(...args) {
      await starts.findWorkers()
      const worker = lessLoadedOfTwo([...workers.eligible], Math.random)
      if (!worker) throw noWorker()
      return calls.call({ epoch: worker.epoch }, 'estimateRun', args)
    },
    sendMessage: (tenant, sessionId, message, onNamed) =>
      sessions.callOwner({ tenant, id: sessionId }, async ({ epoch }) => {
        const run = { tenant, runId: createRunId(epoch), epoch, isSessionKept: areSessionsKept }
        await onNamed?.(run.runId)
        const { runId, frames } = await starts.open(run, (stream) =>
          calls.call({ epoch }, 'sendMessage', [tenant, run.runId, { ...message, sessionId }, stream]),
        )
        return { runId, frames: runs.followed({ tenant, runId, epoch, isOfSession: true }, frames) }
      }),
  }
}

function runCommands(
  parts: CommandParts,
): Pick<Broker, 'listRuns' | 'expectRun' | 'getRun' | 'followRun' | 'cancelRun' | 'steerRun'> {
  const { workers, executors, calls, starts, expectRun } = parts
  return {
    expectRun,
    listRuns: (tenant, page) => listRuns(calls, { tenant, page, epochs: [...workers.alive, ...executors.alive] }),
    getRun: (tenant, runId) => finderOf(parts, runId).getRun(tenant, runId),
    async followRun(tenant, runId, after) {
      starts.refuseIfClosing()
      return finderOf(parts, runId).followRun(tenant, runId, after)
    },
    cancelRun: (tenant, runId) => finderOf(parts, runId).cancelRun(tenant, runId),
    steerRun: callRun(parts, 'steerRun'),
  }
}

/** The worker that has the session, or the run, also has its folder. */
function folderCommands(parts: CommandParts): Pick<Broker, FolderMethod> {
  const call = <M extends FolderMethod>(method: M) => {
    const [ofRun, ofSession] = [callRun(parts, method), callOwner(parts, method)]
    return (...args: CallArgs<M>) => (isRunId(args[1]) ? ofRun : ofSession)(...args)
  }
  return { listFiles: call('listFiles'), readFile: call('readFile') }
}

type PermissionCommands = Pick<Broker, 'listPermissions' | 'findPermission' | 'replyPermission' | 'answerCall'>

function permissionCommands({ permissions, places }: CommandParts): PermissionCommands {
  /** Withdraws a request whose run is lost, because a reply to it would have no effect (D37.2). */
  const withdrawIfLost = async (request: PermissionKey): Promise<void> => {
    const asked = await permissions.find(request)
    if (asked && (await places.isLost(request.tenant, asked.run_id)))
      await permissions.decide(request, { state: 'withdrawn' })
  }
  return {
    listPermissions: (tenant, page) =>
      permissions.list(tenant, page, async (runId) => !(await places.isLost(tenant, runId))),
    findPermission: (tenant, scopeId, id) => permissions.find({ tenant, scopeId, id }),
    async replyPermission(tenant, scopeId, id, answer) {
      const request = { tenant, scopeId, id }
      await withdrawIfLost(request)
      await reply(permissions, request, answer)
    },
    async answerCall(tenant, scopeId, id, answer) {
      const request = { tenant, scopeId, id }
      await withdrawIfLost(request)
      await answerCall(permissions, request, answer)
    },
  }
}
