import type { Case, Fixtures } from '../case.ts'
import { get, post, request } from '../request.ts'

const HEX = '0'.repeat(32)

/** Ids that cannot exist are 404 in a path and 400 in a body (D2.11), also when percent-decoding changes them. */
export const ids = (at: Fixtures): readonly Case[] => [
  ...bad.map((id): Case => [`the session ${id.slice(0, 30)}`, get(`/v1/sessions/${id}`), 404]),
  ...bad.map((id): Case => [`the run ${id.slice(0, 30)}`, get(`/v1/runs/${id}`), 404]),
  ...bad
    .slice(0, 8)
    .map((id): Case => [`deleting the session ${id}`, request({ method: 'DELETE', path: `/v1/sessions/${id}` }), 404]),
  ...named.map(
    (id): Case => [
      `a session named ${JSON.stringify(id)?.slice(0, 30)}`,
      post('/v1/sessions', { session_id: id }),
      400,
    ],
  ),
  ...legal.map((id): Case => [`a session named ${id.slice(0, 30)}`, post('/v1/sessions', { session_id: id }), 201]),
  ['a session that exists', post('/v1/sessions', { session_id: at.session }), 409],
  ['an unknown run', get(`/v1/runs/run_${HEX}`), 404],
  ['a run in capitals', get(`/v1/runs/${at.run.toUpperCase()}`), 404],
  ['a run as a session', get(`/v1/sessions/${at.run}`), 404],
  ['a session as a run', get(`/v1/runs/${at.session}`), 404],
  ['a message to an unknown session', post('/v1/sessions/nobody/messages', { prompt: 'x' }), 404],
  ['a message to a run', post(`/v1/sessions/${at.run}/messages`, { prompt: 'x' }), 404],
  ['a reply to an unknown request', post(`/v1/sessions/${at.session}/permissions/perm_${HEX}`, { allow: true }), 404],
  ['a reply in another session', post(`/v1/sessions/${at.session}/permissions/${at.permission}`, { allow: true }), 404],
  ['a reply to another run', post(`/v1/sessions/${at.run}/permissions/${at.permission}`, { allow: true }), 404],
  ['a reply to __proto__', post(`/v1/sessions/${at.asking}/permissions/__proto__`, { allow: true }), 404],
  ['a reply to a regular expression', post(`/v1/sessions/${at.asking}/permissions/.*`, { allow: true }), 404],
  [
    'a reply to an id with a suffix',
    post(`/v1/sessions/${at.asking}/permissions/${at.permission}x`, { allow: true }),
    404,
  ],
]

const bad = [
  '.',
  '..',
  '%2e%2e',
  '..%2f..%2f..%2fetc%2fpasswd',
  '__proto__',
  'constructor',
  'a%00b',
  'a%0d%0aX:y',
  'a%20b',
  'a%2Fb',
  '%F0%9F%98%80',
  '{"$gt":""}',
  '[object%20Object]',
  '$where',
  "'%20OR%201=1--",
  '<script>alert(1)</script>',
  'null',
  'undefined',
  '-1',
  '0',
  `run_${'g'.repeat(32)}`,
  `sess_${HEX}`,
  'a'.repeat(128),
  'a'.repeat(129),
  'a'.repeat(4_000),
]

const named: readonly unknown[] = [
  '',
  ' ',
  'a b',
  'a/b',
  '../x',
  'a\n',
  'é',
  '😀',
  'a'.repeat(129),
  5,
  null,
  {},
  [],
  ['a'],
  true,
  '{}',
  '.',
  '..',
  `run_${HEX}`,
]

/** Unusual ids that match the pattern. The sessions are deleted again. */
const legal = ['...', '__proto__', 'constructor', ':', '-', 'a'.repeat(128), 'toString', 'null']
