import type { Broker } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config.ts'
import type { Form } from '../../shared/config-fields.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { Ledger } from '../../shared/store/ledger.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { createApp } from '../gateway/app.ts'
import { hostNames } from '../gateway/middleware/host.ts'
import { createMemoryRateLimiter } from '../gateway/rate-limiter.ts'
import { createServer } from '../gateway/server.ts'
import { openIdentify } from './identify.ts'

/** api.md: the standalone form serves the same paths under another prefix. */
const BASE_PATH: Record<Form, string> = { standalone: '/v1', cluster: '/api/v1' }

type HttpParts = {
  form: Form
  broker: Broker
  toolBox: ToolBox
  ledger: Ledger | undefined
  log: Log
  metrics: Metrics
}

/** The public HTTP face on HOST and PORT. It listens when this resolves; `url` ends with the base path. */
export async function openHttp(
  config: Config,
  { form, broker, toolBox, ledger, log, metrics }: HttpParts,
): Promise<{ url: string; drain(): void; close(deadlineMs: number): Promise<void> }> {
  const basePath = BASE_PATH[form]
  const names = hostNames({ host: config.host, isStandalone: form === 'standalone', allowedHosts: config.allowedHosts })
  const { identify, close: closeIdentify } = await openIdentify(config, log)
  const app = createApp({
    basePath,
    broker,
    tools: toolBox.tools,
    ...(ledger && { ledger }),
    identify,
    ...(config.rateLimitRpm > 0 && { limiter: createMemoryRateLimiter({ perMinute: config.rateLimitRpm }) }),
    cors: {
      origins: config.corsOrigins,
      allowHeaders: config.corsAllowHeaders,
      exposeHeaders: config.corsExposeHeaders,
    },
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
      await closeIdentify()
    },
  }
}
