import type { RouteTable } from '../../../http/routes.ts'
import type { ReadBody } from '../../bodies/body.ts'
import { assertAdmin, tenantOf } from '../../middleware/auth.ts'
import type { Enabled } from './enabled.ts'

/** The tenant's own limits (D11). */
export const limitRoutes = (enabled: Enabled, readBody: ReadBody): RouteTable => ({
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
