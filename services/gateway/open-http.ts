import type { Broker } from '../../shared/broker/port.ts'
import type { RedisLink } from '../../shared/broker/redis-link.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Form } from '../../shared/config/fields.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { Ledger } from '../../shared/store/ledger.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { hostNames } from '../http/host.ts'
import { createServer } from '../http/server.ts'
import { createApp } from './app.ts'
import type { CorsRules } from './middleware/cors.ts'
import { openIdentify } from './open-identify.ts'
import { openRateLimiter } from './open-rate-limit.ts'

/** api.md: the standalone form serves the same paths under another prefix. */
const BASE_PATH: Record<Form, string> = { standalone: '/v1', cluster: '/api/v1' }

type HttpParts = {
  form: Form
  broker: Broker
  toolBox: ToolBox
  ledger: Ledger | undefined
  /** Of a process that is joined to the cluster; the rate limit goes over it where it is shared. */
  link?: Pick<RedisLink, 'run'>
  log: Log
  metrics: Metrics
}

/** The public HTTP face on HOST and PORT. It listens when this resolves; `url` ends with the base path. */
export async function openHttp(
  config: Config,
  { form, broker, toolBox, ledger, link, log, metrics }: HttpParts,
): Promise<{ url: string; drain(): void; close(deadlineMs: number): Promise<void> }> {
  const basePath = BASE_PATH[form]
  const names = hostNames({ host: config.host, isStandalone: form === 'standalone', allowedHosts: config.allowedHosts })
  const { identify, close: closeIdentify } = await openIdentify(config, log)
  const { limiter, close: closeLimiter } = await openRateLimiter(config, { link, log })
  const app = createApp({
    basePath,
    broker,
    tools: toolBox.tools,
    ...(ledger && { ledger }),
    identify,
    ...(limiter && { limiter }),
    cors: corsOf(config),
    ...(names && { allowedHosts: names }),
    trustProxy: config.trustProxy,
    hasExplorer: config.hasExplorer,
    relay: config,
    log,
    metrics,
  })
  const server = createServer(app)
  const { address, family, port } = await server.listen(config.port, config.host)
  const host = family === 'IPv6' ? `[${address}]` : address
  return {
    url: `http://${host}:${port}${basePath}`,
    drain: () => server.drain(),
    async close(deadlineMs) {
      await server.close(deadlineMs)
      await Promise.all([closeIdentify(), closeLimiter()])
    },
  }
}

const corsOf = (config: Config): CorsRules => ({
  origins: config.corsOrigins,
  allowHeaders: config.corsAllowHeaders,
  exposeHeaders: config.corsExposeHeaders,
})
