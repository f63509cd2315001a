import type { Case, Fixtures } from '../case.ts'
import { post } from '../request.ts'

const PARAM = (name: string, value: unknown) =>
  [`${name}: ${JSON.stringify(value)?.slice(0, 30)}`, { prompt: '/say a', [name]: value }] as const

/** Wrong values of known fields are 400, unknown ones are ignored (D2.4, D2.6, D4.11, D4.12; api.md "RunRequest"). */
export const fields = (at: Fixtures): readonly Case[] => [
  ...prompts.map(([name, prompt]): Case => [`a prompt: ${name}`, post('/v1/agent/run', { prompt }), 400]),
  ...prompts.map(
    ([name, prompt]): Case => [`a message: ${name}`, post(`/v1/sessions/${at.session}/messages`, { prompt }), 400],
  ),
  ...wrong.map(([name, body]): Case => [name, post('/v1/agent/run', body), 400]),
  ...right.map(([name, body]): Case => [name, post('/v1/agent/run', body), 200]),
  ...replies.map(
    ([name, body]): Case => [
      `a reply: ${name}`,
      post(`/v1/sessions/${at.asking}/permissions/${at.permission}`, body),
      400,
    ],
  ),
  ['a prompt of 100,000 emoji', post('/v1/agent/run', { prompt: '😀'.repeat(100_000) }), 200],
  ['an exponent for an integer', post('/v1/agent/run', '{"prompt":"/say a","max_turns":1e1}'), 200],
  ['a number that overflows to Infinity', post('/v1/agent/run', '{"prompt":"/say a","max_turns":1e400}'), 400],
]

const prompts: readonly (readonly [string, unknown])[] = [
  ['missing', undefined],
  ['null', null],
  ['empty', ''],
  ['only blanks', ' \t\r\n\u00a0\u2003'],
  ['a number', 1],
  ['a list', ['x']],
  ['an object', { $gt: '' }],
  ['a boolean', true],
  ['100,001 characters', 'a'.repeat(100_001)],
  ['100,001 emoji', '😀'.repeat(100_001)],
  ['100,000 blanks', ' '.repeat(100_000)],
]

const wrong = [
  PARAM('provider_instance', 'x'),
  PARAM('provider_instance', null),
  PARAM('model', ''),
  PARAM('model', 5),
  PARAM('model', {}),
  PARAM('system_prompt', 5),
  PARAM('system_prompt', ['x']),
  PARAM('max_turns', 0),
  PARAM('max_turns', -1),
  PARAM('max_turns', 201),
  PARAM('max_turns', 1.5),
  PARAM('max_turns', '3'),
  PARAM('max_turns', 2 ** 53),
  PARAM('max_turns', [1]),
  PARAM('stop_sequences', 'x'),
  PARAM('stop_sequences', {}),
  PARAM('stop_sequences', ['']),
  PARAM('stop_sequences', [1]),
  PARAM('stop_sequences', [null]),
  PARAM('stop_sequences', [['x']]),
  PARAM('stop_sequences', ['x'.repeat(257)]),
  PARAM(
    'stop_sequences',
    Array.from({ length: 17 }, () => 'x'),
  ),
  PARAM(
    'stop_sequences',
    Array.from({ length: 10_000 }, () => 'x'),
  ),
  PARAM('stop_sequences', ['\ud800']),
  PARAM('customer_id', 5),
  PARAM('customer_id', 'x'.repeat(129)),
  PARAM('customer_id', 'a\nb'),
  PARAM('customer_id', 'a\u0000b'),
  PARAM('customer_id', { $ne: '' }),
  PARAM('auto_queue_plan', 'true'),
  PARAM('auto_queue_plan', 1),
] as const

const right = [
  PARAM('customer_id', ''),
  PARAM('customer_id', '$ne'),
  PARAM('customer_id', '😀'.repeat(128)),
  PARAM('stream', { what: 'ever' }),
  PARAM('tools', 'whatever'),
  PARAM('stop_sequences', []),
  PARAM(
    'stop_sequences',
    Array.from({ length: 16 }, () => 'x'.repeat(256)),
  ),
  PARAM('session_id', '../../x'),
  PARAM('tenant_id', 'another'),
] as const

const replies: readonly (readonly [string, unknown])[] = [
  ['nothing', {}],
  ['a text', { allow: 'true' }],
  ['a number', { allow: 1 }],
  ['null', { allow: null }],
  ['a list', { allow: [true] }],
  ['a reason that is not a text', { allow: true, reason: 5 }],
  ['a reason of 10,001 characters', { allow: true, reason: 'x'.repeat(10_001) }],
  ['a lone surrogate as the reason', { allow: true, reason: '\ud800' }],
]
