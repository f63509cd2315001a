import { expect } from 'chai'
import type { Part } from '../part.ts'
import type { World } from '../world.ts'

/** Wrong and missing settings, and what is published. */
export const settings: readonly Part[] = [
  { promise: 'a password that is missing stops Compose, and names the cure', run: missing },
  { promise: 'a wrong setting stops the process with 78, and names the cure', run: wrong },
  {
    promise: 'the cluster that is published starts with an issuer of tokens only, and serves who has a token',
    run: publish,
  },
]

async function missing(world: World): Promise<void> {
  const password = await world.variable('REDIS_PASSWORD')
  await world.set({ REDIS_PASSWORD: '' })
  const { code, stderr } = await world.tryCompose('up', '--detach')
  await world.set({ REDIS_PASSWORD: password })
  expect(code).not.to.equal(0)
  expect(stderr).to.include('REDIS_PASSWORD').and.include('set it in deploy/.env')
}

async function wrong(world: World): Promise<void> {
  for (const [setting, cure] of [
    ['RATE_LIMIT_RPM=many', 'RATE_LIMIT_RPM holds "many": wanted'],
    ['MASTER_KEY=short', 'MASTER_KEY'],
    ['REDIS_URL=', 'REDIS_URL is not set'],
  ] as const) {
    const { code, stderr } = await world.tryCompose('run', '--rm', '-T', '--no-deps', '--env', setting, 'gateway-1')
    expect(code, stderr).to.equal(78)
    expect(stderr).to.include(cure)
    expect(stderr).not.to.match(/^ +at /m)
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
