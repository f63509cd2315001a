import { createApp } from '../../../services/gateway/app.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { appDeps } from '../../support/app-defaults.ts'

export type ApiRoute = { method: 'GET' | 'DELETE' | 'POST' | 'PUT'; path: string; params: readonly string[] }

type Layer = {
  route?: { path: string; methods: Record<string, boolean> }
  handle?: { stack?: Layer[] }
}

/** Reading comes first and storing last, and collections after what is in them, so that what one request leaves does not change the answers to the others. */
const METHODS = ['GET', 'DELETE', 'POST', 'PUT'] as const

/** Every method and path of the public API, from the router that serves them. */
export function routesOfApi(): ApiRoute[] {
  const app = createApp(
    appDeps({
      hasExplorer: false,
      broker: {} as Broker,
      log: createLog({ level: 'error' }),
    }),
  )
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
