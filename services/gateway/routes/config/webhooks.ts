import type { Request } from 'express'
import type { DeliveryStatus } from '../../../../shared/tenancy/webhooks/port.ts'
import type { RouteTable } from '../../../http/routes.ts'
import type { ReadBody } from '../../bodies/body.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { CONFIG_NAME, DELIVERY, pageRequestOf, pathId, queryValue } from '../../params.ts'
import { type Enabled, listOf } from './enabled.ts'

const STATUS = { pattern: /^(pending|delivered|dead)$/, wanted: 'pending, delivered or dead' }

/** The tenant's webhooks, and the messages that were sent to them (D10). */
export function webhookRoutes(enabled: Enabled, readBody: ReadBody): RouteTable {
  return {
    '/config/webhooks': {
      get: enabled(({ webhooks, outbox }) => async (req, res) => {
        const tenant = tenantOf(res)
        const views = (await webhooks.list(tenant)).map((view) => outbox.withRest(tenant, view))
        return listOf('webhooks', await Promise.all(views), req)
      }),
    },
    '/config/webhooks/:name': {
      get: enabled(
        ({ webhooks, outbox }) =>
          async (req, res) =>
            outbox.withRest(tenantOf(res), await webhooks.get(tenantOf(res), webhookName(req))),
      ),
      put: enabled(({ webhooks, outbox }) => async (req, res) => {
        const name = webhookName(req)
        const body = await readBody(req, res, 'WebhookRequest')
        return outbox.withRest(tenantOf(res), await webhooks.put(tenantOf(res), name, body))
      }),
      delete: enabled(({ webhooks }) => async (req, res) => {
        await webhooks.remove(tenantOf(res), webhookName(req))
        return { status: 'deleted' }
      }),
    },
    ...deliveryRoutes(enabled),
  }
}

function deliveryRoutes(enabled: Enabled): RouteTable {
  return {
    '/config/webhooks/:name/test': {
      post: enabled(
        ({ outbox }) =>
          (req, res) =>
            outbox.test(tenantOf(res), webhookName(req)),
        202,
      ),
    },
    '/config/webhooks/:name/deliveries': {
      get: enabled(({ outbox }) => async (req, res) => {
        const status = queryValue(req, 'status', STATUS) as DeliveryStatus | undefined
        return outbox.list(tenantOf(res), webhookName(req), { ...pageRequestOf(req), status })
      }),
    },
    '/config/webhooks/:name/deliveries/:id/retry': {
      post: enabled(
        ({ outbox }) =>
          (req, res) =>
            outbox.retry(tenantOf(res), webhookName(req), pathId(req, 'id', DELIVERY)),
        202,
      ),
    },
  }
}

const webhookName = (req: Request) => pathId(req, 'name', { ...CONFIG_NAME, noun: 'webhook' })
