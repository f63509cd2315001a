import type { Request, RequestHandler, Response } from 'express'
import { hasKind, invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { answerUntilLeft, endWithClient, type OnDisconnect, onDisconnectOf } from '../../client-gone.ts'
import { hasScope, tenantOf } from '../../middleware/auth.ts'
import { idempotencyKeyOf, queryFlag, queryNumber } from '../../params.ts'
import { leaveRunning } from '../../starting/answer-start.ts'
import { runFailure } from '../../starting/run-answer.ts'
import { repeatedOf } from '../../starting/start-once.ts'
import type { DialectDeps } from '../dialect.ts'
import { lacksPlace, sessionIdIn } from '../shared/conversation.ts'
import { Fields } from '../shared/fields.ts'
import { type Prompted, refuseUnsupported, unsupportedField } from '../shared/messages.ts'
import { inPlaces } from '../shared/places.ts'
import { readResponse, type Source, streamOf } from '../shared/response-stream.ts'
import { nameIgnored, ownTools, readChoices } from './choices.ts'
import { readTarget } from './models.ts'
import { type ResponseRef, readResponseId, responseId } from './response-id.ts'
import { type CallOutput, readInput } from './response-input.ts'
import { responseWire } from './response-wire.ts'
import { ResponsesProjection } from './responses-projection.ts'

/**
 * OpenAI's Responses API. A response ends at an approval; the client answers it in its next request, with
 * `previous_response_id`, and the run continues in that response.
 */
export function responsesRoutes(deps: DialectDeps): RouteTable {
  return {
    '/openai/v1/responses': { post: deps.admitAnswers(create(deps)) },
    '/openai/v1/responses/:id': { get: retrieve(deps) },
    '/openai/v1/responses/:id/cancel': { post: cancel(deps) },
  }
}

const UNSUPPORTED = { prompt: 'prompts are not stored here; send instructions', context_management: 'leave it out' }

const KNOWN: ReadonlySet<string> = new Set(
  (
    'model input instructions previous_response_id conversation stream background store include tools text reasoning ' +
    'tool_choice temperature max_output_tokens metadata prompt context_management'
  ).split(' '),
)

/** The places of these options in a request. */
const NAMES = { schema: '/schema', effort: '/reasoning/effort', tokens: ['max_output_tokens'] } as const

/** Repeated in the response: clients read the format of the answer there. */
const ECHOED = ['text', 'temperature', 'max_output_tokens', 'tool_choice', 'tools', 'metadata', 'reasoning']

type Opened = { ref: ResponseRef; source: Source; created: number; echo: JsonObject }

function create(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const fields = new Fields(await deps.readBody(req, res, 'DialectRequest'))
    refuseUnsupported(fields, UNSUPPORTED)
    ownTools(fields) // Called to throw for invalid tools before any answer is recorded.
    nameIgnored(res, fields, { known: KNOWN })
    const target = readTarget(fields)
    if (target.flow !== undefined)
      throw unsupportedField(fields, 'model', 'a flow runs through /openai/v1/chat/completions')
    const isStream = fields.optionalFlag('stream') ?? false
    const isBackground = fields.optionalFlag('background') ?? false
    const onDisconnect = onDisconnectOf(req)
    const opened = await open(deps, { req, res }, fields)
    const { ref, source } = opened
    res.setHeader('X-Run-ID', ref.runId)
    if (isStream) return stream(deps, res, { ...opened, onDisconnect })
    const projection = projectionOf(opened)
    if (isBackground) {
      await leaveRunning({ runId: ref.runId, frames: source.frames }, () =>
        deps.broker.followRun(tenantOf(res), ref.runId, 0),
      )
      return void res.json(projection.response)
    }
    if (onDisconnect === 'cancel') endWithClient(deps.broker, res, { runId: ref.runId })
    await answerUntilLeft(res, async (signal) => {
      await readResponse(source, projection, { signal })
      const { failure } = projection
      if (failure?.code === 'no_room') throw runFailure(ref.runId, failure) // The run has not started, so the client may send the request again.
      return projection.response
    })
  }
}

