import type { Case, Fixtures } from '../case.ts'
import { get, post, request } from '../request.ts'

const HEX = '0'.repeat(32)
const STEP = { id: 'a', prompt: '/say a' }
const OK = { steps: [STEP] }

const submit = (body: unknown, headers: Record<string, string | readonly string[]> = {}) =>
  post('/v1/plans/submit', body, headers)
const steps = (...all: readonly object[]) => ({ steps: all.map((step) => ({ ...STEP, ...step })) })
const schedule = (name: string, body: unknown) => request({ method: 'PUT', path: `/v1/plans/schedules/${name}`, body })

/** The plan queue (api.md "Plan queue", D7). */
export const plans = (at: Fixtures): readonly Case[] => [
  ...wrongPlans.map(([name, body]): Case => [`a plan with ${name}`, submit(body), 400]),
  ...strangeIds.map((id): Case => [`a plan with a step ${id}`, submit(steps({ id })), 202]),
  ['a plan of 1 MB', submit(steps({ prompt: 'x'.repeat(1_100_000) })), 400],
  ...['', ' ', 'a'.repeat(256), '\u00e9', ['a', 'b']].map(
    (key): Case => [`a plan with the key ${String(key).slice(0, 30)}`, submit(OK, { 'Idempotency-Key': key }), 400],
  ),
  ...wrongIds(at).map((id): Case => [`the plan ${id.slice(0, 40)}`, get(`/v1/plans/${id}`), 404]),
  ...wrongIds(at).map((id): Case => [`the events of ${id.slice(0, 40)}`, get(`/v1/plans/${id}/events`), 404]),
  ...wrongIds(at).map((id): Case => [`a cancel of ${id.slice(0, 40)}`, post(`/v1/plans/${id}/cancel`), 404]),
  ['a cancel of an ended plan', post(`/v1/plans/${at.plan}/cancel`), 409],
  ['the events of an ended plan', get(`/v1/plans/${at.plan}/events`, { 'Last-Event-ID': '99999' }), 204],
  ['a plan, deleted', request({ method: 'DELETE', path: `/v1/plans/${at.plan}` }), 405],
  ...wrongQueries.map((query): Case => [`plans?${query.slice(0, 40)}`, get(`/v1/plans?${query}`), 400]),
  ...wrongTimes.map(([name, times]): Case => [`a schedule with ${name}`, schedule('s', { ...times, plan: OK }), 400]),
  ['a schedule without a plan', schedule('s', { every_secs: 60 }), 400],
  ['a schedule of a circle', schedule('s', { every_secs: 60, plan: steps({ depends_on: ['a'] }) }), 400],
  ...['%2e%2e', '__proto__', 'a%20b', 'a'.repeat(65), '%00'].map(
    (name): Case => [`the schedule ${name.slice(0, 20)}`, get(`/v1/plans/schedules/${name}`), '4xx'],
  ),
]

const many = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `s${n}` }))

const wrongPlans: readonly (readonly [string, unknown])[] = [
  ['no body', undefined],
  ['a list', []],
  ['no steps', {}],
  ['an empty list of steps', { steps: [] }],
  ['steps that are an object', { steps: { 0: STEP, length: 1 } }],
  ['a step that is null', { steps: [null] }],
  ['a step without a prompt', { steps: [{ id: 'a' }] }],
  ['a step without an id', { steps: [{ prompt: 'x' }] }],
  ['an id that is empty', steps({ id: '' })],
  ['an id that is a number', steps({ id: 5 })],
  ['a lone surrogate', steps({ prompt: '\ud800' })],
  ['201 steps', steps(...many(201))],
  ['an id twice', steps({}, {})],
  ['the id __proto__ twice', steps({ id: '__proto__' }, { id: '__proto__' })],
  ['a step that depends on itself', steps({ depends_on: ['a'] })],
  ['a circle', steps({ depends_on: ['b'] }, { id: 'b', depends_on: ['a'] })],
  ['a circle of 200 steps', steps(...many(200).map(({ id }, n) => ({ id, depends_on: [`s${(n + 1) % 200}`] })))],
  ['an unknown dependency', steps({ depends_on: ['nobody'] })],
  ['a dependency on constructor', steps({ depends_on: ['constructor'] })],
  ['a dependency that is a text', steps({ depends_on: 'a' })],
  [
    'two steps that write the same file',
    { ...steps({ writes: ['a//b'] }, { id: 'b', writes: ['./a/b'] }), parallel: true },
  ],
  ['writes outside of its folder', { ...steps({ writes: ['../b'] }, { id: 'b', writes: 5 }), parallel: true }],
  ['parallel that is a text', { ...OK, parallel: 'true' }],
  ...[0, -1, 1.5, 86_401, 1e9, '60'].map((secs) => [`a timeout of ${secs}`, { ...OK, timeout_secs: secs }] as const),
]

const strangeIds = ['__proto__', 'constructor', 'a.b', '$where', 'a b']

const wrongIds = ({ plan, run }: Fixtures): string[] => [
  `plan_${HEX}`,
  plan.toUpperCase(),
  `${plan}0`,
  plan.replace('plan_', 'run_'),
  run,
  '__proto__',
  '%00',
  'a'.repeat(4_000),
]

const wrongQueries = ['status=ok', 'status=', 'status=__proto__', 'limit=0', 'limit=201', 'cursor=x', 'cursor=WzFd']

const wrongTimes: readonly (readonly [string, object])[] = [
  ['no times', {}],
  ['both times', { every_secs: 60, cron: '* * * * *' }],
  ['a number of 0', { every_secs: 0 }],
  ['a number of 10^9', { every_secs: 1e9 }],
  ['a pattern of one field', { cron: '*' }],
  ['a pattern of 10,000 characters', { cron: '* '.repeat(5_000) }],
  ['a date that never comes', { cron: '0 0 30 2 *' }],
  ['a pattern with a code', { cron: '* * * * * ; true' }],
  ['an unknown time zone', { cron: '0 0 * * *', timezone: 'Mars/Olympus' }],
  ['a time zone that is a path', { cron: '0 0 * * *', timezone: '../../etc/passwd' }],
]
