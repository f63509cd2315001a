import { expect } from 'chai'
import { check } from './check-tree.ts'

const SOURCE = `export const x = () => {}\n${'x()\n'.repeat(80)}`

describe('the check of tests', () => {
  const untested = async (files: Record<string, string>) =>
    (await check({ 'shared/work/plans/a.ts': SOURCE, ...files })).filter((line) => line.includes('have no test'))

  it('asks for the test of a source file above 80 lines, and of no shorter one', async () => {
    const question = '1 source files above 80 lines have no test (see test/README.md): shared/work/plans/a.ts'
    expect(await untested({})).to.deep.equal([`? test:1 ${question}`])
    expect(await untested({ 'shared/work/plans/a.ts': SOURCE.replace('x()\n', '') })).to.deep.equal([])
    expect(await untested({ 'shared/work/plans/a.ts': `export type A =${' |\n1'.repeat(90)}` })).to.deep.equal([])
  })

  it('a test at the path of the file stands for it', async () => {
    expect(await untested({ 'test/work/plans/a.test.ts': '' })).to.deep.equal([])
  })

  it('a component is found like any other file: by its path, and by its name', async () => {
    const component = { 'shared/work/plans/a.ts': '', 'services/console/parts/card.tsx': SOURCE }
    expect(await untested(component)).to.have.length(1)
    expect(await untested({ ...component, 'test/console/parts/card.test.ts': '' })).to.deep.equal([])
    expect(
      await untested({ ...component, 'test/console/parts/ask.test.ts': '// Tests card.tsx: what it asks.\n' }),
    ).to.deep.equal([])
  })

  for (const folder of ['test/work/plans', 'test/work/plans/deep', 'test/contract'])
    it(`a file of ${folder} that imports it stands for it`, async () => {
      const up = folder.replaceAll(/[^/]+/g, '..')
      const text = `import { x } from '${up}/shared/work/plans/a.ts'\nx()`
      expect(await untested({ [`${folder}/b.test.ts`]: text })).to.deep.equal([])
    })

  it('a test of the folder that names it in its first lines stands for it', async () => {
    const text = '// Tests b.ts, a.ts and deep/c.ts: what they do together.\n'
    expect(await untested({ 'test/work/plans/b.test.ts': text })).to.deep.equal([])
    expect(await untested({ 'test/work/b.test.ts': '// Tests plans/a.ts.\n' })).to.have.length(1)
  })

  it('an import of its types, and a test of another folder, do not', async () => {
    const type = `import type { x } from '../../../shared/work/plans/a.ts'\nlet y: typeof x`
    const other = `import { x } from '../../shared/work/plans/a.ts'\nx()`
    expect(await untested({ 'test/work/plans/b.test.ts': type, 'test/e2e/c.test.ts': other })).to.have.length(1)
  })

  it('a test in a browser stands for the folders of the console that it names', async () => {
    const page = { 'shared/work/plans/a.ts': '', 'services/console/pages/flows/edit/form.tsx': SOURCE }
    const text = '// Tests pages/home/**, pages/flows/** and shell/**: how one walks through them.\n'
    const inBrowser = `${text}import { startConsole } from './support/console.ts'\nstartConsole()`
    const setup = { 'test/console/support/console.ts': 'export const startConsole = () => {}' }
    expect(await untested({ ...page, ...setup, 'test/console/walk.test.ts': inBrowser })).to.deep.equal([])
    expect(await untested({ ...page, ...setup, 'test/console/walk.test.ts': text })).to.have.length(1)
    const other = inBrowser.replace('pages/flows', 'pages/plans')
    expect(await untested({ ...page, ...setup, 'test/console/walk.test.ts': other })).to.have.length(1)
  })
})
