import type { RequestHandler } from 'express'

/** That this process answers at all; whether it can take work is the ops listener's `/readyz`. */
export const health: RequestHandler = (_req, res) => {
  res.json({ status: 'ok', timestamp: new Date().toISOString() })
}
