import { randomBytes } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { answerOf, DEFINITION, newName, textSchema } from '../../support/flows.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { type Product, startStandalone, useProduct } from '../../support/product.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

const KEY = 'sk-canary-0123456789'
const DEMO = { type: 'demo' }
const REQUEST = { input: { text: 'hello' }, provider_instance: 'demo', model: 'demo' }

async function publish(product: Product, definition: object): Promise<string> {
  const name = newName()
  for (const [method, path, body] of [
    ['PUT', `/flows/${name}`, definition],
    ['POST', `/flows/${name}/publish`, undefined],
  ] as const) {
    const { status, text } = await product.call(method, path, body)
    expect(status, text).to.equal(200)
  }
  return name
}

describe('flows offline: the standalone form without MASTER_KEY', () => {
  const dataDir = useTempFolder()

  const product = useProduct(() => startStandalone({ DATA_DIR: dataDir.path }))
  before(async () => {
    expect((await product.call('PUT', '/config/instances/demo', DEMO)).status).to.equal(200)
  })

  it('a flow on an instance of type demo answers a value that fits its output schema, the same each time', async () => {
    const name = await publish(product, {
      ...DEFINITION,
      output_schema: {
        type: 'object',
        properties: {
          total: { type: 'number', minimum: 10 },
          due: { type: 'string', format: 'date' },
          lines: { type: 'array', items: textSchema('item'), minItems: 2 },
        },
        required: ['total', 'due', 'lines'],
        additionalProperties: false,
      },
    })
    const answers = [1, 2].map(async () => answerOf(await product.call('POST', `/flows/${name}/run`, REQUEST)))
    for (const { verdict, output, served_instance } of await Promise.all(answers)) {
      expect([verdict, served_instance]).to.deep.equal(['ok', 'demo'])
      expect(output).to.deep.equal({
        total: 10,
        due: '2026-01-31',
        lines: [{ item: 'demo item' }, { item: 'demo item 2' }],
      })
    }
    expect(product.model.requests, 'nobody else is called').to.be.empty
  })

  it('a schema that the demo has no value for fails with its place and the cure', async () => {
    const schema = {
      type: 'object',
      properties: { code: { type: 'string', pattern: '^[A-Z]{3}$' } },
      required: ['code'],
    }
    const name = await publish(product, { ...DEFINITION, output_schema: schema })
    const { status, text } = await product.call('POST', `/flows/${name}/run`, REQUEST)
    expect(status, text).to.equal(502)
    expect(text).to.include('/properties/code').and.include('pattern').and.include('examples')
  })

  it('discover and probe of a demo instance answer without a request to anyone', async () => {
    const discovered = await product.call('POST', '/config/instances/demo/discover')
    expect(discovered.body).to.have.deep.property('models', [{ id: 'demo' }])
    const probed = await product.call('POST', '/config/instances/demo/probe', { model: 'demo' })
    expect(probed.body).to.have.nested.property('capabilities.structured_output', true)
    const { body } = await product.call('GET', '/config/providers')
    const { providers } = body as { providers: { type: string; requires_url: boolean }[] }
    expect(providers.find(({ type }) => type === 'demo')).to.include({ requires_url: false, requires_key: false })
    expect((await product.call('PUT', '/config/instances/other', { ...DEMO, key: 'sk-0123456789' })).status).to.equal(
      400,
    )
  })

  it('the tools of a run do not reach the kept key', async () => {
    await product.call('PUT', '/config/engine', { routing: { main: { instance: 'demo', model: 'demo' } } })
    const up = '../'.repeat(4)
    const prompt = `/tool Read {"path":"${up}master.key"}\n/tool Grep {"pattern":".","path":"${up}"}\n/tool Glob {"pattern":"${up}*"}`
    const frames = await (await product.run({ prompt })).all()
    const results = frames.filter(({ event }) => event === 'tool_result')
    expect(results).to.have.length(3)
    const kept = (await readFile(join(dataDir.path, 'master.key'), 'utf8')).trim()
    for (const { data } of results) expect(JSON.stringify(data)).not.to.include(kept).and.not.include('master.key"')
    expect(results[0]?.data).to.include({ is_error: true })
  })
})

describe('the master key that the standalone form keeps', () => {
  const dataDir = useTempFolder()
  let file: string
  let product: Product | undefined

  const own = useModelServer()
  before(async () => {
    file = join(dataDir.path, 'master.key')
  })
  afterEach(async () => {
    await product?.close()
    product = undefined
  })

  const start = async (env: Record<string, string> = {}) =>
    (product = await startStandalone({ DATA_DIR: dataDir.path, ...env }))
  const discover = ({ call }: Product) => call('POST', '/config/instances/keyed/discover')
  const aboutFile = ({ log }: Product) => log.filter((line) => line.includes('"warn"') && line.includes(file))

  it('is in DATA_DIR for its owner only; the start that makes it says so and that a backup needs it, the next one reads it', async () => {
    const first = await start()
    const kept = (await readFile(file, 'utf8')).trim()
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    expect(Buffer.from(kept, 'base64')).to.have.length(32)
    expect(aboutFile(first).join('')).to.include('backup')
    expect(first.log.join('\n')).not.to.include(kept)
    await first.call('PUT', '/config/instances/keyed', { type: 'openai-compatible', url: own.url, key: KEY })
    await first.close()
    const second = await start()
    expect(aboutFile(second)).to.be.empty
    expect((await discover(second)).status).to.equal(200)
  })

  it('gives way to MASTER_KEY: what it has sealed says what to do, and is read again with it in MASTER_KEY_PREVIOUS', async () => {
    const MASTER_KEY = randomBytes(32).toString('base64')
    const alone = await start({ MASTER_KEY })
    expect(aboutFile(alone).join('')).to.include('MASTER_KEY_PREVIOUS')
    const refused = await discover(alone)
    expect(refused.status).to.equal(503)
    expect(refused.body).to.have.nested.property('error.code', 'master_key_missing')
    expect(refused.text).to.include('master.key').and.include('MASTER_KEY_PREVIOUS').and.not.include(dataDir.path)
    await alone.close()
    const kept = (await readFile(file, 'utf8')).trim()
    const both = await start({ MASTER_KEY, MASTER_KEY_PREVIOUS: kept })
    expect(aboutFile(both)).to.be.empty
    expect((await discover(both)).status).to.equal(200)
  })

  it('is not used where commands of the Bash tool could read it, and the log says so', async () => {
    const bash = await start({ ENABLE_BASH: 'true' })
    expect(aboutFile(bash).join('')).to.include('ENABLE_BASH').and.include('MASTER_KEY')
    const { status, body } = await discover(bash)
    expect([status, (body as { error: { code: string } }).error.code]).to.deep.equal([503, 'config_disabled'])
  })
})
