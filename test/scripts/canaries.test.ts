import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import { startRedis } from '../../scripts/local-services/redis.ts'
import { initOf, openStream } from '../support/api-client.ts'
import { type Canaries, createCanaries } from '../support/canaries.ts'
import { Child } from '../support/child.ts'
import { startMongoInMemory } from '../support/mongo-in-memory.ts'
import { useTempFolder } from '../support/temp-folder.ts'

const SCRIPTS = new URL('../../scripts', import.meta.url).pathname
const MCP_SERVER = new URL('../support/mcp-server/stdio.ts', import.meta.url).pathname

type Question = { tool: string; command: string; token: string | undefined }

describe('what programs of tools can read of the secrets', () => {
  const dir = useTempFolder({ perTest: true })
  let mcpConfig: string
  const children: Child[] = []
  beforeEach(async () => {
    mcpConfig = join(dir.path, 'mcp.json')
    const server = { command: process.execPath, args: [MCP_SERVER] }
    await writeFile(mcpConfig, JSON.stringify({ mcpServers: { own: server } }))
  })
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.process.exitCode === null) await child.end()
  })

  function start(command: string, args: string[], settings: Record<string, string>): Child {
    const places = { DATA_DIR: join(dir.path, 'data'), PORT: '0', OPS_PORT: '0', HOME: homedir(), DRAIN_SECS: '2' }
    const tools = { ENABLE_BASH: 'true', MCP_CONFIG: mcpConfig, TOOL_PERMISSIONS: '{"Bash":"allow","mcp__*":"allow"}' }
    const child = new Child(command, args, { ...places, ...tools, ...settings })
    children.push(child)
    return child
  }

  /** What a tool answers to a command. */
  async function ask(url: string, { tool, command, token = '' }: Question): Promise<string> {
    const prompt = `/tool ${tool} ${JSON.stringify({ command })}`
    const stream = await openStream(
      `${url}/agent/run`,
      initOf('POST', { prompt }, { authorization: `Bearer ${token}` }),
    )
    return String((await stream.all()).find(({ event }) => event === 'tool_result')?.data['output'])
  }

  /** Lets Bash and the MCP server search, and expects that they have searched and found nothing. */
  async function expectNone(url: string, { settings, search, namesIn }: Canaries): Promise<void> {
    for (const tool of ['Bash', 'mcp__own__shell']) {
      const output = await ask(url, { tool, command: search([dir.path]), token: settings['API_TOKEN'] })
      expect(output, tool).to.match(/searched \d+ processes/)
      expect(namesIn(output), `${tool}: ${output}`).to.deep.equal([])
    }
  }

  it('scripts/start: Bash, an MCP server and every process of the user hold no canary of any secret setting', async () => {
    const canaries = createCanaries()
    const header = Promise.withResolvers<unknown>()
    const collector = createServer((req, res) => res.end(header.resolve(req.headers['x-canary']))).listen(
      0,
      '127.0.0.1',
    )
    await once(collector, 'listening')
    const { port } = collector.address() as AddressInfo
    const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }
    const models = { MODEL_PROVIDER: 'demo', FALLBACK_MODEL_PROVIDER: 'demo' }
    const child = start(join(SCRIPTS, 'start'), [], { ...canaries.settings, ...models, ...traces })
    const { url } = JSON.parse(await child.line(/"listening"/)) as { url: string }
    await expectNone(url, canaries)
    // The packages that read variables themselves get them all the same.
    await child.end()
    expect(`x-canary=${await header.promise}`).to.equal(canaries.settings['OTEL_EXPORTER_OTLP_TRACES_HEADERS'])
    collector.close()
  })

  it('scripts/cluster: nor do its supervisor, its processes, and what they keep in DATA_DIR', async function () {
    this.timeout(120_000)
    const canaries = createCanaries()
    const { API_TOKEN: _none, ...settings } = canaries.settings
    await using redis = await startRedis()
    await using mongo = await startMongoInMemory()
    const urls = {
      REDIS_URL: await withPassword(redis.url, settings['REDIS_URL']),
      MONGODB_URL: await withUser(mongo.url, settings['MONGODB_URL']),
    }
    const models = { MODEL_PROVIDER: 'demo', FALLBACK_MODEL_PROVIDER: 'demo' }
    const counts = ['--gateways', '1', '--workers', '1', '--executors', '1']
    const child = start(join(SCRIPTS, 'cluster'), counts, { ...settings, ...models, ...urls })
    const [, url = ''] = /(http\S+)/.exec(await child.line(/cluster is ready/)) ?? []
    await expectNone(url, { ...canaries, settings })
    await child.end()
  })

  it('with npm start, whose processes keep the environment, and with files of secrets, no program is offered, and a line says why', async () => {
    const token = join(dir.path, 'token')
    await writeFile(token, 'token-of-a-file\n')
    const master = Buffer.alloc(32, 9).toString('base64')
    const settings = { MASTER_KEY: master, API_TOKEN_FILE: token }
    const child = start('npm', ['--prefix', join(SCRIPTS, '..'), 'start'], settings)
    try {
      const refusal = await child.line(/not offered/)
      expect(refusal).to.match(/MASTER_KEY in the environment of process \d+ \(npm/)
      expect(refusal).to.include(`API_TOKEN in the file ${token}`).and.include('scripts/start').and.not.include(master)
      const { url } = JSON.parse(await child.line(/"listening"/)) as { url: string }
      const answer = await fetch(`${url}/tools`, { headers: { authorization: 'Bearer token-of-a-file' } })
      const { tools } = (await answer.json()) as { tools: { name: string }[] }
      const names = tools.map(({ name }) => name)
      expect(names).to.include('Read')
      expect(names.filter((name) => name === 'Bash' || name.startsWith('mcp__'))).to.deep.equal([])
    } finally {
      const { pid } = JSON.parse(await readFile(join(dir.path, 'data/in-use.json'), 'utf8')) as { pid: number }
      process.kill(pid) // npm does not pass a signal on to what a shell of its has started.
      await child.exited
    }
  })
})

/** Sets the password of the canary for the default user, and returns the address with it. */
async function withPassword(url: string, canary = ''): Promise<string> {
  const { password } = new URL(canary)
  const redis = new Redis(url)
  await redis.config('SET', 'requirepass', password)
  redis.disconnect()
  return url.replace('//', `//:${password}@`)
}

/** Creates the user of the canary, and returns the address with it. */
async function withUser(url: string, canary = ''): Promise<string> {
  const { username, password } = new URL(canary)
  await using client = new MongoClient(url)
  await client.db('admin').command({ createUser: username, pwd: password, roles: ['root'] })
  return url.replace('//', `//${username}:${password}@`).replace('?', '?authSource=admin&')
}
