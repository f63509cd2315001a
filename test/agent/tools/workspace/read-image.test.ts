import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { callerOf, makeFolder, removeFolders } from '../setup.ts'

const FILES: [name: string, start: string, mediaType: string][] = [
  ['a.png', '89504e470d0a1a0a0000000d', 'image/png'],
  ['a.jpg', 'ffd8ffe000104a4649460001', 'image/jpeg'],
  ['a.gif', '474946383961010001000000', 'image/gif'],
  ['a.webp', '52494646240000005745425056503820', 'image/webp'],
  ['a.pdf', '255044462d312e340a25c7ec', 'application/pdf'],
]

describe('Read', () => {
  afterEach(removeFolders)

  const readOf = async (name: string, bytes: Buffer) => {
    const workspace = await makeFolder()
    await writeFile(join(workspace, name), bytes)
    return callerOf(createFileTools(), workspace)('Read', { path: name })
  }

  for (const [name, start, mediaType] of FILES) {
    it(`attaches ${mediaType}, and names it in its text`, async () => {
      const bytes = Buffer.concat([Buffer.from(start, 'hex'), Buffer.alloc(2_000)])
      const { output, isError, attachments } = await readOf(name, bytes)
      expect([output, isError]).to.deep.equal([`[${name}: ${mediaType}, 2 KiB, attached]`, false])
      expect(attachments).to.deep.equal([{ name, mediaType, base64: bytes.toString('base64') }])
    })
  }

  it('refuses an image that no provider takes', async () => {
    const { output, isError } = await readOf(
      'a.png',
      Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(5_242_880)]),
    )
    expect(isError).to.equal(true)
    expect(output).to.include('5 MiB')
  })

  it('attaches nothing for a file that only has the name of an image', async () => {
    expect(await readOf('a.png', Buffer.from('text'))).to.deep.equal({ output: '1\ttext', isError: false })
  })
})
