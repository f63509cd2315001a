import type { RequestListener } from 'node:http'
import type { Log } from '../../shared/kernel/log.ts'
import type { Metrics } from '../../shared/kernel/metrics.ts'
import type { Closer } from '../../shared/kernel/shutdown.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { redisOf } from '../../shared/platform/config/redis-place.ts'
import type { QueueMonitor } from '../../shared/work/queue/port.ts'
import { createHeapGuard, type IsHeapHigh } from '../http/heap.ts'
import { checkHost, hostNames } from '../http/host.ts'
import { listenOn } from '../http/listen.ts'
import { logRequests } from '../http/request-log.ts'
import { createServer, type ServerLimits, urlOf } from '../http/server.ts'
import type { OpsDeps } from './app.ts'
import { createQueues, type Queues } from './open-queues.ts'
import type { Sources } from './overview.ts'
import { watchQueue } from './queues.ts'
import { type Checks, createReadiness } from './readiness.ts'
import { MetricsRegistry } from './registry.ts'

/** Few clients probe and scrape. The other limits are those of the public listener. */
const LIMITS: Partial<ServerLimits> = { maxConnections: 256, backlog: 128 }
const CLOSE_MS = 1_000

/** The sources of the data on a process's pages; each can be set later. */
export type OpsPages = Omit<Sources, 'queue'>

export type Ops = {
  url: string
  metrics: Metrics
  /** While the heap is too full the process takes no new work, and `/readyz` is 503 with `memory`. */
  isHeapHigh: IsHeapHigh
  /** Shows the numbers of a queue in `/metrics`, and in the standalone form in `/queues`. Returns the queue. */
  watchQueue<Q extends QueueMonitor>(queue: Q): Q
  /** Sets the functions that the pages read their data from. */
  show(pages: OpsPages): void
  /** Call it when everything is open. From then on `/readyz` is 200 while all checks hold. */
  ready(checks: Checks): void
  /** Must be the first closer of a process: it makes `/readyz` 503 before anything else closes. */
  drain: Closer
  /** Must be the last closer among those of the listeners. */
  close: Closer
}

/**
 * Opens the ops listener on HOST and OPS_PORT (D1.3). It accepts requests when this resolves; `/readyz` is 503 until `ready` is
 * called.
 */
export async function openOps(settings: Settings['ops'], { form, log }: { form: Form; log: Log }): Promise<Ops> {
  const { host, opsPort, opsToken, allowedHosts } = settings
  const isStandalone = form === 'standalone'
  const readiness = createReadiness()
  const metrics = new MetricsRegistry()
  const isHeapHigh = createHeapGuard()
  const queues = createQueues({ redis: isStandalone ? undefined : redisOf(settings), log })
  const sources: Sources = {}
  // ALLOWED_HOSTS lists the hosts of the public listener. In a cluster Prometheus scrapes a process at the address of
  // its machine, so every host is allowed.
  const hosts = hostNames({ host, allowedHosts: isStandalone ? allowedHosts : [] })
  const parts = { form, hosts, readiness, metrics, queues, sources, token: opsToken, log }
  const server = createServer(
    createLazyListener(() => openApp(parts), log),
    LIMITS,
  )
  const address = await listenOn(server, { host, port: opsPort, setting: 'OPS_PORT' })
  return {
    url: urlOf(address),
    metrics,
    isHeapHigh,
    watchQueue(queue) {
      queues.watch(queue)
      sources.queue = queue
      watchQueue(metrics, queue)
      return queue
    },
    show: (given) => void Object.assign(sources, given),
    ready: (checks) => readiness.start({ ...checks, memory: () => !isHeapHigh() }),
    drain: { name: 'readiness', deadlineMs: CLOSE_MS, close: readiness.drain },
    close: { name: 'ops', deadlineMs: 4 * CLOSE_MS, close: () => close(server, queues) },
  }
}

type AppParts = Pick<OpsDeps, 'readiness' | 'token' | 'log'> & {
  hosts: ReturnType<typeof hostNames>
  metrics: MetricsRegistry
  queues: Queues
  sources: Sources
  form: Form
}

async function openApp({ hosts, metrics, queues, sources, form, ...parts }: AppParts): Promise<RequestListener> {
  const [{ createOpsApp }, { createExposition }, { createOverview }, { answerMembers }, { answerTenants }] =
    await Promise.all([
      import('./app.ts'),
      import('./exposition.ts'),
      import('./overview.ts'),
      import('./members.ts'),
      import('./tenants.ts'),
    ])
  return createOpsApp({
    requestLog: logRequests({ ...parts.log, info: parts.log.debug }), // At info level the probes would be most of the log.
    hostCheck: checkHost(hosts),
    exposition: createExposition(metrics),
    queues: queues.handle,
    overview: createOverview({ form, metrics, sources }),
    members: answerMembers(() => sources.members),
    tenants: answerTenants(() => sources.tenants),
    ...parts,
  })
}

async function close(server: ReturnType<typeof createServer>, queues: Queues): Promise<void> {
  await server.close(CLOSE_MS)
  await queues.close()
}

/** Loads the app at the first request, because Express slows down a start and many processes are never probed. */
function createLazyListener(open: () => Promise<RequestListener>, log: Log): RequestListener {
  let app: Promise<RequestListener> | undefined
  return (req, res) => {
    app ??= open()
    app.then(
      (handle) => handle(req, res),
      (cause: unknown) => {
        log.error('the ops listener cannot answer', { cause })
        res.destroy()
      },
    )
  }
}
