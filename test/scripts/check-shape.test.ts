import { expect } from 'chai'
import { check, X } from './check-tree.ts'

/** A file that imports `x` from `path` and exports it again. */
const link = (path: string) => `import { x as y } from '${path}'\nexport const x = () => y()\n`

const lines = (count: number) => Array.from({ length: count }, (_, i) => `l${i};`).join('\n')

describe('the check of shapes', () => {
  it('reports a cycle of files once, with its way round', async () => {
    const found = await check({
      'shared/kernel/a.ts': link('./b.ts'),
      'shared/kernel/b.ts': link('./c.ts'),
      'shared/kernel/c.ts': link('./a.ts'),
    })
    expect(found).to.deep.equal([
      'shared/kernel/c.ts:1 a cycle: shared/kernel/a.ts -> shared/kernel/b.ts -> shared/kernel/c.ts -> shared/kernel/a.ts',
    ])
  })

  it('reports a cycle of folders whose files form no cycle, with the imports that cause it', async () => {
    const found = await check({
      'shared/agent/tools/workspace/a.ts': link('../agents/a.ts'),
      'shared/agent/tools/agents/a.ts': X,
      'shared/agent/tools/agents/b.ts': link('../workspace/b.ts'),
      'shared/agent/tools/workspace/b.ts': X,
      'test/a.test.ts': `import { x } from '../shared/agent/tools/workspace/a.ts'\nimport { x as y } from '../shared/agent/tools/agents/b.ts'\nx(y)`,
    })
    expect(found).to.deep.equal([
      'shared/agent/tools/workspace/a.ts:1 a cycle of folders: shared/agent/tools/agents -> shared/agent/tools/workspace -> shared/agent/tools/agents (shared/agent/tools/agents/b.ts imports shared/agent/tools/workspace/b.ts, shared/agent/tools/workspace/a.ts imports shared/agent/tools/agents/a.ts)',
    ])
  })

  it('allows imports both ways between a folder and one inside it', async () => {
    const found = await check({
      'shared/agent/tools/a.ts': link('./agents/a.ts'),
      'shared/agent/tools/agents/a.ts': X,
      'shared/agent/tools/agents/b.ts': link('../b.ts'),
      'shared/agent/tools/b.ts': X,
      'test/a.test.ts': `import { x } from '../shared/agent/tools/a.ts'\nimport { x as y } from '../shared/agent/tools/agents/b.ts'\nx(y)`,
    })
    expect(found).to.deep.equal([])
  })

  for (const [what, start, end] of [
    ['a function', 'function f() {', '}'],
    ['an arrow function', 'const f = () => {', '}'],
    ['a method', 'const o = {\n  f() {', '}}'],
    ['a private method', 'class C {\n  #f() {', '}}'],
  ] as const)
    it(`reports ${what} of 41 lines with its name and allows one of 40`, async () => {
      const line = start.split('\n').length
      expect(await check({ 'shared/kernel/a.ts': `${start}\n${lines(38)}\n${end}` })).to.deep.equal([])
      const [found = ''] = await check({ 'shared/kernel/a.ts': `${start}\n${lines(39)}\n${end}` })
      expect(found).to.match(new RegExp(`^shared/kernel/a.ts:${line} #?f has 41 lines: a function has at most 40$`))
    })

  it('asks about a file of 251 lines, and reports one of 401', async () => {
    expect(await check({ 'shared/kernel/a.ts': `${lines(250)}\n` })).to.deep.equal([])
    expect(await check({ 'shared/kernel/a.ts': `${lines(251)}\n` })).to.deep.equal([
      '? shared/kernel/a.ts:251 251 lines: a file above 250 may hold two subjects',
    ])
    expect(await check({ 'shared/kernel/a.ts': `${lines(401)}\n` })).to.deep.equal([
      'shared/kernel/a.ts:251 401 lines: a file has at most 400',
    ])
  })

  it('asks about a folder of 21 source files, and reports one of 31', async () => {
    const files = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`shared/agent/tools/f${i}.ts`, '1'] as const))
    expect(await check({ ...files(20), 'shared/agent/tools/agents/a.ts': '1' })).to.deep.equal([])
    expect(await check(files(21))).to.deep.equal([
      '? shared/agent/tools:1 21 source files: a folder above 20 may hold two subjects',
    ])
    expect(await check(files(31))).to.deep.equal(['shared/agent/tools:1 31 source files: a folder has at most 30'])
  })

  it('leaves tests and scripts as long as they need to be', async () => {
    expect(await check({ 'test/a.ts': `const f = () => {\n${lines(300)}\n}` })).to.deep.equal([])
  })
})
