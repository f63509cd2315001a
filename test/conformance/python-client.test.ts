import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requirePythonClient } from '../../scripts/local-services/python-client.ts'
import { ROOT } from '../deploy/files.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import type { Outcome } from './run-scenario.ts'
import { type ConformanceServer, startConformanceServer } from './server.ts'

describe('the conformance kit, in Python', () => {
  let packages: string
  const dir = useTempFolder()
  before(async () => {
    packages = await requirePythonClient()
  })

  it('the blocking client is what scripts/blocking-client.py makes of the one that awaits', async () => {
    const env = { PATH: process.env['PATH'], PYTHONPATH: packages }
    await promisify(execFile)('python3', ['-B', `${ROOT}scripts/blocking-client.py`, dir.path], { env })
    const kept = `${ROOT}shared/client-python/agent_engine/_blocking`
    const filesIn = async (folder: string) => (await readdir(folder)).filter((name) => name.endsWith('.py')).toSorted()
    expect(await filesIn(kept)).to.deep.equal(await filesIn(dir.path))
    for (const name of await filesIn(kept))
      expect(await readFile(join(kept, name), 'utf8'), name).to.equal(await readFile(join(dir.path, name), 'utf8'))
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
