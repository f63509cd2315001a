import type { Request } from 'express'
import type { RouteTable } from '../../http/routes.ts'
import type { ReadBody } from '../bodies/body.ts'
import { leaving } from '../client-gone.ts'
import { assertAdmin, tenantOf } from '../middleware/auth.ts'
import { CONFIG_NAME, pageRequestOf, pathId } from '../params.ts'
import { type ConfigSurface, type Enabled, enabledWith, listOf } from './config/enabled.ts'
import { webhookRoutes } from './config/webhooks.ts'

type Deps = { config: ConfigSurface | undefined; readBody: ReadBody }

/** Runtime configuration (api.md Runtime configuration, D8). Without a master key every path answers 503. */
export function configRoutes({ config, readBody }: Deps): RouteTable {
  const enabled = enabledWith(config)
  return {
    '/config/engine': {
      get: enabled(({ settings, limits }) => async (_req, res) => ({
        ...(await settings.engine(tenantOf(res))),
        limits: await limits.settings.get(tenantOf(res)),
      })),
      put: enabled(({ settings, limits }) => async (req, res) => {
        const body = await readBody(req, res, 'EngineConfigRequest')
        const engine = await settings.putEngine(tenantOf(res), body)
        return { ...engine, limits: await limits.settings.get(tenantOf(res)) }
      }),
    },
    '/config/providers': {
      get: enabled(({ providers }) => async () => ({ providers: providers(), next_cursor: null })),
    },
    '/config/changes': {
      get: enabled(
        ({ audit }) =>
          (req, res) =>
            audit.list(tenantOf(res), pageRequestOf(req)),
      ),
    },
    ...secretRoutes(enabled, readBody),
    ...instanceRoutes(enabled, readBody),
    ...webhookRoutes(enabled, readBody),
    ...limitRoutes(enabled, readBody),
  }
}

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
        const name = secretName(req)
        const { value } = await readBody(req, res, 'SecretRequest')
        return settings.putSecret(tenantOf(res), name, value)
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
        const name = instanceName(req)
        const body = await readBody(req, res, 'InstanceRequest')
        return settings.putInstance(tenantOf(res), name, body)
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
        const { model } = await readBody(req, res, 'ProbeRequest')
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

const secretName = (req: Request) => pathId(req, 'name', { ...CONFIG_NAME, noun: 'secret' })
const instanceName = (req: Request) => pathId(req, 'name', { ...CONFIG_NAME, noun: 'instance' })

/** The tenant's own limits (D11). */
const limitRoutes = (enabled: Enabled, readBody: ReadBody): RouteTable => ({
  '/config/limits': {
    get: enabled(
      ({ limits }) =>
        (_req, res) =>
          limits.settings.get(tenantOf(res)),
    ),
    put: enabled(({ limits, adminScope }) => async (req, res) => {
      assertAdmin(res, adminScope, "changing the tenant's limits")
      const body = await readBody(req, res, 'LimitsRequest')
      return limits.settings.put(tenantOf(res), body)
    }),
  },
})
