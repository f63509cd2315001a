import type { RequestHandler, Response } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { forSubject } from '../../../shared/kernel/trace.ts'
import { type Identify, type Identity, SCOPES, type Scope } from '../../../shared/tenancy/auth/port.ts'
import type { RouteTable } from '../../http/routes.ts'

/** Identifies the caller and stores the identity in `res.locals` for later handlers, or refuses the request (api.md "Authentication"). */
export function authenticate(identify: Identify): RequestHandler {
  return (req, res, next) => {
    const accept = (identity: Identity) => {
      res.locals['identity'] = identity
      forSubject(identity.subject, next)
    }
    const identity = identify(req.headers.authorization)
    return identity instanceof Promise ? identity.then(accept) : accept(identity)
  }
}

/** The tenant of the caller. Throws in a route that is mounted before `authenticate`. */
export const tenantOf = (res: Response): TenantId => identityOf(res).tenant

/** The caller within the tenant: the `sub` of the token, or `anonymous` (D3.5). */
export const subjectOf = (res: Response): string => identityOf(res).subject

const ALL: ReadonlySet<Scope> = new Set(SCOPES)

/** The scopes of the caller's token. */
export const scopesOf = (res: Response): ReadonlySet<Scope> => identityOf(res).scopes ?? ALL

/** Throws `permission` when the caller's token does not hold the scope of ADMIN_SCOPE. Without that setting every caller passes. */
export function assertAdmin(res: Response, adminScope: string | undefined, act: string): void {
  if (adminScope === undefined || identityOf(res).isAdmin) return
  throw new AppError('permission', `${act} needs a token with the scope ${adminScope}: ask for one at the issuer`)
}

function identityOf(res: Response): Identity {
  const identity = res.locals['identity'] as Identity | undefined
  if (!identity) throw new Error('this route is mounted before authentication')
  return identity
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Paths for which any valid token is enough, or where each method of the body has a scope of its own. */
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
