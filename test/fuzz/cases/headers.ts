import type { Case } from '../case.ts'
import { get, post, raw, TOKEN } from '../request.ts'

const OWN = 'https://app.example'
const ID = 'x-request-id'
const MADE = { headers: { [ID]: /^req_[0-9a-f]{32}$/ } }
const CSS = '/v1/docs/swagger-ui.css'
const BLANKS = ' '.repeat(15_000)

const host = (Host: string | readonly string[] | undefined) => get('/v1/health', { Host })
const key = (Authorization: string | readonly string[] | undefined) => get('/v1/tools', { Authorization })
const origin = (Origin: string) => get('/v1/tools', { Origin })
const type = (value: string | readonly string[] | undefined) => post('/v1/sessions', '{}', { 'Content-Type': value })

/** `Host` on a loopback address (D2.10). */
export const hosts: readonly Case[] = [
  ['no host', host(undefined), 400],
  ['an empty host', host(''), 403],
  ['localhost', host('localhost'), 200],
  ['LOCALHOST', host('LOCALHOST:80'), 200],
  ['the IPv6 loopback', host('[::1]:8080'), 200],
  ['another name', host('evil.example'), 403],
  ['a name that begins with localhost', host('localhost.evil.example'), 403],
  ['a name that ends with the loopback address', host('evil.example:127.0.0.1'), 403],
  ['a user in front', host('evil.example@127.0.0.1'), 403],
  ['a port that is not a number', host('127.0.0.1:port'), 403],
  ['another loopback address', host('127.0.0.2'), 403],
  ['the loopback address as a decimal number', host('2130706433'), 403],
  ['a trailing dot', host('localhost.'), 403],
  ['an IPv4 address mapped to IPv6', host('[::ffff:127.0.0.1]'), 403],
  ['a long name', host('a'.repeat(8_000)), 403],
  ['two hosts', host(['127.0.0.1', 'evil.example']), '4xx'],
  ['two hosts, the good one last', host(['evil.example', '127.0.0.1']), '4xx'],
  ['an absolute address', raw('GET http://127.0.0.1/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'), 200],
  ['a forwarded host', get('/v1/health', { Host: 'evil.example', 'X-Forwarded-Host': 'localhost' }), 403],
]

/** `Authorization` of the standalone form (api.md "Authentication" 7). */
export const keys: readonly Case[] = [
  ['no token', key(undefined), 401],
  ['an empty header', key(''), 401],
  ['another token', key('Bearer wrong'), 403],
  ['a token without its last character', key(`Bearer ${TOKEN.slice(0, -1)}`), 403],
  ['a token with a suffix', key(`Bearer ${TOKEN}x`), 403],
  ['a token twice', key(`Bearer ${TOKEN} ${TOKEN}`), 403],
  ['only the scheme', key('Bearer'), '4xx'],
  ['only the token', key(TOKEN), 403],
  ['another scheme', key(`Basic ${TOKEN}`), 403],
  ['basic authentication', key(`Basic ${Buffer.from(`:${TOKEN}`).toString('base64')}`), 403],
  ['a scheme in lower case', key(`bearer ${TOKEN}`), 200],
  ['a control character in the token', key(`Bearer ${TOKEN}\x01`), '4xx'],
  ['Latin-1 in the token', key(`Bearer ${TOKEN}é`), 403],
  ['a token of 15 KB', key(`Bearer ${'a'.repeat(15_000)}`), 403],
  ['15 KB of blanks', key(`Bearer ${BLANKS}x y`), 403],
  ['two headers, the good one first', key([`Bearer ${TOKEN}`, 'Bearer wrong']), '2xx'],
  ['two headers, the good one last', key(['Bearer wrong', `Bearer ${TOKEN}`]), 403],
  ['the token in the query', get(`/v1/tools?access_token=${TOKEN}`, { Authorization: undefined }), 401],
  ['the token in a cookie', get('/v1/tools', { Authorization: undefined, Cookie: `token=${TOKEN}` }), 401],
  ['an unknown path without a token', get('/v1/nothing', { Authorization: undefined }), '4xx'],
  ['a bad path without a token', get('/v1/%ff', { Authorization: undefined }), '4xx'],
  ['a preflight without a token', raw('OPTIONS /v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'), 204],
]

/** `Origin` (api.md "CORS headers set"). */
export const origins: readonly Case[] = [
  ['an allowed origin', origin(OWN), 200, { headers: { 'access-control-allow-origin': /^https:\/\/app\.example$/ } }],
  ...[
    'null',
    'https://evil.example',
    `${OWN}.evil.example`,
    `${OWN}:444`,
    OWN.toUpperCase(),
    '*',
    'a'.repeat(9_000),
  ].map(
    (other): Case => [
      `the origin ${other.slice(0, 40)}`,
      origin(other),
      200,
      { headers: { 'access-control-allow-origin': /^$/ } },
    ],
  ),
]

