import { flushCompileCache } from 'node:module'
import { createMemoryBroker, createMemoryPermissionBook } from '../../shared/broker/memory.ts'
import { type Config, ConfigError, loadConfig } from '../../shared/config.ts'
import { createLog, type Log } from '../../shared/log.ts'
import { createPrices } from '../../shared/providers/prices.ts'
import { type Closer, createShutdown } from '../../shared/shutdown.ts'
import { createApp } from '../gateway/app.ts'
import { createOpenIdentify, createTokenIdentify } from '../gateway/identify.ts'
import { hostNames } from '../gateway/middleware/host.ts'
import { createMemoryRateLimiter } from '../gateway/rate-limiter.ts'
import { createServer } from '../gateway/server.ts'
import { openModels } from '../wiring/models.ts'
import { openTools } from '../wiring/tools.ts'
import { createWorker } from '../worker/worker.ts'

const EXIT_CONFIG = 78
/** After DRAIN_SECS: for streams to deliver their last frames, and for what the tools have open. */
const STREAMS_MS = 3_000
const TOOLS_MS = 5_000
const EXIT_MS = 10_000

/** The process: configuration in, signals to the end (D1.1). */
export async function main(): Promise<void> {
  const config = readConfig()
  if (!config) return
  const log = createLog({ level: config.logLevel, secrets: config.secrets })
  for (const warning of config.warnings) log.warn(warning)
  try {
    const { url, closers } = await openStandalone(config, log)
    onEnd(closers, config.drainMs, log)
    log.info('listening', { url: `${url}/v1`, model: config.model?.model, provider: config.model?.provider })
    flushCompileCache() // Else it is written at the end, and a process that is killed leaves none.
  } catch (cause) {
    log.error('the start failed', { cause: cause instanceof Error ? cause.message : cause })
    process.exit(1)
  }
}

/** Gateway and worker in one process, over the in-process broker (design §1). Listens when it resolves. */
export async function openStandalone(config: Config, log: Log): Promise<{ url: string; closers: Closer[] }> {
  const tools = await openTools(config, log)
  const book = createMemoryPermissionBook()
  const worker = createWorker({
    ...(await openModels(config)),
    toolBox: tools.toolBox,
    priceOf: createPrices(config.modelPrices),
    book,
    workspaceDir: config.workspaceDir,
    limits: config,
    log,
  })
  const app = createApp({
    basePath: '/v1',
    broker: createMemoryBroker(worker.inbox, book),
    tools: tools.toolBox.tools,
    identify: config.apiToken === undefined ? createOpenIdentify() : createTokenIdentify(config.apiToken),
    ...(config.rateLimitRpm > 0 && { limiter: createMemoryRateLimiter({ perMinute: config.rateLimitRpm }) }),
    cors: {
      origins: config.corsOrigins,
      allowHeaders: config.corsAllowHeaders,
      exposeHeaders: config.corsExposeHeaders,
    },
    ...allowedHosts(config),
    trustProxy: config.trustProxy,
    hasExplorer: config.hasExplorer,
    relay: config,
    log,
  })
  const server = createServer(app)
  const { address, family, port } = await server.listen(config.port, config.host)
  const streams = () => Promise.all([worker.drain(config.drainMs), server.close(config.drainMs + STREAMS_MS)])
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    closers: [
      { name: 'runs and streams', deadlineMs: config.drainMs + 2 * STREAMS_MS, close: streams },
      { name: 'tools', deadlineMs: TOOLS_MS, close: tools.close },
    ],
  }
}

/** Tells every mistake at once, before anything is opened (D1.3). */
function readConfig(): Config | undefined {
  try {
    return loadConfig(process.env, 'standalone')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.problems.join('\n')}\n`)
    process.exitCode = EXIT_CONFIG
    return undefined
  }
}

function allowedHosts({ host, allowedHosts: more }: Config): { allowedHosts?: readonly string[] } {
  const names = hostNames({ host, isStandalone: true, allowedHosts: more })
  return names ? { allowedHosts: names } : {}
}

function onEnd(closers: Closer[], drainMs: number, log: Log): void {
  const exit = (code: number) => process.exit(code)
  const shutdown = createShutdown({ closers, deadlineMs: drainMs + EXIT_MS, log, exit })
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => shutdown.signal(name))
  process.on('uncaughtException', (cause) => shutdown.crash(cause))
  process.on('unhandledRejection', (cause) => shutdown.rejection(cause))
}
