import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { initOf } from '../../support/api-client.ts'
import { EventStream } from '../../support/event-stream.ts'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

/** Wrong and missing settings, and what is published. */
export const settings: readonly Part[] = [
  { promise: 'a secret that is missing stops Compose, which names its file', run: missing },
  { promise: 'a wrong setting stops the process with 78, and names the cure', run: wrong },
  { promise: 'with compose.programs.yaml Bash is offered, and reads no secret', run: offerPrograms },
  {
    promise: 'the cluster that is published starts with an issuer of tokens only, and serves who has a token',
    run: publish,
  },
]

async function missing(world: World): Promise<void> {
  const file = join(world.folder, 'deploy/secrets/redis-url')
  await rename(file, `${file}.away`)
  const { code, stderr } = await world.tryCompose('up', '--detach', '--force-recreate', 'redis')
  await rename(`${file}.away`, file)
  expect(code).not.to.equal(0)
  expect(stderr).to.include('deploy/secrets/redis-url')
}

async function wrong(world: World): Promise<void> {
  for (const [setting, cure] of [
    ['RATE_LIMIT_RPM=many', 'RATE_LIMIT_RPM holds "many": wanted'],
    ['MASTER_KEY_FILE=/run/secrets/none', 'MASTER_KEY_FILE'],
    ['REDIS_URL_FILE=', 'REDIS_URL is not set: the cluster form needs'],
  ] as const) {
    const { code, stderr } = await world.tryCompose('run', '--rm', '-T', '--no-deps', '--env', setting, 'gateway-1')
    expect(code, stderr).to.equal(78)
    expect(stderr).to.include(cure)
    expect(stderr).not.to.match(/^ +at /m)
  }
}

const PROGRAMS = ['--file', 'compose.yaml', '--file', 'compose.programs.yaml']
const LOOK = 'cat /proc/*/environ /proc/*/cmdline /run/secrets/* 2>/dev/null; env; echo looked'

async function offerPrograms(world: World): Promise<void> {
  const refused = await world.tryCompose(...PROGRAMS, 'up', '--detach')
  expect(refused.code).not.to.equal(0)
  expect(refused.stderr).to.include('set the content of deploy/secrets/')

  const { masterKey, redisUrl, mongodbUrl } = await world.secrets()
  const bash = { ENABLE_BASH: 'true', TOOL_PERMISSIONS: '{"Bash":"allow"}' }
  await world.set({ ...bash, MASTER_KEY: masterKey, REDIS_URL: redisUrl, MONGODB_URL: mongodbUrl })
  try {
    await world.compose(...PROGRAMS, 'up', '--detach', '--wait')
    const prompt = `/tool Bash ${JSON.stringify({ command: LOOK })}`
    const stream = await EventStream.open(`${world.url}/agent/run`, initOf('POST', { prompt }))
    const result = (await stream.all()).find(({ event }) => event === 'tool_result')
    const output = String(result?.data['output'])
    expect(output).to.include('looked')
    for (const [name, secret] of Object.entries(await world.secrets()))
      expect(output.includes(secret), `Bash reads ${name}`).to.equal(false)
  } finally {
    await world.set({ ENABLE_BASH: '', TOOL_PERMISSIONS: '', MASTER_KEY: '', REDIS_URL: '', MONGODB_URL: '' })
  }
}

const PUBLIC = ['--file', 'compose.yaml', '--file', 'compose.public.yaml']

async function publish(world: World): Promise<void> {
  const refused = await world.tryCompose(...PUBLIC, 'up', '--detach', '--wait')
  expect(refused.code).not.to.equal(0)
  expect(refused.stderr).to.include('set OIDC_ISSUER and OIDC_AUDIENCE in deploy/.env')

  const { port } = new URL(world.origin)
  const publicPort = String(Number(port) + 1)
  await world.set({ OIDC_ISSUER: 'http://outside:9100', OIDC_AUDIENCE: 'agent-engine', PUBLIC_PORT: publicPort })
  await world.compose(...PUBLIC, 'up', '--detach', '--wait')
  const url = `http://127.0.0.1:${publicPort}/api/v1/agent/run`
  const body = JSON.stringify({ prompt: '/say Hello' })
  const headers = { 'content-type': 'application/json' }
  expect((await fetch(url, { method: 'POST', headers, body })).status).to.equal(401)
  const { token } = (await world.ask('/token')) ?? {}
  const answer = await fetch(url, { method: 'POST', headers: { ...headers, authorization: `Bearer ${token}` }, body })
  expect(await answer.text()).to.include('event: done')
}
