import type { RequestHandler, Response } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { Scope } from '../../../shared/tenancy/auth/port.ts'
import type { RouteTable } from '../../http/routes.ts'
import { scopesOf } from './auth.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Paths at which every token is enough, or where each method of the body has a scope of its own. */
const WITHOUT_SCOPE: ReadonlySet<string> = new Set(['/me', '/a2a', '/mcp'])

/** The scope that a request needs for its path (D18b), if any. The API description names the same. */
export function scopeOf(method: string, path: string): Scope | undefined {
  if (WITHOUT_SCOPE.has(path)) return undefined
  if (path.startsWith('/config')) return 'admin'
  if (method === 'GET' || method === 'HEAD') return 'read'
  if (/^\/(sessions\/[^/]+\/)?permissions\b/.test(path)) return 'approve'
  return path.startsWith('/flows/') && !/\/(run|batch)$/.test(path) ? 'flows' : 'run'
}

/** Refuses the requests of tokens that lack the scope of their route. */
export function withScopes(table: RouteTable): RouteTable {
  const guarded = Object.entries(table).map(([path, handlers]) => {
    const wrapped = METHODS.flatMap((method) => {
      const [handle, scope] = [handlers[method], scopeOf(method.toUpperCase(), path)]
      return handle && scope ? [[method, requiring(scope, handle)]] : []
    })
    return [path, { ...handlers, ...Object.fromEntries(wrapped) }]
  })
  return Object.fromEntries(guarded) as RouteTable
}

const requiring =
  (scope: Scope, handle: RequestHandler): RequestHandler =>
  (req, res, next) => {
    assertScope(res, scope)
    return handle(req, res, next)
  }

export const hasScope = (res: Response, scope: Scope): boolean => scopesOf(res).has(scope)

/** Throws `permission` when the caller's token does not hold the scope. */
export function assertScope(res: Response, scope: Scope): void {
  if (hasScope(res, scope)) return
  const message = `this needs a token with the scope ${scope}: ask for one at the issuer`
  throw new AppError('permission', message, { code: 'missing_scope' })
}
