import { call } from '../api.ts'

export type Tenant = { url: string; headers: Record<string, string> }

/** How long the runs of a tenant took, and what was not answered as it should. */
export type Measured = { runMs: number[]; refusals: string[] }

/** Larger than what passes without taking room for bodies. */
const SYSTEM_PROMPT = 'x'.repeat(40_000)

/** A model that thinks for a while, as every real one does. */
const PROMPT = '/sleep 250\n/say ok'
const AT_ONCE = 4

/** Uses the service as an ordinary tenant does, with a few clients: sessions with a message, and runs with a large body. */
export async function useService(tenant: Tenant, rounds: number): Promise<Measured> {
  const measured: Measured = { runMs: [], refusals: [] }
  await Promise.all(Array.from({ length: AT_ONCE }, () => useOnce(tenant, rounds, measured)))
  return measured
}

async function useOnce(tenant: Tenant, rounds: number, measured: Measured): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const created = await request(tenant, { path: '/sessions', body: {} }, measured)
    const { session_id: id } = JSON.parse(created) as { session_id?: string }
    if (id === undefined) continue
    await timed(tenant, { path: `/sessions/${id}/messages`, body: { prompt: PROMPT } }, measured)
    await timed(tenant, { path: '/agent/run', body: { prompt: PROMPT, system_prompt: SYSTEM_PROMPT } }, measured)
    await request(tenant, { method: 'DELETE', path: `/sessions/${id}` }, measured)
  }
}

type Ask = { method?: string; path: string; body?: unknown }

async function timed(tenant: Tenant, ask: Ask, measured: Measured): Promise<void> {
  const from = performance.now()
  const text = await request(tenant, ask, measured)
  measured.runMs.push(performance.now() - from)
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
