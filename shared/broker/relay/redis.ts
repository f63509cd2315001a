import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import { createRedisPermissionStore } from '../permissions/redis-store.ts'
import { Lease } from '../placement/lease.ts'
import type { MemberFields } from '../placement/members.ts'
import type { Owners } from '../placement/owners.ts'
import { createRedisMembers } from '../placement/redis-members.ts'
import { createRedisOwners } from '../placement/redis-owners.ts'
import type { Broker, Inbox, PermissionStore } from '../port.ts'
import type { RedisLink } from '../redis-link.ts'
import { RedisBroker } from './redis-broker.ts'
import { SessionHandoff, type TransferableSession } from './redis-handoff.ts'
import { createRedisInbox } from './redis-inbox.ts'
import { type NodeHandlers, RedisNode } from './redis-node.ts'

/** Redis may be away for so long before what is relayed over it is given up (reliability.md, R rows). */
const RELAY_PATIENCE_MS = 10_000
const WATCH_MS = 500
const CLAIM_ATTEMPTS = 10
/** Owner keys hold for a day. */
const REFRESH_MS = 3_600_000
/** How long a leaving worker waits for another one to be there. */
const SUCCESSOR_MS = 2_000

type Joining = { pid: number; log: Log; metrics: Metrics }

/** Whether the process can take work, for its load balancer. */
export type Readiness = { isRedisAway: boolean; isDraining: boolean }

export type GatewayRelay = {
  broker: Broker
  epoch(): number
  readiness(): Readiness
  /**
   * Not ready at once, for load balancers to look away within `graceMs`. Then no stream is opened any more, and those still
   * open after `streamsMs` end with `worker_draining`; their runs go on (T_drain).
   */
  drain(times: { graceMs: number; streamsMs: number }): Promise<void>
  stop(): Promise<void>
}

/** Joins as a gateway: the broker that its routes call (design §4). */
export async function joinAsGateway(link: RedisLink, { pid, log, metrics }: Joining): Promise<GatewayRelay> {
  let isDraining = false
  const describe = (): MemberFields => ({
    role: 'gateway',
    state: isDraining ? 'draining' : 'active',
    load: relay.streams.size,
    pid,
  })
  const relay: RedisBroker = new RedisBroker({
    node: () => node,
    owners: createRedisOwners(link),
    book: await createRedisPermissionStore(link),
    isAway: () => link.awayMs() > 0,
    metrics,
  })
  const node: RedisNode = new RedisNode(
    { link, members: createRedisMembers(link), describe, lease: new Lease(), log, metrics },
    {
      ...NOTHING,
      onRecord: (from, received) => relay.onRecord(from, received),
      onMembers: (members) => relay.onMembers(members),
      onMemberLost: (epoch) => relay.onGone(epoch),
      onUndelivered: (epoch) => relay.onUnheard(epoch),
      // Workers have closed what they sent to the old epoch.
      onEvicted: () => relay.streams.fail('relay_unavailable'),
    },
  )
  await node.start()
  const watch = setInterval(() => {
    if (link.awayMs() > RELAY_PATIENCE_MS) relay.streams.fail('relay_unavailable')
  }, WATCH_MS)
  return {
    broker: relay.broker,
    epoch: () => node.epoch,
    readiness: () => ({ isRedisAway: link.awayMs() > 0, isDraining }),
    async drain({ graceMs, streamsMs }) {
      isDraining = true
      await sleep(graceMs)
      relay.isClosing = true
      await relay.streams.ended(streamsMs)
      relay.streams.fail('worker_draining')
    },
    async stop() {
      clearInterval(watch)
      await node.stop()
    },
  }
}

/** A worker as the cluster sees it. */
export type ClusterWorker<S extends OwnedSession> = {
  inbox: Inbox
  liveRuns(): number
  isDraining(): boolean
  drain(graceMs: number): Promise<void>
  sessions(): Iterable<S>
  adopt(state: S['state']): void
  release(session: S): void
  /** This process was judged dead: its runs and sessions are nobody's, and have to go. */
  abortAll(): void
  onSessionRemoved: (session: S) => void
}

type OwnedSession = TransferableSession & { settled(): Promise<void> }

