import { type Request, type RequestHandler, type Response, Router } from 'express'
import { AppError, invalidRequest } from '../../shared/kernel/errors.ts'
import { escapePointer } from '../../shared/kernel/json.ts'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/**
 * Maps each path to the handlers of its methods. `otherwise` handles requests with any other method; with `next('route')` it
 * passes a request to the next matching path. `deleteQuery` lists the query parameters of `delete`.
 */
export type RouteTable = Record<string, Handlers & { deleteQuery?: readonly string[] }>

type Handlers = Partial<Record<Method | 'otherwise', RequestHandler>>

/**
 * Creates a router from a table. A method that a path does not list is answered with 405 and `Allow` (D2.2); `everywhere` names
 * methods that a handler above the router answers on every path.
 */
export function createRoutes(table: RouteTable, everywhere: readonly string[] = []): Router {
  const router = Router({ caseSensitive: true })
  for (const [path, { otherwise, deleteQuery = [], ...handlers }] of Object.entries(table)) {
    const route = router.route(path).all(nameRoute(path))
    if (handlers.delete) handlers.delete = withKnownQuery(deleteQuery, handlers.delete)
    const methods = Object.keys(handlers) as Method[]
    for (const method of methods) route[method](handlers[method] ?? [])
    if (otherwise) route.all(otherwise)
    route.all(refuseMethod(allowOf(methods, everywhere)))
  }
  return router
}

/**
 * Refuses unknown query parameters before anything is deleted: a misspelled name would otherwise be ignored, and more deleted than was
 * meant (D2.4).
 */
function withKnownQuery(known: readonly string[], handle: RequestHandler): RequestHandler {
  const wanted = known.length === 0 ? 'no query parameters' : `only the query parameters ${known.join(' and ')}`
  return (req, res, next) => {
    const unknown = Object.keys(req.query).find((name) => !known.includes(name))
    if (unknown === undefined) return handle(req, res, next)
    throw invalidRequest(`this DELETE takes ${wanted}; nothing was deleted`, { param: `/${escapePointer(unknown)}` })
  }
}

/** Stores the route's path for the request's span. */
const nameRoute =
  (path: string): RequestHandler =>
  (_req, res, next) => {
    res.locals['route'] = path
    next()
  }

/** Express answers HEAD with the handler of GET. */
function allowOf(methods: readonly Method[], everywhere: readonly string[]): string {
  const allowed = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
  return [...allowed, ...everywhere].join(', ')
}

function refuseMethod(allow: string): RequestHandler {
  return (_req: Request, res: Response) => {
    res.setHeader('Allow', allow)
    throw new AppError('invalid_request', `this path accepts only ${allow}`, { status: 405 })
  }
}