/** `Content-Type` and the other headers that describe a body (D2.1; a compressed body is 415, so that it cannot expand in memory). */
export const types: readonly Case[] = [
  ['no type', type(undefined), 415],
  ['an empty type', type(''), 415],
  ['text', type('text/plain'), 415],
  ['a form', type('application/x-www-form-urlencoded'), 415],
  ['multipart', type('multipart/form-data; boundary=x'), 415],
  ['multipart without a boundary', type('multipart/form-data'), 415],
  ['another type with the suffix +json', type('application/json-patch+json'), 415],
  ['a type that begins with application/json', type('application/jsonx'), 415],
  ['a list of types', type('application/json, text/plain'), 415],
  ['a type in capitals', type('Application/JSON'), 201],
  ['UTF-8', type('application/json; charset=UTF-8'), 201],
  ['UTF-8 in quotes', type('application/json; charset="utf-8"'), 201],
  ['another charset', type('application/json; charset=utf-16'), 415],
  ['a charset of 15 KB', type(`application/json; charset=${'a'.repeat(15_000)}`), 415],
  ['a charset of 15 KB of blanks', type(`application/json; charset=${BLANKS}"x`), 'any'],
  ['15 KB of parameters', type(`application/json${'; a=b'.repeat(3_000)}`), 'any'],
  ['the type twice', type(['application/json', 'text/plain']), '2xx'],
  ['gzip', post('/v1/sessions', '{}', { 'Content-Encoding': 'gzip' }), 415],
  ['several encodings', post('/v1/sessions', '{}', { 'Content-Encoding': 'identity, gzip' }), 415],
  ['an unknown encoding', post('/v1/sessions', '{}', { 'Content-Encoding': 'x' }), 415],
  ['Expect: 100-continue', post('/v1/sessions', '{}', { Expect: '100-continue' }), 201],
  ['an unknown expectation', post('/v1/sessions', '{}', { Expect: 'a miracle' }), '2xx'],
  ['an upgrade', get('/v1/tools', { Connection: 'Upgrade', Upgrade: 'websocket' }), 200],
  ['an upgrade to HTTP/2', get('/v1/tools', { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c' }), 200],
]

/** `X-Request-ID` (D2.5). */
export const requestIds: readonly Case[] = [
  ['an id of the client', get('/v1/health', { [ID]: 'a.B-1_' }), 200, { headers: { [ID]: /^a\.B-1_$/ } }],
  ['an id on a refusal', get('/v1/nothing', { [ID]: 'mine' }), 404, { headers: { [ID]: /^mine$/ } }],
  ...['', ' ', 'a b', 'a'.repeat(129), 'a;b', '<script>', 'é', '../x', '\x7f', '{"a":1}'].map(
    (id): Case => [
      `the id ${JSON.stringify(id.slice(0, 20))}`,
      get('/v1/health', { [ID]: id }),
      id === '\x7f' ? '4xx' : 200,
      MADE,
    ],
  ),
  ['two ids', get('/v1/health', { [ID]: ['a', 'b'] }), 200, MADE],
]

/** Headers that a library below the product may act on: none causes a 5xx. */
export const odd: readonly Case[] = [
  ['a range beyond the end', get(CSS, { Range: 'bytes=999999999-' }), 'any'],
  ['an invalid range', get(CSS, { Range: 'bytes=a-b' }), '2xx'],
  ['many ranges', get(CSS, { Range: `bytes=${'0-1,'.repeat(1_000)}0-1` }), '2xx'],
  ['an If-Match that does not match', get(CSS, { 'If-Match': '"x"' }), '4xx'],
  ['an If-Unmodified-Since in the past', get(CSS, { 'If-Unmodified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' }), '4xx'],
  ['an invalid date', get(CSS, { 'If-Modified-Since': 'yesterday' }), '2xx'],
  ['an Accept that excludes everything', get('/v1/tools', { Accept: 'image/png;q=0' }), 200],
  ['an Accept of 15 KB', get('/v1/tools', { Accept: 'a/b,'.repeat(3_500) }), 200],
  ['an invalid forwarded address', get('/v1/tools', { 'X-Forwarded-For': '1.2.3.4, evil, ::1%eth0' }), 200],
  ['a forwarded scheme', get('/v1/tools', { 'X-Forwarded-Proto': 'javascript' }), 200],
  ['a cookie of 15 KB', get('/v1/tools', { Cookie: 'a=b;'.repeat(3_500) }), 200],
  ['a header that begins with __proto__', get('/v1/tools', { ['__proto__x']: 'a' }), 200],
  ['a header named constructor', get('/v1/tools', { constructor: 'a', toString: 'b', hasOwnProperty: 'c' }), 200],
  [
    'a header that is exactly __proto__',
    raw(`GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n__proto__: a\r\n\r\n`),
    200,
  ],
  ['TE and trailers', get('/v1/tools', { TE: 'trailers, deflate;q=0.5' }), 200],
  ['other headers named in Connection', get('/v1/tools', { Connection: 'keep-alive, authorization, host' }), '2xx'],
]
