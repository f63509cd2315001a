import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Script } from 'node:vm'
import { expect } from 'chai'
import { makeProject, OURS } from './project.ts'

/** Runs our launcher with another wiring behind it. */
async function launch(wiring: string, wantedNode?: string) {
  const [main = '', type = ''] = await Promise.all(
    ['main.ts', 'package.json'].map((name) => readFile(join(OURS, 'services/standalone', name), 'utf8')),
  )
  await using project = await makeProject(
    {
      'services/standalone/main.ts': main,
      'services/standalone/package.json': type,
      'services/standalone/standalone.mts': wiring,
    },
    wantedNode,
  )
  return await project.start('bin/node', [join(project.root, 'services/standalone/main.ts')]).ended
}

describe('services/standalone/main.ts', () => {
  it('runs the wiring', async () => {
    const ended = await launch(`export const main = async () => console.log('up' satisfies string)`)
    expect(ended).to.deep.equal({ code: 0, stdout: 'up\n', stderr: '' })
  })

  it('D1.1: a Node older than package.json wants is told so in one line, and nothing of the product is loaded', async () => {
    const { code, stdout, stderr } = await launch(`console.log('loaded')`, '>=999')
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' })
    expect(stderr).to.match(/^agent-engine needs Node 999 or newer and this is v\d[^\n]*\n$/)
  })

  it('is plain JavaScript in a CommonJS file, which Node 20 can read', async () => {
    const text = await readFile(join(OURS, 'services/standalone/main.ts'), 'utf8')
    expect(() => new Script(text)).not.to.throw()
    expect(JSON.parse(await readFile(join(OURS, 'services/standalone/package.json'), 'utf8')).type).to.equal('commonjs')
  })

  for (const [what, wiring] of [
    ['cannot be loaded', `import './missing.mts'\nexport const main = async () => {}`],
    ['throws', `export const main = async () => { throw new Error('broken wiring') }`],
  ] as const) {
    it(`shows the error and exits 1 when the wiring ${what}`, async () => {
      const { code, stderr } = await launch(wiring)
      expect(code).to.equal(1)
      expect(stderr).to.match(/Error.*(missing\.mts|broken wiring)/)
    })
  }
})
