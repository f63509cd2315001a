import type { Inbox } from '../../../shared/cluster/commands/inbox.ts'
import { Lease } from '../../../shared/cluster/members/lease.ts'
import { createRedisPorts } from '../../../shared/cluster/redis-ports.ts'
import { GatewayRelay } from '../../../shared/cluster/relay/gateway/gateway.ts'
import type { ClusterWorker, OwnedSession } from '../../../shared/cluster/relay/worker/cluster-worker.ts'
import { WorkerRelay } from '../../../shared/cluster/relay/worker/worker.ts'
import { newToken } from '../../../shared/kernel/ids.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { waitForRedis } from '../../../shared/platform/redis/wait-for-redis.ts'

const log = createLog({ level: 'error' })
const MAX_LOAD = 8

type State = { tenant: TenantId; id: string; token: string; messages: readonly string[] }
export type SimulatedSession = OwnedSession & { readonly state: State }
export type SimulatedWorker = WorkerRelay<SimulatedSession> & {
  sessions: Set<SimulatedSession>
  leave(): Promise<void>
}

/** Joins a worker with connections of its own. Its relay is the real one; its sessions do nothing, and its load is random. */
export async function joinWorker(url: string, pid: number, onEvicted = () => {}): Promise<SimulatedWorker> {
  const link = await openRedisLink(url)
  const sessions = new Set<SimulatedSession>()
  const relay = new WorkerRelay(createRedisPorts(link), simulate(sessions, onEvicted), {
    pid,
    lease: new Lease(),
    log,
    metrics: NO_METRICS,
  })
  await waitForRedis(() => relay.join(), { log })
  const leave = async () => {
    await relay.stop()
    await link.close()
  }
  return Object.assign(relay, { sessions, leave })
}

/** Joins a gateway without requests. */
export async function joinGateway(url: string, pid: number): Promise<void> {
  const relay = new GatewayRelay(createRedisPorts(await openRedisLink(url)), { pid, log, metrics: NO_METRICS })
  await waitForRedis(() => relay.join(), { log })
}

/** A session with 1 KB of messages. */
export function createSession(id: string): SimulatedSession {
  const message = 'A message of one hundred and twenty-eight characters. '.padEnd(128, 'x')
  return sessionOf({
    tenant: DEFAULT_TENANT,
    id,
    token: newToken(),
    messages: Array.from({ length: 8 }, () => message),
  })
}

const sessionOf = (state: State): SimulatedSession => ({
  ...{ ...state, state, waiting: [], isBusy: false },
  rest: async () => {},
  hasten: () => {},
})

function simulate(sessions: Set<SimulatedSession>, onEvicted: () => void): ClusterWorker<SimulatedSession> {
  let isDraining = false
  return {
    inbox: {} as Inbox, // Nobody calls it: there are no requests.
    liveRuns: () => Math.floor(Math.random() * MAX_LOAD),
    isDraining: () => isDraining,
    async drain() {
      isDraining = true
    },
    holdQueues: () => {},
    runsServed: async () => {},
    knowsRun: () => false,
    sessions: () => sessions,
    oneShots: () => [],
    drainRuns: async () => false,
    leave: () => {},
    find: ({ tenant, id }) => [...sessions].find((session) => session.tenant === tenant && session.id === id),
    adopt(state) {
      const session = sessionOf(state)
      sessions.add(session)
      return session
    },
    keep: () => {},
    release: (session) => void sessions.delete(session),
    abortAll() {
      sessions.clear()
      onEvicted()
    },
  }
}
