import type { Fixtures } from './case.ts'
import type { Plain } from './flow-requests.ts'

const PLAN = {
  title: 't',
  parallel: true,
  timeout_secs: 60,
  steps: [
    { id: 'a', prompt: '/say a', title: 't', writes: ['a.txt'], idempotent: true },
    { id: 'b', prompt: '/say b', depends_on: ['a'] },
  ],
}
/** It does not come while the fuzzing goes on. */
const TIMES = { cron: '0 0 1 1 *', timezone: 'Europe/Berlin' }

/** One valid request for every route of the plan queue. */
export const planRequests = ({ plan }: Fixtures): readonly Plain[] => [
  { method: 'POST', path: 'v1/plans/submit', body: PLAN, headers: { 'Idempotency-Key': 'k' } },
  { method: 'POST', path: 'v1/plans/submit', body: PLAN },
  {
    method: 'GET',
    path: 'v1/plans',
    query: [
      ['limit', '2'],
      ['status', 'done'],
    ],
  },
  { method: 'GET', path: `v1/plans/${plan}` },
  { method: 'GET', path: `v1/plans/${plan}/events`, headers: { 'Last-Event-ID': '1' } },
  { method: 'POST', path: 'v1/plans/check', body: PLAN },
  { method: 'POST', path: `v1/plans/${plan}/cancel` },
  { method: 'POST', path: `v1/plans/${plan}/retry`, headers: { 'Idempotency-Key': 'again' } },
  { method: 'PUT', path: 'v1/plans/schedules/yearly', body: { ...TIMES, plan: PLAN } },
  { method: 'GET', path: 'v1/plans/schedules/yearly' },
  { method: 'GET', path: 'v1/plans/schedules', query: [['limit', '2']] },
  { method: 'DELETE', path: 'v1/plans/schedules/yearly' },
]
