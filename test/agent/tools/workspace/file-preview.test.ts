import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ToolBox } from '../../../../shared/agent/tools/port.ts'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { contextOf, makeFolder, removeFolders } from '../setup.ts'

describe('D24.4: previews of Write and Edit', () => {
  let folder: string
  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(removeFolders)

  const put = (name: string, content: string | Uint8Array) => writeFile(join(folder, name), content)
  async function diffOf(name: string, input: JsonObject, policyOf: ToolBox['policyOf'] = () => 'allow') {
    const tool = createFileTools().find((each) => each.name === name)
    const preview = await tool?.preview?.(input, contextOf(folder, { policyOf }))
    return preview?.kind === 'diff' ? preview.diff : undefined
  }
  const write = (content: string, policyOf?: ToolBox['policyOf']) =>
    diffOf('Write', { path: 'a.txt', content }, policyOf)

  it('Write: a new file is added, an existing one compared', async () => {
    expect(await write('one\n')).to.equal('--- /dev/null\n+++ a.txt\n@@ -0,0 +1,1 @@\n+one\n')
    await put('a.txt', 'one\ntwo\n')
    expect(await write('one\n2\n')).to.include('\n one\n-two\n+2\n')
  })

  it('Edit: what the edit would change; nothing where it would fail', async () => {
    await put('a.txt', 'one\ntwo\ntwo\n')
    const edit = (old_string: string, more: JsonObject = {}) =>
      diffOf('Edit', { path: 'a.txt', old_string, new_string: '2', ...more })
    expect(await edit('one')).to.include('\n-one\n+2\n two\n')
    expect(await edit('two', { replace_all: true })).to.include('\n-two\n-two\n+2\n+2\n')
    expect(await edit('two')).to.equal(undefined)
    expect(await edit('three')).to.equal(undefined)
    expect(await edit('one', { path: 'missing.txt' })).to.equal(undefined)
  })

  it('characters that would hide what is written are shown as escapes', async () => {
    const shown = await write('safe\u202Edetrever\n\tend\u0007\n')
    expect(shown).to.include('+safe\\u202edetrever\n+\tend\\u0007\n')
  })

  it('a long diff is cut off', async () => {
    const shown = (await write('line\n'.repeat(20_000))) ?? ''
    expect(shown).to.have.lengthOf.within(32_768, 32_900)
    expect(shown).to.match(/\n\[… the rest is left out …\]\n$/)
  })

  it('nothing is shown of a binary or large file, one outside the workspace, or one that must not be read', async () => {
    await put('a.txt', new Uint8Array([0, 1, 2, 255]))
    expect(await write('one\n')).to.equal(undefined)
    await put('a.txt', 'x\n'.repeat(200_000))
    expect(await write('one\n')).to.equal(undefined)
    expect(await diffOf('Write', { path: '../a.txt', content: 'x' })).to.equal(undefined)
    await put('a.txt', 'secret\n')
    expect(await write('one\n', (name) => (name === 'Read' ? 'deny' : 'ask'))).to.equal(undefined)
  })

  it('nothing is shown of a file that must not be read, over a link to it', async () => {
    await mkdir(join(folder, 'secret'))
    await put('secret/key.txt', 'secret\n')
    await symlink('secret/key.txt', join(folder, 'a.txt'))
    const policyOf: ToolBox['policyOf'] = (name, { path }) =>
      name === 'Read' && String(path).startsWith('secret/') ? 'deny' : 'ask'
    expect(await write('one\n', policyOf)).to.equal(undefined)
  })
})
