// Tests file-tools.ts and file.ts: reading and writing files of a workspace.

import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { countTurns } from '../../../support/counted.ts'
import { type Caller, callerOf, makeFolder, removeFolders } from '../setup.ts'

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\tline ${from + index}`).join('\n')
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('')

describe('Read, Write and Edit', () => {
  let folder: string
  let call: Caller

  beforeEach(async () => {
    folder = await makeFolder()
    call = callerOf(createFileTools(), folder)
  })
  afterEach(removeFolders)

  const put = (name: string, content: string | Uint8Array) => writeFile(join(folder, name), content)
  const content = (name: string) => readFile(join(folder, name), 'utf8')
  const read = async (input: object) => (await call('Read', { path: 'a.txt', ...input })).output
  const edit = (old_string: string, new_string: string, more: object = {}) =>
    call('Edit', { path: 'a.txt', old_string, new_string, ...more })

  it('D5.1: Read, Write and Edit have these policies and inputs', () => {
    const shapes = createFileTools().map(({ name, defaultPolicy, inputSchema }) => [
      name,
      defaultPolicy,
      Object.keys(inputSchema['properties'] as object),
      inputSchema['required'],
    ])
    expect(shapes).to.deep.equal([
      ['Read', 'allow', ['path', 'offset', 'limit'], ['path']],
      ['Write', 'ask', ['path', 'content'], ['path', 'content']],
      ['Edit', 'ask', ['path', 'old_string', 'new_string', 'replace_all'], ['path', 'old_string', 'new_string']],
    ])
  })

  describe('Read', () => {
    it('numbers the lines; a line break at the end adds no empty line', async () => {
      await put('a.txt', 'one\n\nthree\n')
      expect(await read({})).to.equal('1\tone\n2\t\n3\tthree')
      await put('a.txt', 'one\r\ntwo')
      expect(await read({})).to.equal('1\tone\n2\ttwo')
    })

    it('shows 2,000 lines and names the offset from which the next call continues', async () => {
      await put('a.txt', lines(2_003))
      const first = await read({})
      expect(first).to.equal(
        `${numbered(1, 2_000)}\n\n[These are lines 1 to 2000; the file goes on. Use offset=2001 to read further.]`,
      )
      expect(await read({ offset: 2_001 })).to.equal(numbered(2_001, 2_003))
      expect(await read({ offset: 2, limit: 2 }))
        .to.include(numbered(2, 3))
        .and.to.include('offset=4')
      expect(await read({ offset: 2_000, limit: 4 })).to.equal(numbered(2_000, 2_003))
    })

    it('shows 48 KiB at most, in whole lines', async () => {
      await put('a.txt', `${'x'.repeat(19_999)}\n`.repeat(5))
      const shown = await read({})
      expect(shown.match(/x{19999}/g)).to.have.length(2)
      expect(shown).to.match(/\[These are lines 1 to 2; the file goes on. Use offset=3 to read further.\]$/)
    })

    it('cuts a single long line at 48 KiB between two characters, and says so', async () => {
      await put('a.txt', `${'é'.repeat(200_000)}\nnext\n`)
      const shown = await read({})
      expect(shown).to.match(/^1\té{24576}\n\n\[Line 1 is longer than 49152 bytes;.* Use offset=2 to read further.\]$/)
      expect(await read({ offset: 2 })).to.equal('2\tnext')
    })

    it('keeps a character whole that lies on the edge of two chunks, and does not show a byte order mark', async () => {
      await put('a.txt', `\uFEFF${'x'.repeat(65_000)}\n${'x'.repeat(531)}€\n`)
      expect(await read({ offset: 2 })).to.equal(`2\t${'x'.repeat(531)}€`)
      await put('a.txt', '\uFEFFa')
      expect(await read({})).to.equal('1\ta')
    })

    it('says that a file is empty or that the offset is past its end', async () => {
      await put('a.txt', '')
      expect(await read({})).to.equal('(The file is empty.)')
      await put('a.txt', lines(3))
      const beyond = await call('Read', { path: 'a.txt', offset: 5 })
      expect(beyond).to.deep.equal({ output: 'The file has 3 lines; offset 5 is past its end.', isError: true })
    })

    it('refuses a binary file and a file that is not UTF-8', async () => {
      for (const bytes of [
        [0x89, 0x50, 0x00, 0x01],
        [0x61, 0xe9, 0x62],
        [0x61, 0xe2, 0x82],
      ]) {
        await put('a.txt', Buffer.from(bytes))
        const outcome = await call('Read', { path: 'a.txt' })
        expect(outcome.isError).to.equal(true)
        expect(outcome.output).to.match(/^a\.txt: this is a binary file or not UTF-8 text/)
      }
    })

    it('reads the end of a 60 MiB file in at least as many turns of the event loop', async () => {
      await put('a.txt', 'x'.repeat(60 * 1024 * 1024 - 6).concat('\nfar\n'))
      const turns = await countTurns(async () => expect(await read({ offset: 2 })).to.equal('2\tfar'))
      expect(turns).to.be.at.least(60)
    })

    it('reads nothing after the run has ended', async () => {
      await put('a.txt', 'x')
      const outcome = await call('Read', { path: 'a.txt' }, { signal: AbortSignal.abort() })
      expect(outcome).to.deep.equal({ output: 'The call was stopped because the run ended.', isError: true })
    })
  })

  describe('Write', () => {
    it('creates the file and its folders, replaces an existing file, and leaves no temporary file', async () => {
      const made = await call('Write', { path: 'x/y/a.txt', content: 'héllo' })
      expect(made).to.deep.equal({ output: 'Wrote 6 bytes to x/y/a.txt.', isError: false })
      await call('Write', { path: 'x/y/a.txt', content: '' })
      expect(await content('x/y/a.txt')).to.equal('')
      expect(await readdir(join(folder, 'x/y'))).to.deep.equal(['a.txt'])
    })

    it('keeps the mode of the file it replaces', async () => {
      await put('run.sh', 'old')
      await chmod(join(folder, 'run.sh'), 0o750)
      await call('Write', { path: 'run.sh', content: 'new' })
      expect((await stat(join(folder, 'run.sh'))).mode & 0o777).to.equal(0o750)
    })

    it('is atomic: a reader sees either the old text or the new text', async () => {
      const texts = ['a'.repeat(300_000), 'b'.repeat(300_000)]
      await put('a.txt', texts[0] ?? '')
      const seen = new Set<string>()
      for (let round = 0; round < 40; round += 1) {
        const writing = call('Write', { path: 'a.txt', content: texts[round % 2] })
        for (let reads = 0; reads < 5; reads += 1) seen.add(await content('a.txt'))
        await writing
      }
      expect([...seen].filter((text) => !texts.includes(text))).to.deep.equal([])
    })

    it('refuses more than 10 MiB and changes nothing', async () => {
      const largest = 'é'.repeat(5 * 1024 * 1024)
      expect((await call('Write', { path: 'a.txt', content: largest })).isError).to.equal(false)
      await put('a.txt', 'old')
      const outcome = await call('Write', { path: 'a.txt', content: 'é'.repeat(5 * 1024 * 1024 + 1) })
      expect(outcome.isError).to.equal(true)
      expect(await content('a.txt')).to.equal('old')
    })

    it('names the reason when the path is a folder or leads through a file', async () => {
      await mkdir(join(folder, 'dir'))
      await put('a.txt', 'x')
      const outcomes = [
        await call('Write', { path: 'dir', content: '' }),
        await call('Write', { path: 'a.txt/b.txt', content: '' }),
      ]
      expect(outcomes).to.deep.equal([
        { output: 'dir: this is a folder, not a file.', isError: true },
        { output: 'a.txt/b.txt: a part of the path is a file, not a folder.', isError: true },
      ])
    })
  })

  it('leave no file open, whether they succeed or fail', async () => {
    const openFiles = async () => (await readdir('/proc/self/fd')).length
    const before = await openFiles()
    for (const text of ['text', 'bin\0ary']) {
      await put('a.txt', text)
      await read({})
      await edit('text', 'new text')
      await call('Write', { path: 'b.txt', content: text })
      await call('Write', { path: 'a.txt/b.txt', content: text })
    }
    expect(await openFiles()).to.equal(before)
  })

  describe('Edit', () => {
    it('replaces the only occurrence, or all occurrences with replace_all', async () => {
      await put('a.txt', 'one two one')
      expect(await edit('two', '2')).to.deep.equal({ output: 'Changed a.txt in one place.', isError: false })
      expect((await edit('one', '1', { replace_all: true })).output).to.equal('Changed a.txt in 2 places.')
      expect(await content('a.txt')).to.equal('1 2 1')
    })

    it('takes both texts literally: $, $& and regular expressions have no meaning', async () => {
      await put('a.txt', 'price: (.*)')
      await edit('(.*)', "$& $1 $$ $` $'")
      expect(await content('a.txt')).to.equal("price: $& $1 $$ $` $'")
    })

    it('fails and changes nothing when the text is not found, is found more than once, or stays the same', async () => {
      await put('a.txt', 'one one')
      const outcomes = [await edit('two', '2'), await edit('one', '1'), await edit('one', 'one', { replace_all: true })]
      expect(outcomes.map(({ isError }) => isError)).to.deep.equal([true, true, true])
      expect(outcomes[0]?.output).to.match(/not found in a\.txt/)
      expect(outcomes[1]?.output).to.match(/found 2 times in a\.txt.*replace_all/)
      expect(await content('a.txt')).to.equal('one one')
    })

    it('finds text that was copied from Read in a file with CRLF line breaks, and keeps the line breaks', async () => {
      await put('a.txt', 'one\r\ntwo\r\nthree\r\n')
      expect((await edit('one\ntwo', '1\n2')).isError).to.equal(false)
      expect(await content('a.txt')).to.equal('1\r\n2\r\nthree\r\n')
    })

    it('keeps a byte order mark', async () => {
      await put('a.txt', '\uFEFFone')
      await edit('one', '1')
      expect(await content('a.txt')).to.equal('\uFEFF1')
    })

    it('refuses a binary file, an absent file, a file over 10 MiB, and a result over 10 MiB', async () => {
      await put('a.txt', Buffer.from([0x61, 0, 0x61]))
      expect((await edit('a', 'b')).output).to.include('binary')
      await put('a.txt', Buffer.alloc(10 * 1024 * 1024, 'a').fill('b', 0, 1))
      expect((await edit('b', 'c')).isError).to.equal(false)
      await put('a.txt', Buffer.alloc(10 * 1024 * 1024 + 1, 'a'))
      expect((await edit('a', 'b')).output).to.include('larger than')
      await put('a.txt', 'a'.repeat(1_000))
      expect((await edit('a', 'b'.repeat(20_000), { replace_all: true })).output).to.include('beyond')
      expect((await call('Edit', { path: 'none.txt', old_string: 'a', new_string: 'b' })).output).to.include(
        'no such file',
      )
      expect(await content('a.txt')).to.equal('a'.repeat(1_000))
    })

    it('keeps all of several concurrent edits of one file', async () => {
      await put('a.txt', lines(20))
      const edits = Array.from({ length: 20 }, (_, index) => edit(`line ${index + 1}\n`, `LINE ${index + 1}\n`))
      expect((await Promise.all(edits)).filter(({ isError }) => isError)).to.deep.equal([])
      expect(await content('a.txt')).to.equal(lines(20).toUpperCase())
    })

    it('ends soon for texts that indexOf searches for minutes', async () => {
      await put('a.txt', 'ab'.repeat(2_000_000))
      const needle = `${'ba'.repeat(20_000)}c${'ab'.repeat(20_000)}`
      expect((await edit(needle, 'x')).output).to.include('not found')
    })
  })
})
