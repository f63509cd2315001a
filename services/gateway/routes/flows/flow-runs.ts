import type { Request, RequestHandler, Response } from 'express'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import { renderReaderFailure } from '../../../../shared/cluster/journal/frames.ts'
import { toAppError } from '../../../../shared/kernel/errors.ts'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { Estimate } from '../../../../shared/tenancy/limits/estimate.ts'
import type { BatchCalls } from '../../../../shared/work/flows/batch/calls.ts'
import type { FlowCall, FlowCalls, StartedFlow } from '../../../../shared/work/flows/calls/calls.ts'
import type { FlowEvaluator } from '../../../../shared/work/flows/evaluate/evaluate.ts'
import { refusalFrame } from '../../../../shared/work/flows/execute/outcome.ts'
import type { FlowRunRequest } from '../../../../shared/work/flows/port.ts'
import type { WaitingFlow } from '../../../../shared/work/flows/transitions.ts'
import type { RouteTable } from '../../../http/routes.ts'
import type { ReadBody } from '../../bodies/body.ts'
import { answerUntilLeft, leaving } from '../../client-gone.ts'
import { subjectOf, tenantOf } from '../../middleware/auth.ts'
import { FLOW, idempotencyKeyOf, lastEventId, pathId, queryFlag } from '../../params.ts'
import { streamStarted } from '../../starting/answer-start.ts'
import { AnnouncedFrames, placeAnnouncement } from '../../streams/announced-frames.ts'
import type { Relay } from '../../streams/sse.ts'
import { requires } from '../requires.ts'

/** The services behind the endpoints that run flows. */
export type FlowRunSurface = {
  calls: Pick<FlowCalls, 'start'>
  evaluator: Pick<FlowEvaluator, 'evaluate'>
  batches: Pick<BatchCalls, 'start' | 'get' | 'list' | 'cancel' | 'results'>
  /** Estimates a run without starting it (D57). */
  estimate(tenant: TenantId, call: FlowCall & { name: string }): Promise<Estimate>
}

type Deps = {
  broker: Broker
  flows: { execution: FlowRunSurface | undefined } | undefined
  readBody: ReadBody
  relay: Relay
  /** Wraps a handler that begins new work. */
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
          const isStream = wantsEvents(req)
          const call = { request, subject: subjectOf(res), idempotencyKey, readsEnd: !isStream, ...left }
          if (queryFlag(req, 'dry_run')) return void res.json(await estimate(tenantOf(res), { name, ...call }))
          const waits = Promise.withResolvers<WaitingFlow>()
          const starting = calls.start(tenantOf(res), name, { ...call, ...(isStream && { onWait: waits.resolve }) })
          const started = await Promise.race([starting, waits.promise])
          res.setHeader('X-Trace-ID', started.traceId)
          if ('wait' in started) return relay(waitingStream(started, starting), res)
          if (started.isReplayed) res.setHeader('Idempotency-Replayed', 'true')
          if (!isStream) return answerJson(res, started, request)
          const run = { runId: runIdOf(started.traceId), frames: await started.frames() }
          await streamStarted({ broker, relay }, res, { ...started, ...run, after })
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

/** A flow that has time until a deadline is started without a client that waits (D54.8). */
async function answerJson(res: Response, { traceId, answer }: StartedFlow, request: FlowRunRequest): Promise<void> {
  if (request.deadline_hours === undefined) return answerUntilLeft(res, (signal) => answer(signal))
  res.status(202).json({ trace_id: traceId, run_id: runIdOf(traceId) })
}

/**
 * It has no `X-Run-ID`, because the run does not exist before its turn. A client that reconnects sends the start again with its
 * key.
 */
const waitingStream = ({ traceId, wait }: WaitingFlow, starting: Promise<StartedFlow>) => ({
  frames: new AnnouncedFrames(framesOf(traceId, starting), async () => {
    const { place, expectedStart } = wait.standing ?? {}
    return placeAnnouncement({ ...(place && { place }), expected_start: expectedStart?.toISOString() ?? null })
  }),
  farewell: renderReaderFailure,
})

/** The frames of a flow that waits for its turn. If it is refused then, its stream ends with the error. */
async function* framesOf(traceId: string, starting: Promise<StartedFlow>): AsyncGenerator<Frames, undefined> {
  const frames = await starting
    .then((started) => started.frames())
    .catch((cause: unknown) => {
      const refusal = toAppError(cause)
      if (refusal.kind === 'internal') throw cause
      return [{ text: refusalFrame(traceId, refusal), lastSeq: 0 }]
    })
  return void (yield* frames)
}

const EVENTS = 'text/event-stream'

/** Whether the client names the type; a wildcard that includes it gets JSON. */
const wantsEvents = (req: Request): boolean =>
  req.accepts(['application/json', EVENTS]) === EVENTS && (req.get('accept') ?? '').toLowerCase().includes(EVENTS)
