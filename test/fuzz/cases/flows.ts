import type { Case, Fixtures } from '../case.ts'
import { INSTANCE, OPEN_FLOW } from '../flow-requests.ts'
import { get, post, request } from '../request.ts'

const OBJECT = { type: 'object' }
const HEX = '0'.repeat(32)

const put = (name: string, body: unknown) => request({ method: 'PUT', path: `/v1/flows/${name}`, body })
const remove = (path: string) => request({ method: 'DELETE', path: `/v1/${path}` })
const define = (more: object) => put('fuzzed', { ...OPEN_FLOW, ...more })

/** Flows and their history (api.md "Named flows" and "Flow execution history", D6). */
export const flows = (at: Fixtures): readonly Case[] => [
  ...wrongDefinitions.map(([name, more]): Case => [`a flow with ${name}`, define(more), 400]),
  ...drafts.map(([name, more]): Case => [`a draft with ${name}`, define(more), 200]),
  ['a draft that does not compile', define({ output_schema: { type: 'strng' } }), 200],
  ['its publication', post('/v1/flows/fuzzed/publish'), '4xx'],
  ['its run', run('fuzzed'), 404],
  ['its deletion', remove('flows/fuzzed'), 'any'],
  ['a flow of 1 MB', define({ description: 'x', input_schema: { ...OBJECT, title: 'x'.repeat(1_100_000) } }), 400],
  ['a built-in flow, stored', put('summarize', OPEN_FLOW), 403],
  ['a built-in flow, deleted', remove('flows/summarize'), 403],
  ['the reserved name', put('tools', OPEN_FLOW), 400],
  ...names.map((name): Case => [`the flow ${name.slice(0, 30)}`, get(`/v1/flows/${name}`), 404]),
  ...names.map((name): Case => [`a run of the flow ${name.slice(0, 30)}`, run(name), 404]),
  ...versions.map((version): Case => [`the version ${version}`, post(`/v1/flows/${at.flow}/rollback/${version}`), 404]),
  ...runBodies.map(([name, body]): Case => [`a run with ${name}`, post(`/v1/flows/${at.flow}/run`, body), 400]),
  ...keys.map((key): Case => [`the key ${String(key).slice(0, 30)}`, run(at.flow, { 'Idempotency-Key': key }), 400]),
  ...memories.map(
    ([name, body]): Case => [
      `a memory with ${name}`,
      post(`/v1/flows/${at.flow}/memory`, body),
      name === 'more than 8 KB' ? '4xx' : 400,
    ],
  ),
  ['a memory of the reserved scope', post(`/v1/flows/${at.flow}/memory?scope=evolve`, { content: 'x' }), 400],
  ...['', 'a%00b', 'a/b', '..', 'x'.repeat(200), 'a&scope=b'].map(
    (scope): Case => [`the scope ${scope.slice(0, 20)}`, get(`/v1/flows/${at.flow}/memory?scope=${scope}`), '4xx'],
  ),
  ...['x', `mem_${HEX.toUpperCase()}G`, '__proto__', ''].map(
    (id): Case => [`the entry ${id}`, remove(`flows/${at.flow}/memory?entry_id=${id}`), 400],
  ),
  ['an unknown entry', remove(`flows/${at.flow}/memory?entry_id=mem_${HEX}`), 404],
  ['a flow of an unknown name, evaluated', post('/v1/flows/nobody/evaluate', {}), '4xx'],
  ...dispatchIds(at).map((id): Case => [`the dispatch ${id.slice(0, 40)}`, get(`/v1/dispatches/${id}`), 404]),
  ...dispatchIds(at).map((id): Case => [`the events of ${id.slice(0, 40)}`, get(`/v1/dispatches/${id}/events`), 404]),
  ...filters.map((query): Case => [`dispatches?${query.slice(0, 40)}`, get(`/v1/dispatches?${query}`), 400]),
  ...['0', '101', '-1', 'x', '1e1000', 'NaN', '', '1&speed=2'].map(
    (speed): Case => [`the speed ${speed}`, get(`/v1/dispatches/${at.trace}/events?speed=${speed}`), 400],
  ),
  ['a replay from the middle', get(`/v1/dispatches/${at.trace}/events`, { 'Last-Event-ID': '1' }), 200],
  ['a dispatch with another method', remove(`dispatches/${at.trace}`), 405],
]

const run = (name: string, headers: Record<string, string | readonly string[]> = {}) =>
  post(`/v1/flows/${name}/run`, { input: {}, provider_instance: INSTANCE, model: 'm' }, headers)

const agent = (more: object) => ({ name: 'a', prompt: 'x', output_schema: OBJECT, ...more })

