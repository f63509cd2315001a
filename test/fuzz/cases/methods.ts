import { METHODS } from 'node:http'
import type { Case, Fixtures } from '../case.ts'
import { raw, request } from '../request.ts'

const ALLOW = { headers: { allow: /^[A-Z, ]+$/ } }

/** Methods that a path does not support are 405 with `Allow` (D2.2). OPTIONS is always answered (api.md "Authentication" 4). */
export const methods = ({ session, run }: Fixtures): readonly Case[] => [
  ...METHODS.filter((method) => !['GET', 'HEAD', 'OPTIONS', 'CONNECT'].includes(method)).map(
    (method): Case => [`${method} on /tools`, request({ method, path: '/v1/tools' }), 405, ALLOW],
  ),
  ['GET on /agent/run', request({ method: 'GET', path: '/v1/agent/run' }), 405, { headers: { allow: /POST/ } }],
  ['PUT on /agent/run', request({ method: 'PUT', path: '/v1/agent/run', body: { prompt: 'x' } }), 405, ALLOW],
  ['PUT on /sessions', request({ method: 'PUT', path: '/v1/sessions', body: {} }), 405, ALLOW],
  ['DELETE on /sessions', request({ method: 'DELETE', path: '/v1/sessions' }), 405, ALLOW],
  ['DELETE on /runs', request({ method: 'DELETE', path: '/v1/runs' }), 405, ALLOW],
  ['POST on a run', request({ method: 'POST', path: `/v1/runs/${run}`, body: {} }), 405, ALLOW],
  ['PUT on a session', request({ method: 'PUT', path: `/v1/sessions/${session}`, body: {} }), 405, ALLOW],
  ['POST on /health', request({ method: 'POST', path: '/v1/health' }), 405, ALLOW],
  ['HEAD of a route that only takes POST', request({ method: 'HEAD', path: '/v1/agent/run' }), 405, ALLOW],
  ['HEAD of an unknown path', request({ method: 'HEAD', path: '/v1/nothing' }), 404],
  ['HEAD of /tools', request({ method: 'HEAD', path: '/v1/tools' }), 200],
  ['HEAD of a running stream', request({ method: 'HEAD', path: `/v1/runs/${run}/events` }), 200],
  ['OPTIONS of an unknown path', request({ method: 'OPTIONS', path: '/v1/nothing' }), 204],
  ['OPTIONS of a path with invalid percent-encoding', request({ method: 'OPTIONS', path: '/v1/%' }), 204],
  ['OPTIONS of the server', request({ method: 'OPTIONS', path: '*' }), 204],
  ['GET of the server', request({ method: 'GET', path: '*' }), 404],
  ['a method in lower case', request({ method: 'get', path: '/v1/tools' }), 400],
  ['a method that does not exist', request({ method: 'SHOVE', path: '/v1/tools' }), 400],
  ['a method of a thousand letters', request({ method: 'G'.repeat(1_000), path: '/v1/tools' }), 400],
  ['no method', raw(' /v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'), 400],
  ['CONNECT', request({ method: 'CONNECT', path: 'example.com:443' }), '4xx'],
  ['CONNECT to a path', request({ method: 'CONNECT', path: '/v1/tools' }), 400],
  [
    'a method override header',
    request({ method: 'POST', path: '/v1/tools', headers: { 'X-HTTP-Method-Override': 'GET' } }),
    405,
  ],
]
