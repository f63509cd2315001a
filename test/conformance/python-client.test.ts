import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { ROOT } from '../deploy/files.ts'
import type { Outcome } from './run-scenario.ts'
import { type ConformanceServer, startConformanceServer } from './server.ts'

describe('the conformance kit, in Python', () => {
  let packages: string
  before(async () => {
    packages = await requirePythonClient()
  })

  for (const twin of ['blocking', 'async'])
    it(`the ${twin} client passes every scenario`, async () => {
      const server = await startConformanceServer()
      try {
        const heads = server.scenarios.map(({ head }) => head)
        const outcomes = await playAll(twin, server, packages)
        for (const { name, expect: expected } of heads) {
          const { ids = [], ...outcome } = outcomes[name] ?? {}
          expect(outcome, name).to.deep.equal(expected)
          const repeated = ids.filter((id, i) => id <= (ids[i - 1] ?? 0))
          expect(repeated.length, name).to.be.at.most('end' in expected && expected.end === 'error' ? 1 : 0)
          const play = server.play(name)
          await play?.over
          expect(play?.problems, name).to.deep.equal([])
          expect(play?.resent, `events asked for again in ${name}`).to.equal(0)
        }
      } finally {
        await server.close()
      }
    })
})

async function playAll(
  twin: string,
  { url, scenarios }: ConformanceServer,
  packages: string,
): Promise<Record<string, Partial<Outcome>>> {
  const program = new URL('python-client.py', import.meta.url).pathname
  const child = spawn('python3', ['-B', program, twin, url], {
    env: { PATH: process.env['PATH'], PYTHONPATH: `${ROOT}shared/client-python:${packages}` },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(JSON.stringify(scenarios.map(({ head }) => head)))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  if (out === '') throw new Error(`the client has failed:\n${err}`)
  return JSON.parse(out) as Record<string, Partial<Outcome>>
}
