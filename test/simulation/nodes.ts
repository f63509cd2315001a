import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { BusyMarks } from '../../services/worker/sessions/busy-marks.ts'
import type { Session } from '../../services/worker/sessions/session.ts'
import { createWorker, type Worker, type WorkerLimits } from '../../services/worker/worker.ts'
import type { ModelProvider } from '../../shared/agent/providers/port.ts'
import { createBusySessions } from '../../shared/agent/sessions/busy-sessions.ts'
import { createSessionStore } from '../../shared/agent/sessions/store.ts'
import { succeed, type Tool, type ToolBox } from '../../shared/agent/tools/port.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import type { MemoryCluster } from '../../shared/cluster/memory-cluster.ts'
import { claimsOf } from '../../shared/cluster/owners/held-claims.ts'
import type { SessionKey } from '../../shared/cluster/owners/owners.ts'
import { GatewayRelay } from '../../shared/cluster/relay/gateway/gateway.ts'
import type { ClusterPorts } from '../../shared/cluster/relay/member.ts'
import { WorkerRelay } from '../../shared/cluster/relay/worker/worker.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { createServerModels } from '../../shared/work/runs/models.ts'
import type { Workspaces } from '../../shared/work/runs/workspaces.ts'
import { NO_REPORTER } from '../support/no-reporter.ts'
import type { FaultyStore } from './faulty-store.ts'
import { scriptedModel, scriptOf } from './model.ts'
import { permissionsOver } from './permissions.ts'
import { Owner, type Time } from './time.ts'
import type { FaultyWire } from './wire.ts'

const JOIN_AGAIN_MS = 500
const MAX_TOOL_MS = 1_500

export type SimWorld = {
  time: Time
  wire: FaultyWire
  cluster: MemoryCluster
  /** Left out: sessions and runs end with their worker. */
  store?: FaultyStore
  /** Called in the moment in which a tool acts. */
  onEffect(key: string, node: WorkerNode): void
  /** Called when the model is asked this prompt. */
  onAsked(key: string, node: WorkerNode): void
  /** A worker has drained and leaves. */
  onLeft(node: WorkerNode): void
  /** Called with a failure that the product calls a bug. */
  onBug(what: string): void
}

/** A gateway of the simulated cluster. */
export class GatewayNode {
  readonly owner: Owner
  readonly relay: GatewayRelay
  /** When it began to serve; `undefined` before. */
  readyAt: number | undefined
  readonly #time: Time

  constructor(name: string, world: SimWorld) {
    this.owner = new Owner(name)
    this.#time = world.time
    const ports = connect(this.owner, world)
    const { sessions, busySessions } = storesOf(world, this.owner)
    const stored = sessions && {
      isStored: ({ tenant, id }: SessionKey) => sessions.isLeft(tenant, id),
      busySessions,
    }
    const deps = { pid: 1, log: logOf(world), metrics: NO_METRICS, ...stored }
    this.relay = this.owner.as(() => new GatewayRelay(ports, deps))
    world.time.after(this.owner, 0, () => void this.#join())
  }

  async #join(): Promise<void> {
    await joined(() => this.relay.join())
    this.readyAt = this.#time.nowMs
  }
}

/** A worker of the simulated cluster, with the engine and a scripted model. */
export class WorkerNode {
  readonly owner: Owner
  readonly relay: WorkerRelay<Session>
  readonly worker: Worker
  readonly lease = new Lease()
  /** When it began to drain; `undefined` before. */
  drainsSince: number | undefined
  hasLeft = false
  readonly #world: SimWorld

