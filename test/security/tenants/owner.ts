import { EventStream } from '../../support/event-stream.ts'
import type { ModelServer } from '../../support/model-server/model-server.ts'
import { until } from '../../support/until.ts'
import { type Call, call, fileForm, prepare, type Reply, transcriptionForm } from '../api.ts'
import type { Sink } from '../uploads/sink.ts'
import { type Ids, random, responseOf } from './ids.ts'
import { ownFlow } from './own-flow.ts'
import { ownPlan } from './own-plan.ts'
import type { Cursor } from './walls.ts'

/** Texts of the owner's, each unlike any other text. */
export type Canaries = {
  /** Keys and header values: nowhere but at the providers. */
  keys: readonly string[]
  /** Prompts, answers and memories: in no answer to another tenant and in no log. */
  contents: readonly string[]
}

export type Owned = {
  ids: Ids
  canaries: Canaries
  cursors: Cursor[]
  /** Everything that the owner was answered, events included. */
  answers: string
  /** A run that waits for the permission. */
  waiting: EventStream
}

export type Owning = { url: string; headers: Record<string, string>; model: ModelServer; backend: Sink }

const SHORT_LIST = '?limit=1'

/** Gives a tenant one of everything, with canaries in all of it. */
export async function ownEverything({ url, headers, model, backend }: Owning): Promise<Owned> {
  const names = {
    webhook: `webhook-${random()}`,
    customer: `customer-${random()}`,
    instance: `instance-${random()}`,
    secret: `secret-${random()}`,
  }
  const session = `session-${random()}`
  const [secretValue, ownKey, header, backendKey] = ['s', 'k', 'h', 't'].map((letter) => letter + random(20))
  const texts = { prompt: `prompt-${random()}`, answer: `answer-${random()}`, memory: `memory-${random()}` }
  const { prompt, answer, memory } = texts
  const answers: string[] = []
  const keep = <T extends Reply>(reply: T): T => {
    answers.push(reply.text)
    return reply
  }
  const put = async (path: string, body: object) => keep(await prepare(url, { method: 'PUT', path, body, headers }))
  const ask = async (request: Call) => keep(await call(url, { ...request, headers }))
  // A run that no worker confirmed in time has not begun, and has left its answer in the model.
  const isBegun = async (body: object) => (await ask({ method: 'POST', path: '/agent/run', body })).status === 200
  const run = (body: object) => until(() => isBegun(body), { what: 'a worker to take the run' })

  const ofModel = { type: 'openai-compatible', url: model.url }
  await put(`/config/secrets/${names.secret}`, { value: secretValue })
  await put('/config/secrets/another', { value: secretValue })
  await put(`/config/instances/${names.instance}`, {
    ...ofModel,
    secret: names.secret,
    options: { headers: { 'x-team': header } },
  })
  const signingSecret = `whsec_${Buffer.from(random()).toString('base64')}`
  const hooked = { url: backend.url, events: ['run.ended'], secret: signingSecret }
  await put(`/config/webhooks/${names.webhook}`, hooked)
  await put('/config/webhooks/another', hooked)
  const delivery = await prepare(url, { method: 'POST', path: `/config/webhooks/${names.webhook}/test`, headers })
  await prepare(url, { method: 'POST', path: `/config/webhooks/${names.webhook}/test`, headers })
  const { id: deliveryId } = JSON.parse(delivery.text) as { id: string }
  await put('/config/instances/spare', { ...ofModel, key: ownKey })
  await put('/config/instances/voice', { type: 'openai-compatible', url: backend.url, key: backendKey })
  await put('/config/engine', {
    routing: { main: { instance: names.instance, model: 'm', fallback_instance: 'spare', fallback_model: 'm' } },
  })

  // The worker may hear of the configuration some moments later (D8.5); until then it would take other answers than those that follow.
  const isRouted = async () => {
    model.answer('hello')
    await run({ prompt: 'hello' })
    return JSON.stringify(model.requests.at(-1)?.headers ?? {}).includes(String(secretValue))
  }
  await until(isRouted, { what: 'the worker to use the instance' })
  model.answer(answer)
  await run({ prompt, customer_id: names.customer })
  model.answer([{ tool: 'Dream', input: { focus: 'all' } }], `- ${memory}`, 'dreamt')
  await run({ prompt: 'dream', customer_id: names.customer })
  // Providers repeat the key that they refuse, and whole headers.
  const echo = `Incorrect API key provided: ${secretValue} ${header} ${ownKey}`
  model.answer({ status: 401, message: echo }, { status: 401, message: echo })
  await run({ prompt: 'refused' })
  await ask({ method: 'POST', path: `/config/instances/${names.instance}/discover` })
  await ask({ method: 'POST', path: `/config/instances/${names.instance}/probe`, body: { model: 'm' } })
  model.answer({ status: 401, message: echo })
  await ask({ method: 'POST', path: '/config/instances/spare/probe', body: { model: 'm' } })
  await ask({ method: 'POST', path: '/audio/transcriptions', body: transcriptionForm('voice') })
  const flow = await ownFlow({ url, headers, model }, { instance: names.instance, ...texts }, keep)
  const plan = await ownPlan({ url, headers, model }, texts, keep)
  for (const path of ['/config/engine', `/config/instances/${names.instance}/capabilities`, '/permissions']) {
    await ask({ method: 'GET', path })
  }

  const { text: file } = await ask({ method: 'POST', path: '/files', body: fileForm(memory) })
  await prepare(url, { method: 'POST', path: '/sessions', body: { session_id: session }, headers })
  const toolCall = `call_${random()}`
  const own = { tool: 'own_tool', input: { memory }, id: toolCall }
  model.answer([own, { tool: 'Write', input: { path: 'a.txt', content: memory } }])
  const waiting = await EventStream.open(`${url}/sessions/${session}/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ prompt, client_tools: [{ name: own.tool, description: memory }] }),
  })
  const { data } = await waiting.until('permission_request')
  const cursors: Cursor[] = []
  const ofConfig = ['/config/instances', '/config/secrets', '/config/webhooks']
  const ofFlows = ['/flows', '/flows/summarize/memory']
  const ofPlans = ['/plans', '/plans/schedules']
  for (const list of ['/runs', ...ofConfig, ...ofFlows, ...ofPlans, `/customers/${names.customer}/ledger`]) {
    const { text } = await ask({ method: 'GET', path: list + SHORT_LIST })
    const { next_cursor: cursor } = JSON.parse(text) as { next_cursor?: string | null }
    if (cursor) cursors.push({ list, cursor })
  }
  return {
    ids: {
      ...names,
      delivery: deliveryId,
      ...flow,
      ...plan,
      file: (JSON.parse(file) as { file_id: string }).file_id,
      session,
      run: waiting.runId,
      response: responseOf({ run: waiting.runId, session }),
      permission: String(data['id']),
      tool_call: toolCall,
    },
    canaries: {
      keys: [secretValue, ownKey, header, backendKey, signingSecret].filter((key) => key !== undefined),
      contents: Object.values(texts),
    },
    cursors,
    answers: answers.join('\n'),
    waiting,
  }
}
