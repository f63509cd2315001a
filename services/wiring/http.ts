import type { Broker } from '../../shared/broker/port.ts'
import type { Config } from '../../shared/config.ts'
import type { Form } from '../../shared/config-fields.ts'
import type { Log } from '../../shared/log.ts'
import type { ToolBox } from '../../shared/tools/port.ts'
import { createApp } from '../gateway/app.ts'
import { createOpenIdentify, createTokenIdentify } from '../gateway/identify.ts'
import { hostNames } from '../gateway/middleware/host.ts'
import { createMemoryRateLimiter } from '../gateway/rate-limiter.ts'
import { createServer, type GatewayServer } from '../gateway/server.ts'

/** api.md: the standalone form serves the same paths under another prefix. */
const BASE_PATH: Record<Form, string> = { standalone: '/v1', cluster: '/api/v1' }

type HttpParts = { form: Form; broker: Broker; toolBox: ToolBox; log: Log }

/** The public HTTP face on HOST and PORT. It listens when this resolves; `url` ends with the base path. */
export async function openHttp(
  config: Config,
  { form, broker, toolBox, log }: HttpParts,
): Promise<{ url: string; close: GatewayServer['close'] }> {
  const basePath = BASE_PATH[form]
  const names = hostNames({ host: config.host, isStandalone: form === 'standalone', allowedHosts: config.allowedHosts })
  const app = createApp({
    basePath,
    broker,
    tools: toolBox.tools,
    identify: config.apiToken === undefined ? createOpenIdentify() : createTokenIdentify(config.apiToken),
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
  })
  const server = createServer(app)
  const { address, family, port } = await server.listen(config.port, config.host)
  const host = family === 'IPv6' ? `[${address}]` : address
  return { url: `http://${host}:${port}${basePath}`, close: (deadlineMs) => server.close(deadlineMs) }
}
