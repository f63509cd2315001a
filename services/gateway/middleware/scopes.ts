import type { RequestHandler, Response } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { Scope } from '../../../shared/tenancy/auth/port.ts'
import type { RouteTable } from '../../http/routes.ts'
import { scopesOf } from './auth.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** The scope that a request needs (D18b); `undefined` where every token is enough. The API description names the same. */
export function scopeOf(method: string, path: string): Scope | undefined {
  if (path === '/me') return undefined
  if (path.startsWith('/config')) return 'admin'
  if (method === 'GET' || method === 'HEAD') return 'read'
  if (/^\/(sessions\/[^/]+\/)?permissions\b/.test(path)) return 'approve'
  return path.startsWith('/flows/') && !path.endsWith('/run') ? 'flows' : 'run'
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

/** Throws `permission` when the caller's token does not hold the scope. */
export function assertScope(res: Response, scope: Scope): void {
  if (scopesOf(res).has(scope)) return
  const message = `this needs a token with the scope ${scope}: ask for one at the issuer`
  throw new AppError('permission', message, { code: 'missing_scope' })
}
