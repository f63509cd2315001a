import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { check, TSCONFIG, X } from './check-tree.ts'
import { makeTree } from './temp-tree.ts'

describe('unused exports', () => {
  it('a value, a function, a class, a type and a default nobody imports are named with their line', async () => {
    const found = await check({
      'shared/kernel/a.ts':
        'export const a = 1,\n  [b, { c }] = []\nexport function d() {}\nexport class E {}\nexport type F = 1\nexport default 1\nconst g = 1\nexport { g as h }\n',
    })
    const names = found.map((line) =>
      /^shared\/kernel\/a\.ts:(\d+) nobody imports (\w+)/.exec(line)?.slice(1).join(' '),
    )
    expect(names).to.deep.equal(['1 a', '1 b', '1 c', '3 d', '4 E', '5 F', '6 default', '8 h'])
  })

  it('what is imported under another name, as a namespace, lazily or by a test is used', async () => {
    const found = await check({
      'shared/kernel/a.ts': X,
      'shared/kernel/b.ts': X,
      'shared/kernel/c.ts': X,
      'shared/kernel/d.ts': 'export default 1',
      'test/a.test.ts': `import { x as y } from '../shared/kernel/a.ts'\nimport * as b from '../shared/kernel/b.ts'\nimport d from '../shared/kernel/d.ts'\ny(b, d, import('../shared/kernel/c.ts'))`,
    })
    expect(found).to.deep.equal([])
  })

  it('a type may be exported for a signature of its own file, a value may not', async () => {
    const found = await check({
      'shared/kernel/a.ts':
        'export type Options = 1\nexport const LIMIT = 1\nexport const a = (o: Options) => o + LIMIT\n',
      'test/a.test.ts': `import { a } from '../shared/kernel/a.ts'\na(1)`,
    })
    expect(found).to.deep.equal(['shared/kernel/a.ts:2 nobody imports LIMIT: delete it, or its `export`'])
  })

  it('the entry of a worker thread is an entry', async () => {
    const found = await check({
      'shared/platform/api/thread.ts': X,
      'shared/platform/api/bodies.ts': `new Worker(new URL('./thread.ts', import.meta.url))`,
    })
    expect(found).to.deep.equal([])
  })
})

describe('scripts/check-imports.ts', () => {
  const script = fileURLToPath(new URL('../../scripts/check-imports.ts', import.meta.url))
  const run = (root: string) => promisify(execFile)(process.execPath, [script, root])

  it('prints each violation and exits 1', async () => {
    await using tree = await makeTree({ 'tsconfig.json': TSCONFIG, 'shared/kernel/a.ts': X })
    const failure = await run(tree.root).then(
      () => undefined,
      (error) => error,
    )
    expect(failure).to.include({ code: 1 })
    expect(failure.stdout).to.match(/^rooms, .*\bkernel, .*, roots\nimport table: 1 files, 1 violations\n$/)
    expect(failure.stderr).to.include('shared/kernel/a.ts:1 nobody imports x: delete it, or its `export`\n')
  })

  it('exits 0 when there is nothing to say, or only a question', async () => {
    const long = `const a = 1\n${'a\n'.repeat(260)}`
    await using asked = await makeTree({ 'tsconfig.json': TSCONFIG, 'shared/kernel/a.ts': long })
    expect((await run(asked.root)).stderr).to.match(/^\? shared\/kernel\/a\.ts:251 /)
    await using tree = await makeTree({ 'tsconfig.json': TSCONFIG, 'shared/kernel/a.ts': 'const a = 1\na' })
    expect((await run(tree.root)).stdout).to.match(/\nimport table: 1 files, 0 violations\n$/)
  })
})