async function open(deps: DialectDeps, exchange: { req: Request; res: Response }, fields: Fields): Promise<Opened> {
  const previous = fields.optionalText('previous_response_id')
  const before = previous === undefined ? undefined : readResponseId(previous)
  const created = Math.floor(Date.now() / 1000)
  const echo = { model: fields.text('model'), previous_response_id: previous ?? null }
  const { replies, outputs, hasMessage, said } = readInput(fields, before !== undefined)
  const answer = async () => {
    if (before && replies.length > 0) await deps.conversations.answer(exchange.res, before.sessionId, replies)
    await deps.conversations.answerCalls(exchange.res, outputs)
  }
  const waiting = before ?? (await refOf(deps, { ...exchange, fields }, outputs[0]))
  if (waiting && replies.length + outputs.length > 0 && !hasMessage) {
    const told = [...replies.map(({ id }) => id), ...outputs.map(({ toolUseId }) => toolUseId)]
    const ref = await nextOf(deps, exchange.res, { waiting, told })
    await answer()
    return { ref, source: await sourceOf(deps, exchange.res, ref, new Set(told)), created, echo }
  }
  const message = said() // Checks the message first: if it is refused, no answer is recorded.
  await answer()
  return start(deps, exchange, { fields, said: message, before, created, echo })
}

/** The response that follows the waiting one. `told`: the ids of the requests and calls that the client answers. */
async function nextOf(
  { broker }: DialectDeps,
  res: Response,
  { waiting, told }: { waiting: ResponseRef; told: readonly string[] },
): Promise<ResponseRef> {
  const { permission_ids: asked = [], tool_call_ids: calls = [] } = await broker.getRun(tenantOf(res), waiting.runId)
  const part = waiting.part + 1
  const isWhole = [...asked, ...calls].every((id) => told.includes(id))
  return { ...waiting, part, ...(!isWhole && { partials: [...(waiting.partials ?? []), part] }) }
}

async function sourceOf(
  { broker }: DialectDeps,
  res: Response,
  { runId, part, partials = [] }: ResponseRef,
  answered?: ReadonlySet<string>,
): Promise<Source> {
  return { frames: await broker.followRun(tenantOf(res), runId, 0), pauses: part - 1, partials, answered }
}

/** The response that contains the call of this output. */
async function refOf(
  { broker }: DialectDeps,
  { res, fields }: { res: Response; fields: Fields },
  output: CallOutput | undefined,
): Promise<ResponseRef | undefined> {
  if (!output) return undefined
  const { runId, part } = output
  const { session_id: sessionId } = await broker.getRun(tenantOf(res), runId)
  const isTyped = (formatOf(fields)?.text('type') ?? 'text') !== 'text'
  return { runId, part, sessionId: sessionId ?? runId, ...(isTyped && { isTyped }) }
}

const formatOf = (fields: Fields): Fields | undefined =>
  fields.has('text') && fields.object('text').has('format') ? fields.object('text').object('format') : undefined

type Sent = Omit<Opened, 'ref' | 'source'> & { fields: Fields; said: Prompted; before: ResponseRef | undefined }

