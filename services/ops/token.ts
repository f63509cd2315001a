import type { RequestHandler } from 'express'
import { AppError } from '../../shared/kernel/errors.ts'
import { bearerOf, createTokenCheck } from '../http/token.ts'

/**
 * Requires OPS_TOKEN as a bearer token or as the password of any basic-auth user (D1.3). Requires nothing when no token is
 * configured.
 */
export function requireToken(token: string | undefined): RequestHandler {
  if (token === undefined) return (_req, _res, next) => next()
  const isToken = createTokenCheck(token)
  return (req, res, next) => {
    if (isToken(tokenOf(req.headers.authorization))) return next()
    res.setHeader('WWW-Authenticate', ['Bearer realm="ops"', 'Basic realm="ops", charset="UTF-8"'])
    throw new AppError('authentication', 'send OPS_TOKEN as a bearer token, or as the password of basic auth')
  }
}

function tokenOf(authorization = ''): string | undefined {
  const bearer = bearerOf(authorization)
  if (bearer !== undefined) return bearer
  const basic = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1]
  if (basic === undefined) return undefined
  const credentials = Buffer.from(basic, 'base64').toString()
  const colon = credentials.indexOf(':')
  return colon < 0 ? undefined : credentials.slice(colon + 1)
}
