import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { epochOfRun } from '../../shared/kernel/ids.ts'
import { callApi, initOf, openStream } from '../support/api-client.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { type HangingTools, startHangingTools } from '../support/hanging-tools.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const TEST_MS = 60_000
const TOOLS = {
  reads: { readOnlyHint: true },
  sets: { idempotentHint: true },
  writes: {},
}

describe('a worker that is killed within a tool', () => {
  const mongo = useMongo()
  const dir = useTempFolder()
  let model: ModelServer
  let tools: HangingTools
  let cluster: Cluster
  before(async function () {
    this.timeout(TEST_MS)
    model = await startModelServer()
    model.otherwise(({ results }) => {
      const calls = Object.keys(TOOLS).map((name) => ({ tool: `mcp__files__${name}`, id: `call_${name}`, input: {} }))
      return results.length === 0 ? calls : 'whole'
    })
    tools = await startHangingTools(Object.entries(TOOLS).map(([name, annotations]) => ({ name, annotations })))
    const config = join(dir.path, 'mcp.json')
    await writeFile(config, JSON.stringify({ mcpServers: { files: { url: tools.url, trusted: true } } }))
    const allowed = Object.keys(TOOLS).map((name) => [`mcp__files__${name}`, 'allow'])
    const env = {
      ...{ MODEL: 'm', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: model.url, DURABILITY: 'runs' },
      ...{ WORKSPACE_DIR: dir.path, RATE_LIMIT_RPM: '0', DRAIN_SECS: '0', ALLOW_PRIVATE_URLS: 'true' },
      ...{ MCP_CONFIG: config, TOOL_PERMISSIONS: JSON.stringify(Object.fromEntries(allowed)) },
    }
    cluster = await startCluster({ ...mongo.env, ...env }, { gateway: 1, executor: 0 })
  })
  after(async () => {
    await cluster?.close()
    await model?.close()
    tools?.close()
  })

  it('D32.9a: a call that writes is not repeated, and the model reads that it may have run; one that reads, or may be repeated, is made again', async function () {
    this.timeout(TEST_MS)
    const [url = ''] = cluster.urls
    const create = async () => (await callApi(`${url}/sessions`, initOf('POST', {}))).body as { session_id?: string }
    const { session_id: id } = await until(async () => ((await create()).session_id ? create() : undefined), {
      what: 'a session',
    })
    const stream = await openStream(`${url}/sessions/${id}/messages`, initOf('POST', { prompt: 'go' }))
    const reading = stream.all()
    await until(() => tools.calls.length === 3, { what: 'all tools to hang' })
    tools.answer()
    await cluster.workers.find(({ output }) => output.includes(`wk_${epochOfRun(stream.runId)}"`))?.kill('SIGKILL')
    await reading
    expect(stream.frames.at(-1)?.event).to.equal('done')
    expect(tools.calls.toSorted()).to.deep.equal(['reads', 'reads', 'sets', 'sets', 'writes'])
    const results = stream.frames.filter(({ event }) => event === 'tool_result').map(({ data }) => data)
    const outputOf = (name: string) => String(results.find(({ id: call }) => call === `call_${name}`)?.['output'])
    expect(results).to.have.length(3)
    expect([outputOf('reads'), outputOf('sets')]).to.deep.equal(['answered', 'answered'])
    expect(outputOf('writes')).to.match(/was interrupted.*may have run/)
  })
})
