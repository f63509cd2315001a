import type { Case, Fixtures } from '../case.ts'
import { get, post, raw, request } from '../request.ts'

const repeat = <const T>(times: number, what: T): T[] => Array.from({ length: times }, () => what)

/** Several requests in one write: each is answered, in order, and no body is parsed as a request. */
export const pipelines = ({ session }: Fixtures): readonly Case[] => [
  ['two requests', raw(get('/v1/health'), get('/v1/tools')), [200, 200]],
  ['a hundred requests', raw(...repeat(100, get('/v1/health'))), repeat(100, 200)],
  [
    'more requests than a connection takes',
    raw(...repeat(1_001, get('/v1/health'))),
    repeat(1_000, 200),
    { mayHaveMore: true },
  ],
  ['a refusal between two answers', raw(get('/v1/health'), get('/v1/nothing'), get('/v1/health')), [200, 404, 200]],
  ['a body for an unknown path', raw(post('/v1/nothing', 'x'.repeat(50_000)), get('/v1/health')), [404, 200]],
  [
    'a body of a GET request',
    raw(request({ method: 'GET', path: '/v1/tools', body: { a: 1 } }), get('/v1/health')),
    [200, 200],
  ],
  [
    'a request within a body',
    raw(post('/v1/nothing', `GET /v1/sessions/${session} HTTP/1.1\r\n\r\n`), get('/v1/health')),
    [404, 200],
  ],
  ['a bad body, then a good request', raw(post('/v1/agent/run', '{'), get('/v1/health')), [400, 200]],
  [
    'a wrong type, then a good request',
    raw(post('/v1/agent/run', 'x', { 'Content-Type': 'a/b' }), get('/v1/health')),
    [415],
  ],
  ['a stream, then a request', raw(post('/v1/agent/run', { prompt: '/say a' }), get('/v1/health')), [200, 200]],
  [
    'ten requests with a type of 15 KB',
    raw(
      ...repeat(10, post('/v1/sessions', '{', { 'Content-Type': `application/json; charset=${' '.repeat(15_000)}"x` })),
    ),
    'any',
    { mayHaveMore: true },
  ],
  ['a hundred lists of runs', raw(...repeat(100, get('/v1/runs?limit=200'))), repeat(100, 200)],
  [
    'thirty bodies of 100 KB',
    raw(...repeat(30, post('/v1/agent/run', `{"a":[${'{},'.repeat(33_000)}0]}`))),
    repeat(30, 400),
  ],
  ['five streams', raw(...repeat(5, post('/v1/agent/run', { prompt: '/say a' }))), repeat(5, 200)],
  [
    'ten messages to one session',
    raw(...repeat(10, post(`/v1/sessions/${session}x/messages`, { prompt: '/say a' }))),
    repeat(10, 404),
  ],
]