const wrongDefinitions: readonly (readonly [string, object])[] = [
  ['no input_schema', { input_schema: undefined }],
  ['a schema that is a boolean', { output_schema: true }],
  ['a schema that is a list', { output_schema: [] }],
  ['a template that is a number', { system_prompt_template: 5 }],
  ['a template of 100,001 characters', { user_prompt_template: 'x'.repeat(100_001) }],
  ['a lone surrogate', { system_prompt_template: '\ud800' }],
  ['tools that are a text', { tools: 'Read' }],
  ['a tool without a name', { tools: [''] }],
  ['129 tools', { tools: Array.from({ length: 129 }, (_, i) => `t${i}`) }],
  ['nine sub-agents', { sub_agents: Array.from({ length: 9 }, (_, i) => agent({ name: `a${i}` })) }],
  ['a sub-agent that is a text', { sub_agents: ['a'] }],
  ['a sub-agent __proto__', { sub_agents: [agent({ name: '__proto__' })] }],
  ['a sub-agent without a schema', { sub_agents: [agent({ output_schema: undefined })] }],
  ['a model that is empty', { model: '' }],
  ['evolve that is a text', { evolve: 'true' }],
]

/** These are refused when they are published. */
const drafts: readonly (readonly [string, object])[] = [
  ['an unknown tool', { tools: ['constructor'] }],
  ['a sub-agent named memory', { sub_agents: [agent({ name: 'memory' })] }],
  ['a reference to nothing', { system_prompt_template: '{{.sub_outputs.nobody}}' }],
  ['a template that is not closed', { system_prompt_template: '{{.input.'.repeat(5_000) }],
  ['a schema that refers to itself', { output_schema: { $ref: '#' } }],
  ['a pattern with nested quantifiers', { input_schema: { properties: { a: { pattern: '^(a+)+$' } } } }],
]

const names = [
  '%2e%2e',
  '__proto__',
  'constructor',
  'A',
  '-a',
  'a%20b',
  'a%00',
  'a'.repeat(65),
  '%C3%A9',
  '$where',
  'nobody',
]
const versions = ['0', '-1', '1.5', 'x', '1e3', '999999', '9'.repeat(40), '__proto__', '%00']

const valid = { input: {}, provider_instance: INSTANCE, model: 'm' }
const runBodies: readonly (readonly [string, unknown])[] = [
  ['no body', undefined],
  ['a list', []],
  ['no input', { ...valid, input: undefined }],
  ['an input that is a list', { ...valid, input: [] }],
  ['an input that is a text', { ...valid, input: '{}' }],
  ['a key __proto__ in the input', '{"input":{"__proto__":{"a":1}},"provider_instance":"model","model":"m"}'],
  ['no instance', { ...valid, provider_instance: undefined }],
  ['an unknown instance', { ...valid, provider_instance: 'nobody' }],
  ['an instance that is an object', { ...valid, provider_instance: { $ne: '' } }],
  ['an instance __proto__', { ...valid, provider_instance: '__proto__' }],
  ['no model', { ...valid, model: undefined }],
  ['a model that is a number', { ...valid, model: 5 }],
  ['half a fallback', { ...valid, fallback_instance: INSTANCE }],
  ['the other half', { ...valid, fallback_model: 'm' }],
  ['an unknown fallback', { ...valid, fallback_instance: 'nobody', fallback_model: 'm' }],
]

const keys = ['', ' ', 'a'.repeat(256), '\u00e9', 'a\tb', ['a', 'b']]

const memories: readonly (readonly [string, unknown])[] = [
  ['nothing', {}],
  ['a number', { content: 5 }],
  ['a list', { content: ['x'] }],
  ['null', { content: null }],
  ['more than 8 KB', { content: 'x'.repeat(8_193) }],
  ['a lone surrogate', { content: '\ud800' }],
]

const dispatchIds = ({ trace, run: runId }: Fixtures): string[] => [
  `trace_${HEX}`,
  trace.toUpperCase(),
  `${trace}0`,
  runId,
  '__proto__',
  '%2e%2e',
  '*',
  'a'.repeat(4_000),
]

const filters = [
  'status=done',
  'status=',
  'status=ok&status=error',
  'status=__proto__',
  'flow=',
  'flow=A',
  'flow=%00',
  'since=yesterday',
  'since=2026-13-01',
  'since=1',
  'until=2026-01-01T00:00',
  'until=',
  'limit=0',
  'limit=201',
  'cursor=x',
  `cursor=${Buffer.from('[{"$gt":""},""]').toString('base64url')}`,
]
