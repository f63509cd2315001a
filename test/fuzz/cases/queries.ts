import type { Case, Fixtures } from '../case.ts'
import { get, type Headers } from '../request.ts'

/** A query parameter is a single string in its own format. Other parameters are ignored (D2.7, D2.11, D4.5c). */
export const queries = ({ run }: Fixtures): readonly Case[] => [
  ...bad.map((query): Case => [`runs?${query.slice(0, 40)}`, get(`/v1/runs?${query}`), 400]),
  ...harmless.map((query): Case => [`runs?${query.slice(0, 40)}`, get(`/v1/runs?${query}`), 200]),
  ...notNumbers.map((id): Case => [`Last-Event-ID: ${id.slice(0, 30)}`, events(run, { 'Last-Event-ID': id }), 400]),
  ...numbers.map((id): Case => [`Last-Event-ID: ${id}`, events(run, { 'Last-Event-ID': id }), 200]),
  ...['', 'x', '-1', '1.5', '1&last_event_id=2', '%00', '1%20', '٣'].map(
    (id): Case => [`last_event_id=${id}`, get(`/v1/runs/${run}/events?last_event_id=${encodeURI(id)}`), 400],
  ),
  ['two Last-Event-IDs', events(run, { 'Last-Event-ID': ['1', '2'] }), 400],
  ['a bad header beside a good query', get(`/v1/runs/${run}/events?last_event_id=1`, { 'Last-Event-ID': 'x' }), 400],
  ['a good header beside a bad query', get(`/v1/runs/${run}/events?last_event_id=x`, { 'Last-Event-ID': '1' }), 200],
  ['the events of an unknown run', get(`/v1/runs/run_${'f'.repeat(32)}/events`, { 'Last-Event-ID': '1' }), 404],
]

const events = (run: string, headers: Headers) => get(`/v1/runs/${run}/events`, headers)

const bad = [
  'limit=0',
  'limit=-1',
  'limit=201',
  'limit=1.5',
  'limit=1e2',
  'limit=',
  'limit=x',
  'limit=%31%00',
  'limit=99999999999999999999',
  'limit=1&limit=2',
  'limit=%F0%9F%98%80',
  'limit=%zz',
  'limit=0x10',
  'limit=+5',
  'cursor=',
  'cursor=x',
  'cursor=%00',
  'cursor=a&cursor=b',
  `cursor=${'a'.repeat(513)}`,
  `cursor=${'a'.repeat(8_000)}`,
  `cursor=${Buffer.from('{"$gt":""}').toString('base64url')}`,
  'status=',
  'status=unknown',
  'status=DONE',
  'status=done&status=failed',
  'status=__proto__',
]

const harmless = [
  'limit[$gt]=1',
  'limit[]=1',
  '__proto__=1',
  '__proto__[limit]=x',
  'constructor[prototype][x]=1',
  '%',
  '&&&===',
  'a=%ff',
  `a=${'b'.repeat(8_000)}`,
  Array.from({ length: 3_000 }, (_, i) => `${i % 10}=`).join('&'),
  'LIMIT=0',
  'limit=%32',
  'status=running',
  '?limit=0',
]

const notNumbers = [
  '4294967296',
  '999999999999999',
  '',
  'x',
  '-1',
  '+1',
  '1.5',
  '1e3',
  '0x1',
  'NaN',
  'null',
  '1 2',
  '1;2',
  'a'.repeat(8_000),
  '9'.repeat(400),
]
const numbers = ['0', '1', '00', '2', '4294967295']
