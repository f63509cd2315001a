import type { Request, RequestHandler } from 'express'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import type { RouteTable } from '../../../http/routes.ts'
import type { ReadBody } from '../../bodies/body.ts'
import { answerUntilLeft, leaving } from '../../client-gone.ts'
import { subjectOf, tenantOf } from '../../middleware/auth.ts'
import { FLOW, idempotencyKeyOf, lastEventId, pathId, queryFlag } from '../../params.ts'
import { streamStarted } from '../../starting/answer-start.ts'
import type { Relay } from '../../streams/sse.ts'
import { requires } from '../requires.ts'
import type { FlowRunSurface, FlowSurface } from './flow-surface.ts'

type Deps = {
  broker: Broker
  flows: FlowSurface | undefined
  readBody: ReadBody
  relay: Relay
  /** Wraps what begins new work. */
  admit(handle: RequestHandler): RequestHandler
}

/** Runs and evaluates flows (api.md "Named flows"). Without a master key both answer 503. */
export function flowRunRoutes({ broker, flows, readBody, relay, admit }: Deps): RouteTable {
  const executed = (create: (execution: FlowRunSurface) => RequestHandler): RequestHandler =>
    requires('flows', flows)(({ execution }) => requires('config', execution)(create))
  return {
    '/flows/:name/run': {
      post: admit(
        executed(({ calls, estimate }) => async (req, res) => {
          const name = pathId(req, 'name', FLOW)
          const idempotencyKey = idempotencyKeyOf(req)
          const after = idempotencyKey === undefined ? 0 : lastEventId(req)
          const request = await readBody(req, res, 'FlowRunRequest')
          const left = request.wait_secs !== undefined && { left: leaving(res) }
          const call = { request, subject: subjectOf(res), idempotencyKey, ...left }
          if (queryFlag(req, 'dry_run')) return void res.json(await estimate(tenantOf(res), { name, ...call }))
          const started = await calls.start(tenantOf(res), name, call)
          res.setHeader('X-Trace-ID', started.traceId)
          const { isReplayed } = started
          if (isReplayed) res.setHeader('Idempotency-Replayed', 'true')
          if (!wantsEvents(req)) return answerUntilLeft(res, (signal) => started.answer(signal))
          const run = { runId: runIdOf(started.traceId), frames: await started.frames() }
          await streamStarted({ broker, relay }, res, { ...run, isReplayed, after })
        }),
      ),
    },
    '/flows/:name/evaluate': {
      post: admit(
        executed(({ evaluator }) => async (req, res) => {
          const name = pathId(req, 'name', FLOW)
          const request = await readBody(req, res, 'FlowEvaluationRequest')
          await answerUntilLeft(res, (signal) =>
            evaluator.evaluate(tenantOf(res), name, request, { subject: subjectOf(res), signal }),
          )
        }),
      ),
    },
  }
}

const EVENTS = 'text/event-stream'

/** Whether the client names the type; a wildcard that includes it gets JSON. */
const wantsEvents = (req: Request): boolean =>
  req.accepts(['application/json', EVENTS]) === EVENTS && (req.get('accept') ?? '').toLowerCase().includes(EVENTS)
