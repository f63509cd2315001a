import { type Request, type RequestHandler, type Response, Router } from 'express'
import { AppError } from '../../shared/errors.ts'

type Method = 'get' | 'post' | 'put' | 'delete'

/** Paths and what answers each of their methods. */
export type RouteTable = Record<string, Partial<Record<Method, RequestHandler>>>

/** Mounts a table; a method that a path does not list is 405 with `Allow` (D2.2). */
export function createRoutes(table: RouteTable): Router {
  const router = Router({ caseSensitive: true })
  for (const [path, handlers] of Object.entries(table)) {
    const route = router.route(path)
    const methods = Object.keys(handlers) as Method[]
    for (const method of methods) route[method](handlers[method] ?? [])
    route.all(refuseMethod(methods))
  }
  return router
}

function refuseMethod(methods: readonly Method[]): RequestHandler {
  const allowed = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
  const allow = [...allowed, 'OPTIONS'].join(', ')
  return (_req: Request, res: Response) => {
    res.setHeader('Allow', allow)
    throw new AppError('invalid_request', `this path takes ${allow} only`, { status: 405 })
  }
}
