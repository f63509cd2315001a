import type { Request, RequestHandler, Response } from 'express'
import type { Broker, OnNamed } from '../../../shared/cluster/commands/broker.ts'
import type { ReadBody } from '../bodies/body.ts'
import { readerNeeds } from '../client-gone.ts'
import { tenantOf } from '../middleware/auth.ts'
import { idempotencyKeyOf, pathId, queryFlag, SESSION } from '../params.ts'
import type { AnswerStart } from '../starting/answer-start.ts'

type Deps = { broker: Broker; readBody: ReadBody; answerStart: AnswerStart }

/** Starts a one-shot run. A refusal is a plain HTTP error, because the stream opens only after the run is accepted. */
export function startRun({ broker, readBody, answerStart }: Deps): RequestHandler {
  return async (req, res) => {
    const { customer_id, ...rest } = await readBody(req, res, 'RunRequest')
    const request = { ...rest, ...(customer_id ? { customer_id } : {}) } // An empty id counts as none (D2.11).
    const needs = readerNeeds(req)
    if (queryFlag(req, 'dry_run'))
      return answerDryRun(req, res, () => broker.estimateRun(tenantOf(res), { ...request, ...needs }))
    const open = (onNamed?: OnNamed) => broker.startRun(tenantOf(res), { ...request, ...needs }, onNamed)
    await answerStart(req, res, { operation: 'run', request, open })
  }
}

/** Answers a dry run (D57). An Idempotency-Key is checked, but not stored. */
async function answerDryRun(req: Request, res: Response, estimate: () => Promise<object>): Promise<void> {
  idempotencyKeyOf(req)
  res.json(await estimate())
}

/** Continues a session's conversation. */
export function sendMessage({ broker, readBody, answerStart }: Deps): RequestHandler {
  return async (req, res) => {
    const sessionId = pathId(req, 'id', SESSION)
    const request = await readBody(req, res, 'SendMessageRequest')
    const needs = readerNeeds(req)
    const open = (onNamed?: OnNamed) => broker.sendMessage(tenantOf(res), sessionId, { ...request, ...needs }, onNamed)
    await answerStart(req, res, { operation: `message ${sessionId}`, request, sessionId, open })
  }
}
