import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { ReadBody } from '../bodies/body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pathId, SESSION } from '../params.ts'
import type { AnswerStart } from '../starting/answer-start.ts'

type Deps = { broker: Broker; readBody: ReadBody; answerStart: AnswerStart }

/** Continues a session's conversation. */
export function sendMessage({ broker, readBody, answerStart }: Deps): RequestHandler {
  return async (req, res) => {
    const sessionId = pathId(req, 'id', SESSION)
    const request = await readBody(req, res, 'SendMessageRequest')
    const open = () => broker.sendMessage(tenantOf(res), sessionId, request)
    await answerStart(req, res, { operation: `message ${sessionId}`, request, open })
  }
}
