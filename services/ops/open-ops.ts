import type { RequestListener } from 'node:http'
import type { Config } from '../../shared/config/config.ts'
import type { Form } from '../../shared/config/fields.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { Closer } from '../../shared/shutdown.ts'
import { checkHost, hostNames } from '../http/host.ts'
import { logRequests } from '../http/request-log.ts'
import { createServer, type ServerLimits } from '../http/server.ts'
import { type Checks, createReadiness } from './readiness.ts'
import { MetricsRegistry } from './registry.ts'

/** Probes and scrapers are few; else the public listener's limits. */
const LIMITS: Partial<ServerLimits> = { maxConnections: 256, backlog: 128 }
const CLOSE_MS = 1_000

export type OpsConfig = Pick<Config, 'host' | 'opsPort' | 'opsToken' | 'allowedHosts'>

export type Ops = {
  url: string
  metrics: Metrics
  /** Everything is open: from now on `/readyz` is 200 while all of these hold. */
  ready(checks: Checks): void
  /** The first of a process's closers: `/readyz` is 503 before anything else closes. */
  drain: Closer
  /** The last of them. */
  close: Closer
}

/** The ops listener on HOST and OPS_PORT (D1.3). It listens when this resolves, and is not ready before it is told so. */
export async function openOps(config: OpsConfig, { form, log }: { form: Form; log: Log }): Promise<Ops> {
  const { host, opsPort, opsToken, allowedHosts } = config
  const isStandalone = form === 'standalone'
  const readiness = createReadiness()
  const metrics = new MetricsRegistry()
  // ALLOWED_HOSTS names the public listener's hosts: a cluster's probes come by the address of the machine.
  const names = isStandalone ? hostNames({ host, isStandalone, allowedHosts }) : undefined
  const openApp = async () => {
    const [{ createOpsApp }, { createExposition }] = await Promise.all([import('./app.ts'), import('./exposition.ts')])
    return createOpsApp({
      guards: [logRequests({ ...log, info: log.debug }), checkHost(names)], // A line per probe would be most of the log.
      readiness,
      exposition: createExposition(metrics),
      token: opsToken,
      log,
    })
  }
  const server = createServer(openedLater(openApp, log), LIMITS)
  const { address, family, port } = await server.listen(opsPort, host).catch((cause: unknown) => {
    throw isTaken(cause)
      ? new Error(`${host}:${opsPort} is taken: set OPS_PORT to a free port, or to 0 for any`)
      : cause
  })
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    metrics,
    ready: readiness.start,
    drain: { name: 'readiness', deadlineMs: CLOSE_MS, close: readiness.drain },
    close: { name: 'ops', deadlineMs: 2 * CLOSE_MS, close: () => server.close(CLOSE_MS) },
  }
}

/** The first request loads what answers it: a start waits for no prober, and most laptops have none. */
function openedLater(open: () => Promise<RequestListener>, log: Log): RequestListener {
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

const isTaken = (cause: unknown) => cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
