import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { createQuota } from '../../../../shared/agent/tools/workspace/quota.ts'
import { callerOf, makeFolder, removeFolders } from '../setup.ts'

describe('D1.3 WORKSPACE_QUOTA_MB', () => {
  afterEach(removeFolders)

  const open = async (limits: { maxBytes?: number; maxFiles?: number }) => {
    const folder = await makeFolder()
    return { folder, call: callerOf(createFileTools(createQuota({ maxBytes: 1_000, ...limits })), folder) }
  }

  it('Write and Edit beyond the bytes of a workspace are tool errors, also when they come at the same time', async () => {
    const { folder, call } = await open({ maxBytes: 1_000 })
    const writes = ['a', 'b', 'c'].map((path) => call('Write', { path, content: 'x'.repeat(400) }))
    const outcomes = await Promise.all(writes)
    expect(outcomes.map(({ isError }) => isError)).to.deep.equal([false, false, true])
    expect(outcomes[2]?.output).to.match(/^The workspace may hold 1000 bytes/)
    const edit = { path: 'a', old_string: 'x', new_string: 'xx', replace_all: true }
    expect((await call('Edit', edit)).isError).to.equal(true)
    expect((await call('Write', { path: 'a', content: 'x'.repeat(600) })).isError, 'up to the limit').to.equal(false)
    expect((await call('Write', { path: 'a', content: 'short' })).isError, 'a shorter text').to.equal(false)
    expect((await readdir(folder)).toSorted()).to.deep.equal(['a', 'b'])
  })

  it('Write beyond the files of a workspace is a tool error; folders count, and a file that exists can be written', async () => {
    const { call } = await open({ maxFiles: 4 })
    expect((await call('Write', { path: 'a/b/c', content: '' })).isError).to.equal(false)
    expect((await call('Write', { path: 'd/e', content: '' })).output).to.match(/^The workspace may hold 4 files/)
    expect((await call('Write', { path: 'd', content: '' })).isError).to.equal(false)
    expect((await call('Write', { path: 'a/b/c', content: 'x' })).isError).to.equal(false)
  })

  it('what others have put into the workspace counts', async () => {
    const { folder, call } = await open({ maxBytes: 1_000 })
    await mkdir(join(folder, 'deep/er'), { recursive: true })
    await writeFile(join(folder, 'deep/er/file'), 'x'.repeat(900))
    expect((await call('Write', { path: 'a', content: 'x'.repeat(101) })).isError).to.equal(true)
    expect((await call('Write', { path: 'a', content: 'x'.repeat(100) })).isError).to.equal(false)
  })
})
