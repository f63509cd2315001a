import { answerDirectives } from '../../support/model-server/directives.ts'
import type { Fallback, ModelServer } from '../../support/model-server/model-server.ts'
import { call, prepare } from '../api.ts'
import type { Measured, Tenant, Use } from './attack.ts'

/** Larger than what passes without taking room for bodies. */
const SYSTEM_PROMPT = 'x'.repeat(40_000)

/** A model that thinks for a while, as every real one does. */
const PROMPT = '/wait 250\n/say ok'
const AT_ONCE = 4

/** Follows the directives of a prompt. One without directives is answered after a while with an object, as a flow wants it. */
export const answerPatiently: Fallback = (asked) =>
  /^\/\w/m.test(asked.prompt) ? answerDirectives(asked) : [{ wait: 250 }, { text: '{"text":"ok"}' }]

const ANYTHING = { type: 'object' }

/** Gives a tenant the instance `main` at the model server, and the flow `ordinary`. */
export async function prepareTenant(tenant: Tenant, { url: modelUrl }: ModelServer): Promise<Tenant> {
  const { url, headers } = tenant
  const instance = { type: 'openai-compatible', url: modelUrl, key: 'k' }
  await prepare(url, { method: 'PUT', path: '/config/instances/main', body: instance, headers })
  const flow = { model: 'm', input_schema: ANYTHING, output_schema: ANYTHING }
  await prepare(url, { method: 'PUT', path: '/flows/ordinary', body: flow, headers })
  await prepare(url, { method: 'POST', path: '/flows/ordinary/publish', headers })
  return tenant
}

/** Calls a flow. */
export const useFlows =
  async (tenant: Tenant): Promise<Use> =>
  (rounds) =>
    useAtOnce(async (measured) => {
      for (let round = 0; round < rounds; round++) {
        const body = { provider_instance: 'main', input: { text: 'hello' } }
        const text = await timed(tenant, { path: '/flows/ordinary/run', body }, measured)
        if (!text.includes('"verdict":"ok"')) measured.refusals.push(`a flow did not end with ok: ${text.slice(-200)}`)
      }
    })

/** Submits a plan and follows it to its end, with each of `clients`. */
export const usePlans =
  async (tenant: Tenant, clients = AT_ONCE): Promise<Use> =>
  (rounds) =>
    useAtOnce(async (measured) => {
      for (let round = 0; round < rounds; round++) {
        const from = performance.now()
        const body = { steps: [{ id: 'a', prompt: PROMPT }] }
        const submitted = await request(tenant, { path: '/plans/submit', body }, measured)
        const { id } = JSON.parse(submitted) as { id?: string }
        if (id === undefined) continue
        const text = await request(tenant, { method: 'GET', path: `/plans/${id}/events` }, measured)
        measured.runMs.push(performance.now() - from)
        if (!/"status":"done"/.test(text)) measured.refusals.push(`a plan did not end with done: ${text.slice(-200)}`)
      }
    }, clients)

/** Uses the service as an ordinary tenant does, with a few clients: sessions with a message, and runs with a large body. */
export const useService = (tenant: Tenant, rounds: number): Promise<Measured> =>
  useAtOnce((measured) => useOnce(tenant, rounds, measured))

/** Measures what a few clients do at the same time. */
export async function useAtOnce(client: (measured: Measured) => Promise<void>, clients = AT_ONCE): Promise<Measured> {
  const measured: Measured = { runMs: [], refusals: [] }
  await Promise.all(Array.from({ length: clients }, () => client(measured)))
  return measured
}

async function useOnce(tenant: Tenant, rounds: number, measured: Measured): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const created = await request(tenant, { path: '/sessions', body: {} }, measured)
    const { session_id: id } = JSON.parse(created) as { session_id?: string }
    if (id === undefined) continue
    await timedRun(tenant, { path: `/sessions/${id}/messages`, body: { prompt: PROMPT } }, measured)
    await timedRun(tenant, { path: '/agent/run', body: { prompt: PROMPT, system_prompt: SYSTEM_PROMPT } }, measured)
    await request(tenant, { method: 'DELETE', path: `/sessions/${id}` }, measured)
  }
}

type Ask = { method?: string; path: string; body?: unknown }

/** Sends a request and measures it until its answer is complete. */
export async function timed(tenant: Tenant, ask: Ask, measured: Measured): Promise<string> {
  const from = performance.now()
  const text = await request(tenant, ask, measured)
  measured.runMs.push(performance.now() - from)
  return text
}

async function timedRun(tenant: Tenant, ask: Ask, measured: Measured): Promise<void> {
  const text = await timed(tenant, ask, measured)
  if (!text.includes('event: done')) measured.refusals.push(`${ask.path} did not end with done: ${text.slice(-200)}`)
}

async function request(
  { url, headers }: Tenant,
  { method = 'POST', ...ask }: Ask,
  measured: Measured,
): Promise<string> {
  const { status, text } = await call(url, { method, headers, ...ask })
  if (status > 299) measured.refusals.push(`${method} ${ask.path} was answered ${status}: ${text}`)
  return text
}
