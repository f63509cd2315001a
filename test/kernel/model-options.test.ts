import { expect } from 'chai'
import { findOptionsProblem } from '../../shared/kernel/model-options.ts'
import { createBodies } from '../../shared/platform/api/bodies.ts'
import { ConfigError, loadConfig } from '../../shared/platform/config/config.ts'

/** Options, and the pointer of what is wrong with them; `undefined` for good ones. */
const TABLE: [options: unknown, pointer: string | undefined][] = [
  [{}, undefined],
  [{ max_output_tokens: 1, temperature: 0, reasoning_effort: 'none', context_window: 1, timeout_secs: 1 }, undefined],
  [
    { max_output_tokens: 1_000_000, temperature: 2, timeout_secs: 3_600, parallel_tool_calls: false, flex: true },
    undefined,
  ],
  [{ headers: { 'X-Team': 'blue', 'x-empty': '' } }, undefined],
  [[], ''],
  [null, ''],
  ['text', ''],
  [{ top_k: 1 }, '/top_k'],
  [{ toString: 1 }, '/toString'],
  [{ max_output_tokens: 0 }, '/max_output_tokens'],
  [{ max_output_tokens: 1.5 }, '/max_output_tokens'],
  [{ max_output_tokens: 1_000_001 }, '/max_output_tokens'],
  [{ temperature: -0.1 }, '/temperature'],
  [{ temperature: 2.1 }, '/temperature'],
  [{ temperature: '1' }, '/temperature'],
  [{ reasoning_effort: 'huge' }, '/reasoning_effort'],
  [{ context_window: 0 }, '/context_window'],
  [{ timeout_secs: 0 }, '/timeout_secs'],
  [{ timeout_secs: 3_601 }, '/timeout_secs'],
  [{ parallel_tool_calls: 1 }, '/parallel_tool_calls'],
  [{ flex: 'yes' }, '/flex'],
  [{ headers: { a: 1 } }, '/headers'],
  [{ headers: [] }, '/headers'],
  [{ headers: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`x-${i}`, ''])) }, '/headers'],
  [{ headers: { 'a b': 'x' } }, '/headers/a b'],
  [{ headers: { a: 'x\ny' } }, '/headers/a'],
  [{ headers: { a: 'x'.repeat(1_025) } }, '/headers/a'],
  [{ headers: { Authorization: 'Bearer x' } }, '/headers/Authorization'],
  [{ headers: { host: 'x' } }, '/headers/host'],
  [{ headers: { 'Content-Length': '1' } }, '/headers/Content-Length'],
]

const nameOf = (options: unknown) => JSON.stringify(options).slice(0, 60)

const environment = (options: unknown) => ({
  MODEL: 'm',
  MODEL_PROVIDER: 'ollama',
  MODEL_OPTIONS: JSON.stringify(options),
})

describe("a model's options", () => {
  for (const [options, pointer] of TABLE)
    it(`D1.3 MODEL_OPTIONS: ${nameOf(options)} is ${pointer === undefined ? 'fine' : `refused at "${pointer}"`}`, () => {
      expect(findOptionsProblem(options)?.pointer).to.equal(pointer)
    })

  for (const [options, pointer] of TABLE)
    it(`D1.3: MODEL_OPTIONS=${nameOf(options)} is decided in the same way`, () => {
      const load = () => loadConfig(environment(options), 'standalone').model?.options
      if (pointer === undefined) expect(load()).to.deep.equal(options)
      else expect(load).to.throw(ConfigError, pointer === '' ? /MODEL_OPTIONS/ : pointer)
    })

  it('D8.2: the body of an instance refuses none of the good options', async () => {
    const bodies = createBodies()
    for (const [options, pointer] of TABLE) {
      const body = Buffer.from(JSON.stringify({ type: 'openai', options }))
      const decoded = await bodies.decode('InstanceRequest', new Uint8Array(body))
      if (pointer === undefined) expect(decoded, nameOf(options)).to.have.property('value')
    }
  })

  it('values of extra headers are secrets of the configuration', () => {
    const { secrets } = loadConfig(environment({ headers: { 'x-token': 'canary-value' } }), 'standalone')
    expect(secrets).to.include('canary-value')
    const bad = { ...environment({}), MODEL_OPTIONS: '{"headers":{"x-token":"canary-value"},"temperature":9}' }
    expect(() => loadConfig(bad, 'standalone'))
      .to.throw(ConfigError, /MODEL_OPTIONS/)
      .with.property('message')
      .that.does.not.include('canary')
  })
})
