import { mkdir, readdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { NewFile } from '../../../../shared/agent/files/files.ts'
import type { FileRecord } from '../../../../shared/agent/files/records.ts'
import { createDeliverTool } from '../../../../shared/agent/tools/workspace/deliver.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import { type Caller, callerOf, makeFolder, removeFolders } from '../setup.ts'

describe('Deliver', () => {
  let folder: string
  let call: Caller
  let kept: Map<string, { file: NewFile; content: string }>
  let room: number

  beforeEach(async () => {
    folder = await makeFolder()
    kept = new Map()
    room = 10
    const files = {
      async add(_tenant: string, file: NewFile) {
        if (kept.size === room) throw invalidRequest('there is no room')
        const file_id = `file_${kept.size + 1}`
        kept.set(file_id, { file, content: 'path' in file ? await readFile(file.path, 'utf8') : '' })
        return { file_id, name: file.name, media_type: 'text/plain', bytes: file.bytes } as FileRecord
      },
      delete: async (_tenant: string, id: string) => void kept.delete(id),
    }
    call = callerOf([createDeliverTool(files)], folder)
    await writeFile(join(folder, 'a.txt'), 'one')
  })
  afterEach(removeFolders)

  const deliver = (...paths: string[]) => call('Deliver', { paths, title: 'The report' })
  const copies = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('ae-deliver-'))

  it('D50.1: keeps a copy of each file, tells the model its id, and leaves nothing behind', async () => {
    await mkdir(join(folder, 'docs'))
    await writeFile(join(folder, 'docs/b.txt'), 'two')
    const before = await copies()
    const { output, isError, artifacts } = await deliver('a.txt', 'docs/b.txt', 'a.txt')
    expect([isError, output]).to.deep.equal([
      false,
      'Delivered a.txt (text/plain, 3 bytes) as file_1.\nDelivered b.txt (text/plain, 3 bytes) as file_2.',
    ])
    const file = { media_type: 'text/plain', bytes: 3, title: 'The report' }
    expect(artifacts).to.deep.equal([
      { file_id: 'file_1', name: 'a.txt', ...file },
      { file_id: 'file_2', name: 'b.txt', ...file },
    ])
    expect([...kept.values()].map(({ content }) => content)).to.deep.equal(['one', 'two'])
    expect(kept.get('file_1')?.file.sha256).to.equal('7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed')
    expect(await copies()).to.deep.equal(before)
  })

  it('D50.1: refuses a folder, an empty or huge file, and what is not in the workspace, and then delivers nothing of the call', async () => {
    await mkdir(join(folder, 'docs'))
    await writeFile(join(folder, 'empty'), '')
    await writeFile(join(folder, 'huge'), 'x')
    await truncate(join(folder, 'huge'), 1024 ** 3)
    await symlink('/etc/passwd', join(folder, 'link'))
    for (const [path, reason] of [
      ['docs', 'this is a folder'],
      ['empty', 'is empty'],
      ['huge', 'larger than 320 MB'],
      ['gone.txt', 'no such file'],
      ['../other/a.txt', '".." is not allowed'],
      ['/etc/passwd', 'absolute paths'],
      ['a\0.txt', 'characters'],
      ['link', 'leaves the workspace'],
    ] as const) {
      const { output, isError } = await deliver('a.txt', path)
      expect([isError, output.includes(reason)], output).to.deep.equal([true, true])
    }
    expect(kept.size).to.equal(0)
  })

  it('D50.1: where there is no room for one of the files none is kept', async () => {
    await writeFile(join(folder, 'b.txt'), 'two')
    room = 1
    expect((await deliver('a.txt', 'b.txt')).output).to.equal('there is no room')
    expect(kept.size).to.equal(0)
  })

  it('a file that a rule forbids to read is not delivered', async () => {
    const { output } = await call(
      'Deliver',
      { paths: ['a.txt'] },
      { policyOf: (name) => (name === 'Read' ? 'deny' : 'allow') },
    )
    expect([output, kept.size]).to.deep.equal(['a.txt: a rule forbids to read this file.', 0])
  })

  it('a rule of TOOL_PERMISSIONS names the files of a call', () => {
    const subject = createDeliverTool({} as never).ruleSubject?.({ paths: ['docs/a', 'secret/b'] })
    expect([subject?.isOnly('docs/*'), subject?.includes('secret/*')]).to.deep.equal([false, true])
  })
})
