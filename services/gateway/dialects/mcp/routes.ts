import type { RouteTable } from '../../../http/routes.ts'
import type { DialectDeps } from '../dialect.ts'

/** The Model Context Protocol over streamable HTTP, without sessions: each request may go to another gateway. */
export function mcpRoutes(deps: DialectDeps): RouteTable {
  return {
    '/mcp': {
      post: deps.admit(async (req, res) => {
        const message = await deps.readBody(req, res, 'DialectRequest')
        const { handleMessage } = await import('./handler.ts')
        await handleMessage(deps, { req, res, message })
      }),
    },
  }
}
