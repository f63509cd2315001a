import { type FileHandle, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Excerpt, readLines } from '../../../../shared/agent/tools/workspace/read-lines.ts'
import { makeFolder, removeFolders } from '../setup.ts'

const CHUNK = 64 * 1024

describe('reading lines of a file', () => {
  afterEach(removeFolders)

  async function read(content: string | Buffer, excerpt: Partial<Excerpt> = {}, signal = new AbortController().signal) {
    const path = join(await makeFolder(), 'a.txt')
    await writeFile(path, content)
    const handle = await open(path)
    try {
      const full = { path: 'a.txt', offset: 1, limit: 1_000, maxBytes: 1_000, ...excerpt }
      const { lines, total, end } = await readLines(handle, full, signal)
      return { lines, total, end }
    } finally {
      await handle.close()
    }
  }

  it('returns exactly as many lines as the limit, and knows whether more follow', async () => {
    expect(await read('a\nb', { limit: 2 })).to.deep.equal({ lines: ['a', 'b'], total: 2, end: 'file' })
    expect(await read('a\nb\n', { limit: 2 })).to.deep.equal({ lines: ['a', 'b'], total: 2, end: 'file' })
    expect(await read('a\nb\nc', { limit: 2 })).to.deep.equal({ lines: ['a', 'b'], total: 2, end: 'page' })
    expect(await read('a\nb\n\n', { limit: 2 })).to.deep.equal({ lines: ['a', 'b'], total: 2, end: 'page' })
  })

  it('begins at the offset; past the end it returns no line but the number of lines', async () => {
    expect(await read('a\nb\nc', { offset: 3 })).to.deep.equal({ lines: ['c'], total: 3, end: 'file' })
    expect(await read('a\nb\nc', { offset: 2, limit: 1 })).to.deep.equal({ lines: ['b'], total: 2, end: 'page' })
    for (const content of ['a\nb\nc', 'a\nb\nc\n'])
      expect(await read(content, { offset: 4 })).to.deep.equal({ lines: [], total: 3, end: 'file' })
    expect(await read('', {})).to.deep.equal({ lines: [], total: 0, end: 'file' })
    expect(await read('\n', {})).to.deep.equal({ lines: [''], total: 1, end: 'file' })
  })

  it('counts a line break for each line of a page, and fills the page to the last byte', async () => {
    expect(await read('abc\ndef', { maxBytes: 8 })).to.deep.equal({ lines: ['abc', 'def'], total: 2, end: 'file' })
    expect(await read('abc\ndef', { maxBytes: 7 })).to.deep.equal({ lines: ['abc'], total: 1, end: 'page' })
    expect(await read('éé', { maxBytes: 5 })).to.deep.equal({ lines: ['éé'], total: 1, end: 'file' })
  })

  it('cuts a line that alone is longer than the page, between two characters', async () => {
    expect(await read('éé\nb', { maxBytes: 4 })).to.deep.equal({ lines: ['éé'], total: 0, end: 'line' })
    expect(await read('éé\nb', { maxBytes: 3 })).to.deep.equal({ lines: ['é'], total: 0, end: 'line' })
    expect((await read('\uFFFDéé', { maxBytes: 5 })).lines).to.deep.equal(['\uFFFDé'])
    expect(await read('a\nlonger', { offset: 2, maxBytes: 3 })).to.deep.equal({ lines: ['lon'], total: 1, end: 'line' })
  })

  it('removes the carriage return at the end of a line only', async () => {
    expect((await read('a\r\nb\rc\r\n\r')).lines).to.deep.equal(['a', 'b\rc', ''])
  })

  it('finds line breaks and long lines on both sides of the edge of a chunk', async () => {
    for (const length of [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK]) {
      const { lines, total } = await read(`${'x'.repeat(length)}\nnext`, { offset: 2 })
      expect({ lines, total }, String(length)).to.deep.equal({ lines: ['next'], total: 2 })
      const cut = await read(`${'x'.repeat(length)}\nnext`, { maxBytes: 10 })
      expect(cut, String(length)).to.deep.equal({ lines: ['x'.repeat(10)], total: 0, end: 'line' })
    }
  })

  it('stops reading within a line that is longer than the page', async () => {
    let reads = 0
    const fill = async (buffer: Buffer, offset: number, length: number) => {
      reads += 1
      buffer.fill('x', offset, offset + length)
      return { bytesRead: reads > 100 ? 0 : length, buffer }
    }
    const excerpt = { path: 'a.txt', offset: 1, limit: 1, maxBytes: 2 * CHUNK - 1 }
    const { end } = await readLines({ read: fill } as unknown as FileHandle, excerpt, new AbortController().signal)
    expect([end, reads]).to.deep.equal(['line', 2])
  })

  it('reads at most 64 MiB to find the offset', async () => {
    const bytes = Buffer.alloc(64 * 1024 * 1024, 'x')
    expect((await read(bytes, { offset: 2 })).total).to.equal(1)
    const failure = await read(Buffer.concat([bytes, Buffer.from('y')]), { offset: 2 }).catch(String)
    expect(failure).to.include('only the first 64 MiB of a file can be read. Use Grep.')
  })

  it('refuses a file with a NUL byte in its first 8,192 bytes, or that ends within a character', async () => {
    const withNul = (at: number) => Buffer.from(`${'x'.repeat(at)}\0`)
    expect((await read(withNul(8_192), { maxBytes: 10_000 })).total).to.equal(1)
    expect(await read(withNul(8_191)).catch(String)).to.include('this is a binary file')
    expect(await read(Buffer.from([0x61, 0xe2, 0x82])).catch(String)).to.include('this is a binary file')
  })

  it('throws when the run has ended', async () => {
    expect(await read('a', {}, AbortSignal.abort(new Error('ended'))).catch(String)).to.equal('Error: ended')
  })
})
