import type { Random } from '../harness/seed.ts'
import type { Fixtures } from './case.ts'
import { flowRequests, type Plain } from './flow-requests.ts'
import { planRequests } from './plan-requests.ts'
import { type Headers, request } from './request.ts'

/** A request in parts, so that mutators can change them one by one. */
export type Draft = {
  method: string
  segments: readonly string[]
  query: readonly (readonly [string, string])[]
  headers: Headers
  /** Sent as JSON, or unchanged if it is a buffer. */
  body?: unknown
  /** Transformations of the encoded request, applied last. */
  wire: readonly ((bytes: Buffer) => Buffer)[]
  /** Server and client agree where the request ends, so that another request may follow on this connection. */
  isFramed: boolean
}

/** The session, runs and flow that generated requests may change and delete. */
export type Victims = Fixtures

const PROMPT = '/say a'
const ALL_FIELDS = {
  prompt: PROMPT,
  model: 'm',
  system_prompt: 's',
  max_turns: 2,
  stop_sequences: ['END'],
  stream: true,
  tools: ['Read'],
  customer_id: 'c',
  auto_queue_plan: false,
}

/** One valid request for every route of the API, with all its fields. */
function plainRequests(victims: Victims): readonly Plain[] {
  const { session, run, asking, permission } = victims
  return [
    ...flowRequests(victims),
    ...planRequests(victims),
    { method: 'GET', path: 'v1/health' },
    { method: 'POST', path: 'v1/agent/run', body: ALL_FIELDS },
    { method: 'POST', path: 'v1/agent/run', body: { prompt: PROMPT } },
    { method: 'POST', path: 'v1/sessions', body: { session_id: `s-${session}` } },
    { method: 'POST', path: 'v1/sessions' },
    { method: 'GET', path: `v1/sessions/${session}` },
    { method: 'DELETE', path: `v1/sessions/${session}` },
    { method: 'POST', path: `v1/sessions/${session}/messages`, body: { prompt: PROMPT, model: 'm' } },
    { method: 'POST', path: `v1/sessions/${asking}/permissions/${permission}`, body: { allow: false, reason: 'no' } },
    { method: 'GET', path: 'v1/tools' },
    {
      method: 'GET',
      path: 'v1/runs',
      query: [
        ['limit', '2'],
        ['status', 'running'],
      ],
    },
    { method: 'GET', path: `v1/runs/${run}` },
    { method: 'DELETE', path: `v1/runs/${run}` },
    { method: 'GET', path: `v1/runs/${run}/events`, headers: { 'Last-Event-ID': '1' } },
    { method: 'GET', path: `v1/runs/${run}/events`, query: [['last_event_id', '1']] },
    { method: 'GET', path: 'v1/openapi.json' },
    { method: 'GET', path: 'v1/docs' },
    { method: 'GET', path: 'v1/docs/start.js' },
    { method: 'GET', path: 'v1/docs/favicon-32x32.png' },
    { method: 'OPTIONS', path: 'v1/agent/run', headers: { Origin: 'https://app.example' } },
  ]
}

export function pickDraft(victims: Victims, random: Random): Draft {
  const { method, path, query = [], headers = {}, body } = random.pick(plainRequests(victims))
  return { method, segments: path.split('/'), query, headers, body, wire: [], isFramed: true }
}

export function encode({ method, segments, query, headers, body, wire }: Draft): Buffer {
  const search = query.map(([name, value]) => `${name}=${value}`).join('&')
  const path = `/${segments.join('/')}${search === '' ? '' : `?${search}`}`
  return wire.reduce((bytes, mutate) => mutate(bytes), request({ method, path, headers, body }))
}
