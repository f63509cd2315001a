import type { RequestHandler } from 'express'
import type { RouteTable } from '../../../http/routes.ts'
import { tenantOf } from '../../middleware/auth.ts'
import type { DialectDeps } from '../dialect.ts'
import { streamOf } from '../shared/response-stream.ts'
import { AG_UI_WIRE } from './events.ts'
import { AgUiProjection } from './projection.ts'
import { readAgUiRequest } from './request.ts'

/** AG-UI: the id of a thread is that of its session. */
export function agUiRoutes(deps: DialectDeps): RouteTable {
  return { '/ag-ui': { post: deps.admitAnswers(run(deps)) } }
}

function run({ broker, conversations, readBody, relay }: DialectDeps): RequestHandler {
  return async (req, res) => {
    const request = readAgUiRequest(await readBody(req, res, 'DialectRequest'))
    const { threadId, runId } = request
    const projection = (engineRunId: string) => new AgUiProjection({ ...request, engineRunId })
    if (request.kind === 'answers') {
      const { engineRunId, answers } = request
      await conversations.answer(res, threadId, answers)
      const source = {
        frames: await broker.followRun(tenantOf(res), engineRunId, 0),
        known: new Set(answers.map(({ id }) => id)),
      }
      return relay({ runId: engineRunId, ...streamOf(source, projection(engineRunId), AG_UI_WIRE) }, res)
    }
    const { prompt, listed, unanswered, seed } = request
    const sent = { sessionId: threadId, message: { prompt, ...listed }, unanswered, seed, key: `${threadId} ${runId}` }
    const started = await conversations.send(res, 'ag-ui', sent)
    relay({ runId: started.runId, ...streamOf(started, projection(started.runId), AG_UI_WIRE) }, res)
  }
}
