import type { RequestHandler } from 'express'

/** Answers as long as the process runs. Readiness is a matter of `/readyz` on the ops listener. */
export const health: RequestHandler = (_req, res) => {
  res.json({ status: 'ok', timestamp: new Date().toISOString() })
}
