import type { Scope } from '../../../../shared/tenancy/auth/port.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { assertScope } from '../../middleware/auth.ts'
import type { DialectDeps } from '../dialect.ts'

/**
 * The scopes of the methods. All others, such as `initialize` and `ping`, need none: they neither read nor change a
 * tenant's data.
 */
const SCOPES: ReadonlyMap<unknown, Scope> = new Map<string, Scope>([
  ['tools/list', 'read'],
  ['subscriptions/listen', 'read'],
  ['resources/read', 'read'],
  ['tools/call', 'run'],
  ['notifications/cancelled', 'run'],
])

/** The Model Context Protocol over streamable HTTP, without sessions: each request may go to another gateway. */
export function mcpRoutes(deps: DialectDeps): RouteTable {
  return {
    '/mcp': {
      post: deps.admit(async (req, res) => {
        const message = await deps.readBody(req, res, 'DialectRequest')
        const scope = SCOPES.get(message['method'])
        if (scope) assertScope(res, scope)
        const { handleMessage } = await import('./handler.ts')
        await handleMessage(deps, { req, res, message })
      }),
    },
  }
}
