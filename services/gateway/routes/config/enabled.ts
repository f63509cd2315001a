import type { Request, RequestHandler, Response } from 'express'
import type { ProviderSpec } from '../../../../shared/agent/providers/catalogue.ts'
import { startOfPage, toPage } from '../../../../shared/kernel/cursor.ts'
import type { KnownLimits } from '../../../../shared/tenancy/limits/known-limits.ts'
import type { LimitSettings } from '../../../../shared/tenancy/limits/limit-settings.ts'
import type { ConfigHistory } from '../../../../shared/tenancy/tenant-config/config-history.ts'
import type { InstanceInspector } from '../../../../shared/tenancy/tenant-config/inspector.ts'
import type { TenantSettings } from '../../../../shared/tenancy/tenant-config/settings.ts'
import type { WebhookOutbox } from '../../../../shared/tenancy/webhooks/outbox.ts'
import type { WebhookSettings } from '../../../../shared/tenancy/webhooks/settings.ts'
import { pageRequestOf } from '../../params.ts'
import { requires } from '../requires.ts'

/** The services behind the configuration endpoints. They exist in a process with a store and a master key. */
export type ConfigSurface = {
  settings: TenantSettings
  audit: ConfigHistory
  inspector: InstanceInspector
  webhooks: WebhookSettings
  outbox: WebhookOutbox
  limits: { settings: LimitSettings; known: Pick<KnownLimits, 'of'> }
  /** The scope that changing limits needs (ADMIN_SCOPE). */
  adminScope: string | undefined
  /** The provider types, each with the models that it is known to have. */
  providers: () => readonly ProviderSpec[]
}

type Answer = (req: Request, res: Response) => Promise<object>

export type Enabled = (answer: (config: ConfigSurface) => Answer, status?: number) => RequestHandler

/** Creates handlers that answer with JSON, or with 503 where configuration is disabled. */
export const enabledWith =
  (config: ConfigSurface | undefined): Enabled =>
  (answer, status = 200) =>
    requires(
      'config',
      config,
    )((surface) => {
      const respond = answer(surface)
      return async (req, res) => {
        const body = await respond(req, res)
        if (!res.closed) res.status(status).json(body)
      }
    })

/** One page of items that are ordered by name (D2.7). */
export function listOf(plural: string, items: readonly { name: string }[], req: Request): object {
  const { limit, cursor } = pageRequestOf(req)
  const [after] = startOfPage(cursor, ['string']) ?? []
  const rest = after === undefined ? items : items.filter(({ name }) => name > after)
  const { page, next_cursor } = toPage(rest, limit, ({ name }) => [name])
  return { [plural]: page, next_cursor }
}