export type WorkerRelay = {
  epoch(): number
  readiness(): Readiness
  /** Leaves the ring, lets runs end for `graceMs`, and hands each session over once nothing of it runs (design §4.8). */
  drain(graceMs: number): Promise<void>
  stop(): Promise<void>
}

/** Joins as a worker: gateways' calls reach its inbox, its runs' frames reach them (design §4). */
export async function joinAsWorker<S extends OwnedSession>(
  link: RedisLink,
  worker: ClusterWorker<S>,
  { pid, log, lease, metrics }: Joining & { lease: Lease },
): Promise<WorkerRelay> {
  const owners = createRedisOwners(link)
  const inbox = createRedisInbox(
    worker.inbox,
    (state) => {
      if (worker.isDraining()) throw leavingToo()
      worker.adopt(state)
    },
    () => node,
  )
  const handOver = new SessionHandoff(() => node, owners)
  const report = (cause: unknown) => log.error('the cluster was not told of a session', { cause })
  const describe = (): MemberFields => ({
    role: 'worker',
    state: worker.isDraining() ? 'draining' : 'active',
    load: worker.liveRuns(),
    pid,
  })
  const node: RedisNode = new RedisNode(
    { link, members: createRedisMembers(link), describe, lease, log, metrics },
    {
      ...NOTHING,
      onRecord(from, received) {
        inbox.onRecord(from, received)
        handOver.onRecord(received)
      },
      onMembers: (members) => handOver.onMembers(members),
      onMemberLost: (epoch) => handOver.onGone(epoch),
      onEvicted: () => worker.abortAll(),
      onRedisEmptied: () => claimAll(),
    },
  )
  const claimAll = () => {
    for (const session of worker.sessions()) void claimAnew(session, { owners, node, worker, report })
  }
  const refresh = setInterval(claimAll, REFRESH_MS)
  worker.onSessionRemoved = ({ tenant, id }) => void owners.release(tenant, id, node.epoch).catch(report)
  await node.start()
  return {
    epoch: () => node.epoch,
    readiness: () => ({ isRedisAway: link.awayMs() > 0, isDraining: worker.isDraining() }),
    async drain(graceMs) {
      const ended = worker.drain(graceMs)
      await node.announce().catch(report) // Without Redis nobody hears of it, and the runs end all the same.
      if (!isEmpty(worker.sessions())) await handOver.ready(SUCCESSOR_MS)
      const passAll = Array.from(worker.sessions(), async (session) => {
        await session.settled()
        if (await handOver.transfer(session)) worker.release(session)
      })
      const outcomes = await Promise.allSettled(passAll)
      for (const outcome of outcomes) if (outcome.status === 'rejected') report(outcome.reason)
      await ended
      await node.flushed()
    },
    async stop() {
      clearInterval(refresh)
      await node.stop()
    },
  }
}

type Claimant<S extends OwnedSession> = {
  owners: Owners
  node: RedisNode
  worker: ClusterWorker<S>
  report(cause: unknown): void
}

/** Says again whose the session is, until Redis has heard it. Who has been forgotten and comes second lets go (rule 3). */
async function claimAnew<S extends OwnedSession>(session: S, { owners, node, worker, report }: Claimant<S>) {
  for (let attempt = 1; attempt <= CLAIM_ATTEMPTS; attempt++) {
    if (attempt > 1 && !Array.from(worker.sessions()).includes(session)) return // It was deleted meanwhile.
    try {
      const owner = await owners.claim(session.tenant, session.id, node.epoch)
      if (owner !== node.epoch) worker.release(session)
      return
    } catch (cause) {
      if (attempt === CLAIM_ATTEMPTS) return report(cause)
      await sleep(WATCH_MS)
    }
  }
}

const leavingToo = () => new AppError('unavailable', 'this worker is leaving too', { code: 'worker_draining' })

const isEmpty = (items: Iterable<unknown>): boolean => items[Symbol.iterator]().next().done === true

const NOTHING: NodeHandlers = {
  onRecord: () => {},
  onMembers: () => {},
  onMemberLost: () => {},
  onEvicted: () => {},
  onRedisEmptied: () => {},
  onUndelivered: () => {},
}

/** A worker's permission book rings its own bell. */
export const openWorkerPermissions = (link: RedisLink, pid: number): Promise<PermissionStore> =>
  createRedisPermissionStore(link, `ae:bell:${pid}:${Date.now().toString(36)}`)
