import { expect } from 'chai'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { inOrder } from '../../services/http/in-order.ts'
import { createServer, urlOf } from '../../services/http/server.ts'

describe('several handlers as one', () => {
  const seen: string[] = []
  const passing: RequestHandler = (_req, _res, next) => {
    seen.push('sync')
    next()
  }
  const later: RequestHandler = async (_req, _res, next) => {
    await Promise.resolve()
    seen.push('async')
    next()
  }
  const throwing: RequestHandler = () => {
    throw new Error('thrown')
  }
  const rejecting: RequestHandler = () => Promise.reject(new Error('rejected'))
  const mute: RequestHandler = () => Promise.reject()
  const ending: RequestHandler = (_req, _res, next) => next(new Error('passed'))
  const never: RequestHandler = () => void seen.push('never')

  const cases: [string, (RequestHandler | undefined)[], string[], string][] = [
    [
      'are called in their order, and the route after them',
      [passing, undefined, later, passing],
      ['sync', 'async', 'sync'],
      'route',
    ],
    ['stop at one that throws', [passing, throwing, never], ['sync'], 'thrown'],
    ['stop at one that throws behind one that waits', [later, throwing, never], ['async'], 'thrown'],
    ['stop at one that rejects behind one that waits', [later, rejecting, never], ['async'], 'rejected'],
    ['stop at one that rejects without a reason', [mute, never], [], 'a handler has rejected'],
    ['stop at one that passes an error on', [later, ending, never], ['async'], 'passed'],
  ]
  for (const [what, handlers, called, answer] of cases) {
    it(what, async () => {
      seen.length = 0
      const app = express().use(inOrder(handlers))
      const onError: ErrorRequestHandler = (cause: Error, _req, res, _next) => void res.send(cause.message)
      app.get('/', (_req, res) => void res.send('route')).use(onError)
      const server = createServer(app)
      const res = await fetch(urlOf(await server.listen(0, '127.0.0.1')))
      expect([await res.text(), seen]).to.deep.equal([answer, called])
      await server.close(0)
    })
  }
})