async function start(
  deps: DialectDeps,
  { req, res }: { req: Request; res: Response },
  { fields, said: { prompt, attachments, system, seed }, before, created, echo }: Sent,
): Promise<Opened> {
  const given = before?.sessionId ?? conversationOf(fields)
  const instructions = fields.optionalText('instructions') ?? system
  const { model } = readTarget(fields)
  const chosen = await readChoices(fields, { format: formatOf(fields), ...NAMES }, deps.checkValue)
  const { choices, places } = chosen
  nameIgnored(res, fields, { known: KNOWN, ...chosen })
  const message = {
    ...choices,
    client_tools: choices.client_tools ?? [], // The client's tools of this request replace those of earlier ones.
    prompt,
    ...(attachments.length > 0 && { attachments }),
    ...(model !== undefined && { model }),
    ...(instructions !== undefined && { system_prompt: instructions }),
    ...(before && { after: before.runId }),
  }
  const repeated = repeatedOf(req, res, fields.value)
  const sent = { sessionId: given, message, seed, key: idempotencyKeyOf(req), repeated }
  const send = () => deps.conversations.send(res, 'openai responses', sent).catch(refuseGone(before))
  const started = await inPlaces(places, send)
  const isTyped = choices.response_schema !== undefined
  const { runId, sessionId, frames } = started
  const ref = { runId, part: 1, sessionId, ...(isTyped && { isTyped }) }
  const asked = Object.fromEntries(ECHOED.flatMap((name) => (fields.has(name) ? [[name, fields.get(name)]] : [])))
  const echoed = { ...echo, ...asked, instructions: instructions ?? null }
  return { ref, source: { frames }, created, echo: echoed }
}

/** If the named response is gone the request is refused: the model would lack the conversation before it. */
const refuseGone = (before: ResponseRef | undefined) => (cause: unknown) => {
  if (!before || !(hasKind(cause, 'not_found') || lacksPlace(cause))) throw cause
  const message = 'the conversation of this response is not there any more: send its messages as input, without it'
  throw invalidRequest(message, { param: '/previous_response_id' })
}

/** The session's id, which a request gives as `conversation`: as a string or in an object. */
function conversationOf(fields: Fields): string | undefined {
  const value = fields.get('conversation')
  if (value === undefined) return undefined
  return typeof value === 'string'
    ? sessionIdIn(fields, 'conversation')
    : sessionIdIn(fields.object('conversation'), 'id')
}

const projectionOf = ({ ref, created, echo }: Opened) =>
  new ResponsesProjection({
    id: responseId(ref),
    runId: ref.runId,
    part: ref.part,
    created,
    isTyped: ref.isTyped === true,
    echo,
  })

type Streamed = Opened & { onDisconnect?: OnDisconnect | undefined; after?: number | undefined }

function stream(
  { broker, relay }: DialectDeps,
  res: Response,
  { onDisconnect, after = -1, ...opened }: Streamed,
): void {
  const { runId } = opened.ref
  const streamed = streamOf(opened.source, projectionOf(opened), responseWire(after))
  if (onDisconnect === 'cancel') endWithClient(broker, res, { runId, isOver: streamed.isOver })
  relay({ runId, ...streamed }, res)
}

/** Makes a response again from the events of its run so far. */
async function reopen(deps: DialectDeps, req: Request, res: Response): Promise<Opened & { until: number }> {
  const ref = readResponseId(String(req.params['id']))
  const { broker } = deps
  const { started_at: startedAt, model = 'main', event_count: until } = await broker.getRun(tenantOf(res), ref.runId)
  const source = await sourceOf(deps, res, ref)
  return { ref, source, created: Math.floor(Date.parse(startedAt) / 1000), echo: { model }, until }
}

function retrieve(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const isStream = queryFlag(req, 'stream')
    const after = queryNumber(req, 'starting_after', [0, 2 ** 31])
    const opened = await reopen(deps, req, res)
    res.setHeader('X-Run-ID', opened.ref.runId)
    if (isStream) return stream(deps, res, { ...opened, after })
    await answerSoFar(res, opened)
  }
}

/** A token that may cancel but not read gets the response without its output. */
async function answerSoFar(res: Response, opened: Opened & { until: number }): Promise<void> {
  const projection = projectionOf(opened)
  await answerUntilLeft(res, async (signal) => {
    await readResponse(opened.source, projection, { signal, until: opened.until })
    return hasScope(res, 'read') ? projection.response : { ...projection.response, output: [] }
  })
}

function cancel(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const { runId } = readResponseId(String(req.params['id']))
    await deps.broker.cancelRun(tenantOf(res), runId)
    await answerSoFar(res, { ...(await reopen(deps, req, res)), until: Number.POSITIVE_INFINITY })
  }
}
