import type { Request, RequestHandler, Response } from 'express'
import { decodeCursor, encodeCursor } from '../../../shared/cursor.ts'
import { AppError } from '../../../shared/errors.ts'
import type { ProviderSpec } from '../../../shared/providers/catalogue.ts'
import type { EngineBody, InstanceBody } from '../../../shared/tenant-config/changes.ts'
import type { InstanceInspector } from '../../../shared/tenant-config/inspector.ts'
import type { TenantSettings } from '../../../shared/tenant-config/settings.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { ReadBody } from '../body.ts'
import { leaving } from '../leaving.ts'
import { tenantOf } from '../middleware/auth.ts'
import { CONFIG_NAME, pageOf, pathId } from '../params.ts'

/** The services behind the configuration endpoints. They exist in a process with a store and a master key. */
export type ConfigSurface = {
  settings: TenantSettings
  inspector: InstanceInspector
  /** The provider types, each with the models that it is known to have. */
  providers: () => readonly ProviderSpec[]
}

type Deps = { config: ConfigSurface | undefined; readBody: ReadBody }

/** Runtime configuration (api.md, D8). Without a master key every path answers 503. */
export function configRoutes({ config, readBody }: Deps): RouteTable {
  const enabled = enabledWith(config)
  return {
    '/config/engine': {
      get: enabled(
        ({ settings }) =>
          (_req, res) =>
            settings.engine(tenantOf(res)),
      ),
      put: enabled(({ settings }) => async (req, res) => {
        const body = await readBody<EngineBody>(req, res, 'EngineConfigRequest')
        return settings.putEngine(tenantOf(res), body)
      }),
    },
    '/config/providers': {
      get: enabled(({ providers }) => async () => ({ providers: providers(), next_cursor: null })),
    },
    ...secretRoutes(enabled, readBody),
    ...instanceRoutes(enabled, readBody),
  }
}

type Enabled = ReturnType<typeof enabledWith>

function secretRoutes(enabled: Enabled, readBody: ReadBody): RouteTable {
  return {
    '/config/secrets': {
      get: enabled(
        ({ settings }) =>
          async (req, res) =>
            listOf('secrets', await settings.secrets(tenantOf(res)), req),
      ),
    },
    '/config/secrets/:name': {
      get: enabled(
        ({ settings }) =>
          (req, res) =>
            settings.secret(tenantOf(res), secretName(req)),
      ),
      put: enabled(({ settings }) => async (req, res) => {
        const { value } = await readBody<{ value: string }>(req, res, 'SecretRequest')
        return settings.putSecret(tenantOf(res), secretName(req), value)
      }),
      delete: enabled(({ settings }) => async (req, res) => {
        await settings.deleteSecret(tenantOf(res), secretName(req))
        return { status: 'deleted' }
      }),
    },
  }
}

function instanceRoutes(enabled: Enabled, readBody: ReadBody): RouteTable {
  return {
    '/config/instances': {
      get: enabled(
        ({ settings }) =>
          async (req, res) =>
            listOf('instances', await settings.instances(tenantOf(res)), req),
      ),
    },
    '/config/instances/:name': {
      get: enabled(
        ({ settings }) =>
          (req, res) =>
            settings.instance(tenantOf(res), instanceName(req)),
      ),
      put: enabled(({ settings }) => async (req, res) => {
        const body = await readBody<InstanceBody>(req, res, 'InstanceRequest')
        return settings.putInstance(tenantOf(res), instanceName(req), body)
      }),
      delete: enabled(({ settings }) => async (req, res) => {
        await settings.deleteInstance(tenantOf(res), instanceName(req))
        return { status: 'deleted' }
      }),
    },
    ...inspectionRoutes(enabled, readBody),
  }
}

function inspectionRoutes(enabled: Enabled, readBody: ReadBody): RouteTable {
  return {
    '/config/instances/:name/discover': {
      post: enabled(
        ({ inspector }) =>
          (req, res) =>
            inspector.discover(tenantOf(res), instanceName(req), leaving(res)),
      ),
    },
    '/config/instances/:name/probe': {
      post: enabled(({ inspector }) => async (req, res) => {
        const { model } = await readBody<{ model: string }>(req, res, 'ProbeRequest')
        return inspector.probe(tenantOf(res), instanceName(req), { model, signal: leaving(res) })
      }),
    },
    '/config/instances/:name/capabilities': {
      get: enabled(
        ({ inspector }) =>
          (req, res) =>
            inspector.capabilities(tenantOf(res), instanceName(req)),
      ),
    },
  }
}

type Answer = (req: Request, res: Response) => Promise<object>

/** A handler that answers with JSON, or with 503 where configuration is disabled. */
const enabledWith =
  (config: ConfigSurface | undefined) =>
  (answer: (config: ConfigSurface) => Answer): RequestHandler => {
    if (!config) return refuseDisabled
    const respond = answer(config)
    return async (req, res) => {
      const body = await respond(req, res)
      if (!res.closed) res.json(body)
    }
  }

const secretName = (req: Request) => pathId(req, 'name', { ...CONFIG_NAME, noun: 'secret' })
const instanceName = (req: Request) => pathId(req, 'name', { ...CONFIG_NAME, noun: 'instance' })

/** One page of items that are ordered by name (D2.7). */
function listOf(plural: string, items: readonly { name: string }[], req: Request): object {
  const { limit, cursor } = pageOf(req)
  const [after] = cursor === undefined ? [] : decodeCursor(cursor, ['string'])
  const rest = after === undefined ? items : items.filter(({ name }) => name > String(after))
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  return { [plural]: page, next_cursor: last && rest.length > limit ? encodeCursor([last.name]) : null }
}

/** Answers for everything that needs what tenants have configured. */
export const refuseDisabled: RequestHandler = () => {
  throw new AppError(
    'unavailable',
    'runtime configuration is disabled on this server: it needs a store, and MASTER_KEY to be set',
    { code: 'config_disabled' },
  )
}
