import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { startBudget, walk } from '../../../../shared/agent/tools/workspace/walk.ts'
import { makeFolder, removeFolders } from '../setup.ts'

describe('the walk through a folder', () => {
  let folder: string
  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(removeFolders)

  async function put(...names: string[]): Promise<void> {
    for (const name of names) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), '')
    }
  }

  async function walkAll({ entries = 1_000, wallMs = 10_000, signal = new AbortController().signal } = {}) {
    const budget = startBudget({ entries, wallMs }, signal)
    const paths: string[] = []
    for await (const path of walk(folder, budget)) paths.push(path)
    return { paths: paths.toSorted(), stopped: budget.stopped }
  }

  it('visits exactly as many entries as the limit without a note, and one more stops it', async () => {
    await put('a', 'b/c', 'd') // Four entries: the folder b counts too.
    expect(await walkAll({ entries: 4 })).to.deep.equal({ paths: ['a', 'b/c', 'd'], stopped: undefined })
    const { paths, stopped } = await walkAll({ entries: 3 })
    expect(stopped).to.equal('there are too many files')
    expect(paths.length).to.be.below(3)
  })

  it('stops when the time is over, and keeps the first reason', async () => {
    await put('a')
    expect(await walkAll({ wallMs: -1 })).to.deep.equal({ paths: [], stopped: 'it took too long' })
    expect((await walkAll({ wallMs: -1, entries: 0 })).stopped).to.equal('there are too many files')
  })

  it('throws when the run has ended', async () => {
    await put('a')
    const failure = await walkAll({ signal: AbortSignal.abort(new Error('ended')) }).catch(String)
    expect(failure).to.equal('Error: ended')
  })

  it('goes 32 folders deep', async () => {
    const deep = 'd/'.repeat(32)
    await put(`${deep}reached`, `${deep}e/too-deep`)
    expect((await walkAll()).paths).to.deep.equal([`${deep}reached`])
  })

  it('leaves out paths of more than 1,024 characters', async () => {
    const parts = `${'x'.repeat(204)}/`.repeat(5) // 1,025 characters with the last slash.
    const folderChars = parts.slice(0, 1_020)
    await put(`${folderChars}/abc`, `${folderChars}/abcd`)
    expect((await walkAll()).paths).to.deep.equal([`${folderChars}/abc`])
  })

  it('skips .git, node_modules and symbolic links, but not files of these names', async () => {
    await put('.git/a', 'node_modules/b', 'sub/node_modules/c', 'deep/.git', 'kept/d')
    await symlink(join(folder, 'kept'), join(folder, 'link'))
    await symlink(join(folder, 'kept/d'), join(folder, 'file-link'))
    expect((await walkAll()).paths).to.deep.equal(['deep/.git', 'kept/d'])
  })

  it('treats a folder that was removed as empty', async () => {
    folder = join(folder, 'removed')
    expect(await walkAll()).to.deep.equal({ paths: [], stopped: undefined })
  })
})
