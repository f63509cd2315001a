import type { NextFunction, RequestHandler } from 'express'

/**
 * One handler of several that a request passes in this order. Express would make a layer of each, and for each request and layer half a
 * kilobyte of closures.
 */
export function inOrder(handlers: readonly (RequestHandler | undefined | false)[]): RequestHandler {
  const given = handlers.filter((handle) => handle !== undefined && handle !== false)
  return (req, res, next) => {
    let at = 0
    const pass = (cause?: unknown): void => {
      const handle = (cause ?? undefined) === undefined ? given[at++] : undefined
      if (!handle) return next(cause)
      const done: unknown = handle(req, res, pass)
      if (done instanceof Promise) done.catch(failing(next))
    }
    pass()
  }
}

/** A handler that rejects without a reason has failed, too. */
const failing = (next: NextFunction) => (cause: unknown) => next(cause ?? new Error('a handler has rejected'))
