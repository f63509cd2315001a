import type { Request, RequestHandler, Response } from 'express'
import type { OnNamed } from '../../../../shared/cluster/commands/broker.ts'
import { answerUntilLeft, endWithClient, onDisconnectOf, withReaderNeeds } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { idempotencyKeyOf, turnOf } from '../../params.ts'
import { answerOf } from '../../starting/run-answer.ts'
import { repeatedOf } from '../../starting/start-once.ts'
import type { DialectDeps } from '../dialect.ts'
import { Fields } from '../shared/fields.ts'
import { readMessages, refuseUnsupported, unsupportedField } from '../shared/messages.ts'
import { inPlaces } from '../shared/places.ts'
import { streamOf } from '../shared/response-stream.ts'
import { ChatProjection, chatWire, completion, usageOf } from './chat-projection.ts'
import { type ChosenRun, nameIgnored, readChoices } from './choices.ts'
import { runFlow } from './flow-completion.ts'
import { readTarget, type Target } from './models.ts'

const UNSUPPORTED = {
  functions: 'send them as tools',
  audio: 'answers are text',
  prediction: 'leave it out',
}

const NAMES = {
  schema: '/json_schema/schema',
  effort: '/reasoning_effort',
  tokens: ['max_completion_tokens', 'max_tokens'],
}

const KNOWN: ReadonlySet<string> = new Set(
  (
    'model messages stream stream_options stop n tools functions audio prediction store response_format reasoning_effort ' +
    'tool_choice temperature max_completion_tokens max_tokens metadata'
  ).split(' '),
)

/** `POST /openai/v1/chat/completions`: one run with the history that the client sends, or the run of a flow. */
export function chatCompletions(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const fields = new Fields(await deps.readBody(req, res, 'DialectRequest'))
    refuseUnsupported(fields, UNSUPPORTED)
    const [target, said] = [
      readTarget(fields),
      readMessages(fields.objects('messages'), '/messages', { mayEndWithResults: true }),
    ]
    if ((fields.get('n') ?? 1) !== 1) throw unsupportedField(fields, 'n', 'an answer has one choice')
    const isStream = fields.optionalFlag('stream') ?? false
    const includesUsage = fields.has('stream_options') && fields.object('stream_options').optionalFlag('include_usage')
    const format = fields.has('response_format') ? fields.object('response_format') : undefined
    const chosen = await readChoices(fields, { ...NAMES, format }, deps.checkValue)
    nameIgnored(res, fields, { known: KNOWN, ...chosen })
    const isTyped = chosen.choices.response_schema !== undefined
    const created = Math.floor(Date.now() / 1000)
    const options = { model: target.name, created, includesUsage: includesUsage ?? false, isTyped }
    if (target.flow !== undefined) {
      if (chosen.choices.client_tools) throw unsupportedField(fields, 'tools', 'a flow has its own tools; leave it out')
      if (isTyped)
        throw unsupportedField(fields, 'response_format', 'the answer of a flow fits its own schema; leave it out')
      if (said.attachments.length > 0)
        throw unsupportedField(fields, 'messages', 'a flow takes files in its own input; send the text alone')
      return runFlow(deps, { req, res }, { flow: target.flow, prompt: said.prompt, options, isStream })
    }
    const onDisconnect = onDisconnectOf(req)
    const { runId, ...started } = await start(deps, { req, res }, { fields, target, said, chosen })
    const facts = { ...options, id: `chatcmpl-${runId.slice('run_'.length)}` }
    if (started.isReplayed) res.setHeader('Idempotency-Replayed', 'true')
    if (onDisconnect === 'cancel') endWithClient(deps.broker, res, { runId })
    if (isStream) return deps.relay({ runId, ...streamOf(started, new ChatProjection(facts), chatWire()) }, res)
    await answerUntilLeft(res, async (signal) => {
      const { output, usage, calls } = await answerOf({ runId, ...started }, signal)
      res.setHeader('X-Run-ID', runId)
      const isText = typeof output === 'string' && (!isTyped || calls.length > 0)
      const content = isText ? output : JSON.stringify(output)
      return completion(facts, { content, calls }, usage ? usageOf(usage) : NO_USAGE)
    })
  }
}

type Exchange = { req: Request; res: Response }
type Said = ReturnType<typeof readMessages>
const NO_USAGE = usageOf({ total_input_tokens: 0, total_output_tokens: 0, total_tokens: 0 })

async function start(
  { broker, once }: DialectDeps,
  { req, res }: Exchange,
  { fields, target, said, chosen }: { fields: Fields; target: Target; said: Said; chosen: ChosenRun },
) {
  const [tenant, messages, stops] = [tenantOf(res), said.seed(), stopsOf(fields)]
  const { client_tools: own, tool_choice: choice } = chosen.choices
  const request = {
    ...chosen.choices,
    ...(own && { ends_with_calls: true }),
    // `required` means one of the client's own tools: the client knows no others.
    ...(own && choice === 'required' && { allowed_tools: own.map(({ name }) => name) }),
    prompt: said.prompt,
    ...(said.attachments.length > 0 && { attachments: said.attachments }),
    ...(target.model !== undefined && { model: target.model }),
    ...(said.system !== undefined && { system_prompt: said.system }),
    ...(messages.length > 0 && { messages }),
    ...(stops.length > 0 && { stop_sequences: stops }),
  }
  const sent = withReaderNeeds(req, { ...request, ...turnOf(req) })
  const open = (onNamed?: OnNamed) => inPlaces(chosen.places, () => broker.startRun(tenant, sent, onNamed))
  const key = idempotencyKeyOf(req)
  const use = key === undefined ? repeatedOf(req, res, fields.value) : { key, request }
  if (use === undefined) return { ...(await open()), isReplayed: false }
  return once.start(tenant, { operation: 'openai chat', ...use, open })
}

const MAX_STOPS = 16
const MAX_STOP_CHARS = 256

function stopsOf(fields: Fields): string[] {
  const stop = fields.get('stop') ?? []
  const stops: unknown[] = Array.isArray(stop) ? stop : [stop]
  const areGood =
    stops.length <= MAX_STOPS &&
    stops.every((each) => typeof each === 'string' && each.length > 0 && each.length <= MAX_STOP_CHARS)
  if (areGood) return stops as string[]
  throw fields.wrong('stop', `a text, or a list of at most ${MAX_STOPS}, each of 1 to ${MAX_STOP_CHARS} characters`)
}
