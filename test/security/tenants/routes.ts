import { createApp } from '../../../services/gateway/app.ts'
import { createOpenIdentify } from '../../../services/gateway/identify.ts'
import type { Broker } from '../../../shared/broker/port.ts'
import { createLog } from '../../../shared/log.ts'
import { NO_METRICS } from '../../../shared/metrics.ts'

export type ApiRoute = { method: 'GET' | 'DELETE' | 'POST' | 'PUT'; path: string; params: readonly string[] }

type Layer = {
  route?: { path: string; methods: Record<string, boolean> }
  handle?: { stack?: Layer[] }
}

/** Reading comes first and storing last, and collections after what is in them, so that what one request leaves does not change the answers to the others. */
const METHODS = ['GET', 'DELETE', 'POST', 'PUT'] as const

/** Every method and path of the public API, from the router that serves them. */
export function routesOfApi(): ApiRoute[] {
  const app = createApp({
    basePath: '/v1',
    broker: {} as Broker,
    tools: [],
    identify: createOpenIdentify(),
    authentication: 'none',
    cors: { origins: [], allowHeaders: [], exposeHeaders: [] },
    trustProxy: false,
    hasExplorer: false,
    relay: { keepaliveMs: 15_000 },
    ledger: undefined,
    config: undefined,
    transcription: undefined,
    limiter: undefined,
    allowedHosts: undefined,
    metrics: NO_METRICS,
    log: createLog({ level: 'error' }),
  })
  const { stack } = app.router as unknown as { stack: Layer[] }
  const routes = routesIn(stack).toSorted((a, b) => paramsOf(b.path).length - paramsOf(a.path).length)
  return METHODS.flatMap((method) =>
    routes
      .filter(({ methods }) => methods[method.toLowerCase()])
      .map(({ path }) => ({ method, path, params: paramsOf(path) })),
  )
}

const routesIn = (stack: readonly Layer[]): { path: string; methods: Record<string, boolean> }[] =>
  stack.flatMap(({ route, handle }) => (route ? [route] : routesIn(handle?.stack ?? [])))

const paramsOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