  constructor(name: string, world: SimWorld) {
    this.#world = world
    this.owner = new Owner(name)
    const ports = connect(this.owner, world)
    ;[this.worker, this.relay] = this.owner.as(() => this.#create(ports))
    world.time.after(this.owner, 0, () => void joined(() => this.relay.join()))
  }

  /** Ends as after SIGTERM. */
  drain(graceMs: number): void {
    const { time } = this.#world
    this.drainsSince = time.nowMs
    const end = async () => {
      await this.relay.drain(graceMs)
      await this.worker.sessionsSettled()
      this.hasLeft = true
      this.#world.onLeft(this)
      await this.relay.stop()
      time.kill(this.owner)
    }
    time.after(this.owner, 0, () => void end())
  }

  #create(ports: ClusterPorts): [Worker, WorkerRelay<Session>] {
    const log = logOf(this.#world)
    const { sessions, busySessions } = storesOf(this.#world, this.owner)
    const claims = claimsOf(() => relay)
    const owner = () => String(relay.epoch)
    const worker = createWorker({
      stored: undefined,
      keptSessions: sessions && {
        store: sessions,
        marks: new BusyMarks({ store: busySessions, logs: sessions, claims, owner }),
      },
      claims,
      models: createServerModels({
        primary: { provider: this.#model(), model: 'scripted' },
        fallback: undefined,
        priceOf: () => 0,
        windowOf: () => undefined,
      }),
      toolBox: this.#toolBox(),
      schemas: NO_SCHEMAS,
      permissions: ports.permissions,
      planQueue: () => async () => ({ note: 'no queue' }),
      fence: this.lease,
      isHeapHigh: () => false,
      reporter: NO_REPORTER,
      admission: NO_ADMISSION,
      metrics: NO_METRICS,
      workspaces: NO_WORKSPACES,
      limits: LIMITS,
      log,
    })
    const relay: WorkerRelay<Session> = new WorkerRelay(ports, worker, {
      pid: 1,
      lease: this.lease,
      log,
      metrics: NO_METRICS,
    })
    return [worker, relay]
  }

  #model(): ModelProvider {
    return {
      ...scriptedModel,
      stream: (request, signal) => {
        this.#world.onAsked(scriptOf(request).key, this)
        return scriptedModel.stream(request, signal)
      },
    }
  }

  #toolBox(): ToolBox {
    const tool = (name: string, defaultPolicy: Tool['defaultPolicy']): Tool => ({
      name,
      description: name,
      inputSchema: {},
      defaultPolicy,
      describe: () => `${name} wants to run`,
      run: async ({ key }, { assertMayAct }) => {
        await sleep(this.#world.time.random.between(1, MAX_TOOL_MS))
        assertMayAct()
        this.#world.onEffect(String(key), this)
        return succeed('done')
      },
    })
    const tools = [tool('Effect', 'allow'), tool('Ask', 'ask')]
    return {
      tools,
      find: (name) => tools.find((each) => each.name === name),
      policyOf: (name) => (name === 'Ask' ? 'ask' : 'allow'),
      problemWith: async () => undefined,
    }
  }
}

function connect(owner: Owner, { time, wire, cluster }: SimWorld): ClusterPorts {
  const ports = cluster.connect()
  wire.connect(ports.bus, owner)
  return { ...ports, permissions: permissionsOver(ports.permissions, { bus: ports.bus, owner, time }) }
}

/** The stored sessions, as this process reaches them; `undefined` where nothing is stored. */
function storesOf({ store }: SimWorld, owner: Owner) {
  if (!store) return {}
  const opened = store.connect(owner)
  const { sessionIdleMs: idleMs, runResumeMs: resumeMs } = LIMITS
  return { sessions: createSessionStore(opened, { idleMs, resumeMs }), busySessions: createBusySessions(opened) }
}

async function joined(join: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await join()
    } catch {
      await sleep(JOIN_AGAIN_MS) // Redis is away.
    }
  }
}

/** The product says in its log what it takes for a bug. */
const logOf = ({ time, onBug }: SimWorld): Log => ({
  error(message, fields) {
    if (message.includes('bug')) onBug(`${time.current.name}: ${message}: ${inspect(fields)}`)
  },
  warn() {},
  info() {},
  debug() {},
})

const NO_SCHEMAS = {
  of: () => {
    throw new Error('no run of the simulation has a schema')
  },
}

const NO_WORKSPACES: Workspaces = {
  open: () => '/nowhere',
  openKept: () => '/nowhere',
  remove: async () => {},
  release() {},
  openCount: 0,
  sweep: async () => {},
}

const LIMITS: WorkerLimits = {
  runsPerWorker: 100,
  runsPerTenant: 100,
  runResumeMs: 20_000,
  sessionsPerWorker: 100,
  sessionsPerTenant: 100,
  sessionMemoryBytes: 1e6,
  tenantShare: 1,
  sessionIdleMs: 600_000,
  permissionTimeoutMs: 6_000,
  clientToolTimeoutMs: 6_000,
  maxTurns: 8,
  customerEngines: 8,
  customerIdleMs: 60_000,
  customerHistoryEntries: 10,
  customerHistoryChars: 4_000,
}
