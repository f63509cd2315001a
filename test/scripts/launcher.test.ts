import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { COMPILE_CACHE, NODE_FLAGS } from '../../scripts/node-options.ts'
import { MIN_NODE } from '../../services/wiring/process.ts'
import { makeProject, OURS } from './project.ts'

/** Runs scripts/start with this text as the main module of the standalone form. */
async function launch(main: string, env: Record<string, string> = {}) {
  await using project = await makeProject({
    'services/standalone/main.ts': main,
    'node_modules/.package-lock.json': '{}',
  })
  return { root: project.root, ...(await project.start('scripts/start', [], env).ended) }
}

const PRINT_OPTIONS = `console.log(JSON.stringify([process.execArgv, process.env['NODE_COMPILE_CACHE']] satisfies unknown[]))`

describe('how scripts/start runs the standalone form', () => {
  it('sets the same Node flags and the same compile cache as scripts/node-options.ts', async () => {
    const { root, stdout } = await launch(PRINT_OPTIONS, { NODE_COMPILE_CACHE: '' })
    const cache = join(root, COMPILE_CACHE.slice(OURS.length))
    expect(JSON.parse(stdout)).to.deep.equal([NODE_FLAGS, cache])
  })

  it('keeps a NODE_COMPILE_CACHE of the environment', async () => {
    const { root, stdout } = await launch(PRINT_OPTIONS, { NODE_COMPILE_CACHE: '/tmp' })
    expect(JSON.parse(stdout)).to.deep.equal([NODE_FLAGS, '/tmp'], root)
  })

  it('D1.1: package.json requires the same Node version that a process checks when it starts', async () => {
    const { engines } = JSON.parse(await readFile(join(OURS, 'package.json'), 'utf8')) as { engines: { node: string } }
    expect(engines.node).to.equal(`>=${MIN_NODE}`)
  })

  for (const [what, main] of [
    ['cannot be loaded', `import './missing.ts'`],
    ['throws', `throw new Error('broken main')`],
  ] as const) {
    it(`shows the error and exits with 1 when main.ts ${what}`, async () => {
      const { code, stderr } = await launch(main)
      expect(code).to.equal(1)
      expect(stderr).to.match(/Error.*(missing\.ts|broken main)/)
    })
  }
})
