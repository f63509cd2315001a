import { expect } from 'chai'
import { callApi, initOf } from '../../support/api-client.ts'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

const FLOW = {
  model: 'm-1',
  system_prompt_template: 'Summarize.',
  input_schema: { type: 'object', properties: { text: { type: 'string' } } },
  output_schema: { type: 'object', properties: { summary: { type: 'string' } }, required: ['summary'] },
}
const INSTANCE = { type: 'openai-compatible', url: 'http://outside:9100/v1', key: 'sk-canary-0123456789' }

/** What people do with a cluster, through nginx. */
export const use: readonly Part[] = [
  {
    promise: 'a one-shot run streams to its end',
    run: async ({ client }) => expectDone(await client.run({ prompt: '/say Hi' }).result()),
  },
  { promise: 'a session answers, and remembers', run: talk },
  { promise: 'a permission request is answered, and the tool runs', run: approve },
  { promise: 'a flow runs with a provider of the tenant', run: runFlow },
  { promise: 'a plan runs to its end', run: runPlan },
  { promise: 'a recording is uploaded to the provider', run: upload },
  { promise: 'the console and the API documents are served through nginx', run: readPages },
  { promise: 'the programs that README.md runs in a container work, and so does ae', run: runPrograms },
]

const expectDone = ({ stopReason }: { stopReason?: string }): void => void expect(stopReason).to.equal('end_turn')

async function talk({ client }: World): Promise<void> {
  const session = await client.sessions.open('kept')
  expectDone(await session.send('/say one').result())
  expectDone(await session.send('/say two').result())
  expect((await session.get()).message_count).to.equal(4)
}

async function approve({ client }: World): Promise<void> {
  const asked: string[] = []
  const run = client.run(
    { prompt: '/tool Write {"path":"notes/a.txt","content":"hello"}' },
    { onPermission: (ask) => (asked.push(ask.toolName), ask.allow()) },
  )
  const { output } = await run.result()
  expect(asked).to.deep.equal(['Write'])
  expect(output).to.include('Write answered')
}

async function runFlow({ url, client }: World): Promise<void> {
  for (const [method, path, body] of [
    ['PUT', '/config/instances/main', INSTANCE],
    ['PUT', '/flows/kept', FLOW],
    ['POST', '/flows/kept/publish', {}],
  ] as const) {
    const { status, text } = await callApi(url + path, initOf(method, body))
    expect(status, text).to.equal(200)
  }
  const run = await client.flows.run('kept', { instance: 'main', input: { text: 'a text' } })
  expect(JSON.stringify(run)).to.include('short')
}

async function runPlan({ client }: World): Promise<void> {
  const plan = await client.plans.submit({
    steps: [
      { id: 'a', prompt: '/say 1' },
      { id: 'b', prompt: '/say 2', depends_on: ['a'] },
    ],
  })
  for await (const { done, total } of plan.progress()) expect(done).to.be.at.most(total)
  expect((await plan.get()).status).to.equal('done')
}

async function upload({ url }: World): Promise<void> {
  const form = new FormData()
  form.set('provider_instance', 'main')
  form.set('model', 'whisper-1')
  form.set('file', new Blob([new Uint8Array(3_000_000)], { type: 'audio/wav' }), 'a.wav')
  const { status, body } = await callApi(`${url}/audio/transcriptions`, initOf('POST', form))
  expect({ status, body }).to.deep.equal({ status: 200, body: { text: 'spoken' } })
}

async function readPages({ origin, url }: World): Promise<void> {
  const page = `${origin}/console/`
  const assets = addressesIn(await (await fetch(page)).text()).filter((path) => /\.(js|css)$/.test(path))
  expect(assets).not.to.deep.equal([])
  for (const path of assets) expect((await fetch(new URL(path, page))).status, path).to.equal(200)
  const documents = `${url}/docs`
  const scripts = addressesIn(await (await fetch(documents)).text()).filter((path) => path.includes('swagger'))
  expect(scripts).not.to.deep.equal([])
  for (const path of scripts) expect((await fetch(new URL(path, documents))).status, path).to.equal(200)
}

const addressesIn = (page: string): string[] =>
  [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)

async function runPrograms(world: World): Promise<void> {
  const exec = (...args: string[]) => world.tryCompose('exec', '-T', 'gateway-1', ...args)
  const doctor = await exec('node', 'scripts/doctor/main.ts', '--url', 'http://nginx:8080/api/v1')
  expect(doctor.stdout)
    .to.match(/^ok +models/m)
    .and.match(/^ok .*redis/im)
  const rewrap = await exec('node', 'scripts/rewrap-keys.ts')
  expect(rewrap.code, rewrap.stderr).to.equal(0)
  const ae = await exec('env', 'AE_URL=http://nginx:8080/api/v1', 'scripts/ae', 'run', '/say Hello from ae')
  expect(ae.stdout, ae.stderr).to.include('Hello from ae')
}
