// Tests search-tools.ts and search.ts: Glob and Grep over a workspace, and their limits.

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { assert, asyncProperty, constantFrom, string } from 'fast-check'
import type { SearchLimits } from '../../../../shared/agent/tools/workspace/search.ts'
import { createSearchTools } from '../../../../shared/agent/tools/workspace/search-tools.ts'
import { longestStall } from '../../../support/stall.ts'
import { type Caller, callerOf, makeFolder, removeFolders } from '../setup.ts'

const LIMITS: SearchLimits = { entries: 50_000, wallMs: 10_000, matches: 500, fileBytes: 2 * 1024 * 1024 }
/** No pattern may block the event loop longer than this. */
/** Of this thread's CPU. A search that does not give way blocks for as long as it may take, which is 400 ms here. */
const MAX_STALL_MS = 200

/** Creates a generator of pseudo-random texts of x and y that are the same in each run. */
function createNoise(): (length: number) => string {
  let state = 1
  const next = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state > 1_073_741_824 ? 'x' : 'y'
  }
  return (length) => Array.from({ length }, next).join('')
}

describe('Glob and Grep', () => {
  let folder: string
  let call: Caller

  beforeEach(async () => {
    folder = await makeFolder()
    call = callerOf(createSearchTools(), folder)
  })
  afterEach(removeFolders)

  const limited = (limits: Partial<SearchLimits>) => callerOf(createSearchTools({ ...LIMITS, ...limits }), folder)
  const glob = async (pattern: string, path?: string) =>
    (await call('Glob', path === undefined ? { pattern } : { pattern, path })).output.split('\n')
  const grep = async (pattern: string, more: object = {}) => (await call('Grep', { pattern, ...more })).output

  async function put(files: Record<string, string | Uint8Array>): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), content)
    }
  }

  it('D5.1: Glob takes pattern and path, Grep also glob, and neither needs permission', () => {
    const shapes = createSearchTools().map(({ name, defaultPolicy, inputSchema }) => [
      name,
      defaultPolicy,
      Object.keys(inputSchema['properties'] as object),
      inputSchema['required'],
    ])
    expect(shapes).to.deep.equal([
      ['Glob', 'allow', ['pattern', 'path'], ['pattern']],
      ['Grep', 'allow', ['pattern', 'path', 'glob'], ['pattern']],
    ])
  })

  it('Glob supports *, **, ?, [..] and {..}, finds dot files, and returns sorted paths relative to the workspace', async () => {
    await put({
      'a.ts': '',
      'b.js': '',
      '.env': '',
      'src/a.ts': '',
      'src/deep/b.ts': '',
      'src/.x/c.ts': '',
      'src/d.md': '',
    })
    expect(await glob('*.ts')).to.deep.equal(['a.ts'])
    expect(await glob('**/*.ts')).to.deep.equal(['a.ts', 'src/.x/c.ts', 'src/a.ts', 'src/deep/b.ts'])
    expect(await glob('src/**')).to.deep.equal(['src/.x/c.ts', 'src/a.ts', 'src/d.md', 'src/deep/b.ts'])
    expect(await glob('src/*.{ts,md}')).to.deep.equal(['src/a.ts', 'src/d.md'])
    expect(await glob('?.[tj]s')).to.deep.equal(['a.ts', 'b.js'])
    expect(await glob('[!a].*')).to.deep.equal(['b.js'])
    expect(await glob('*')).to.deep.equal(['.env', 'a.ts', 'b.js'])
    expect(await glob('*.ts', 'src')).to.deep.equal(['src/a.ts'])
    expect(await glob('**/b.ts', './src/')).to.deep.equal(['src/deep/b.ts'])
    expect(await glob('*.py')).to.deep.equal(['No matches.'])
  })

  it('a glob that leaves the workspace is an error', async () => {
    for (const pattern of ['../*', 'a/../../*', '/etc/*']) {
      expect((await call('Glob', { pattern })).isError, pattern).to.equal(true)
    }
  })

  it('.git and node_modules are skipped unless the search starts inside', async () => {
    await put({ '.git/config': 'needle', 'node_modules/x/i.js': 'needle', 'a.txt': 'needle' })
    expect(await glob('**')).to.deep.equal(['a.txt'])
    expect(await grep('needle')).to.equal('a.txt:1:needle')
    expect(await glob('**', 'node_modules')).to.deep.equal(['node_modules/x/i.js'])
  })

  it('Grep returns path, line number and line, sorted by file', async () => {
    await put({ 'b.txt': 'one\r\ntwo one\n', 'a/c.txt': `${'x\n'.repeat(10)}one`, 'd.txt': 'none of it' })
    expect((await grep('^one|two')).split('\n')).to.deep.equal(['a/c.txt:11:one', 'b.txt:1:one', 'b.txt:2:two one'])
    expect(await grep('(?i)NONE')).to.equal('d.txt:1:none of it')
    expect(await grep('absent')).to.equal('No matches.')
  })

  it('Grep searches one folder, one file, or the files that match a glob at any depth', async () => {
    await put({ 'a.ts': 'x', 'a.md': 'x', 'src/b.ts': 'x', 'src/c.md': 'x' })
    expect((await grep('x', { glob: '*.ts' })).split('\n')).to.deep.equal(['a.ts:1:x', 'src/b.ts:1:x'])
    expect(await grep('x', { glob: 'src/*.ts' })).to.equal('src/b.ts:1:x')
    expect(await grep('x', { path: 'src', glob: '*.md' })).to.equal('src/c.md:1:x')
    expect(await grep('x', { path: 'a.md' })).to.equal('a.md:1:x')
    expect((await call('Grep', { pattern: 'x', path: 'none' })).isError).to.equal(true)
  })

  it('Grep skips binary files and shows only the beginning of a long line', async () => {
    await put({ 'a.bin': Buffer.from('needle\0'), 'long.txt': `${'y'.repeat(50_000)}needle` })
    expect(await grep('needle')).to.equal(`long.txt:1:${'y'.repeat(300)}…`)
  })

  it('a pattern that is not valid RE2, or too complex, is a tool error', async () => {
    for (const pattern of ['(', 'a{2,1}', '(?=a)', '(a)\\1', '(?<!x)', 'a**', '(a{1,1000}){1,1000}', 'x'.repeat(501)]) {
      const outcome = await call('Grep', { pattern })
      expect([outcome.isError, outcome.output.length < 800], pattern).to.deep.equal([true, true])
    }
  })

  describe('limits', () => {
    it('a search stops at the limit of matches, files or time, and names the limit', async () => {
      await put(Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}.txt`, 'x\nx\n'])))
      const answers = [
        await limited({ matches: 10 })('Grep', { pattern: 'x' }),
        await limited({ matches: 10 })('Glob', { pattern: '*' }),
        await limited({ entries: 10 })('Glob', { pattern: '*' }),
        await limited({ wallMs: 0 })('Grep', { pattern: 'x' }),
      ]
      const [lines, reasons] = [
        answers.map(({ output }) => output.split('\n').length - 2),
        answers.map(({ output }) => output),
      ]
      expect(lines.slice(0, 3)).to.deep.equal([10, 10, 10])
      expect(reasons[0]).to.include('there are more than 10 matches')
      expect(reasons[2]).to.include('there are too many files')
      expect(reasons[3]).to.include('it took too long')
    })

    it('exactly as many matches as the limit allows are returned without a note', async () => {
      await put({ 'a.txt': 'x\nx\n', 'b.txt': 'x\n' })
      expect((await limited({ matches: 3 })('Grep', { pattern: 'x' })).output.split('\n')).to.have.length(3)
    })

    it('Grep reads no more of a file than the limit', async () => {
      await put({ 'a.txt': `${'y'.repeat(1_000)}\nneedle` })
      expect((await limited({ fileBytes: 1_000 })('Grep', { pattern: 'needle' })).output).to.equal('No matches.')
    })

    it('an abort and the time limit end a search also within one line', async () => {
      await put({ 'a.txt': createNoise()(200_000) })
      const pattern = '[xy]*x[xy]{400}[zw]'
      expect((await limited({ wallMs: 100 })('Grep', { pattern })).output).to.include('it took too long')
      const run = new AbortController()
      const searching = call('Grep', { pattern }, { signal: run.signal })
      setImmediate(() => run.abort())
      expect(await searching).to.deep.equal({ output: 'The call was stopped because the run ended.', isError: true })
    })
  })

  describe('hostile patterns', () => {
    const noise = createNoise()
    const HOSTILE = [
      '(a+)+$',
      '(a|a)*b',
      '(.*a){20}',
      '[xy]*x[xy]{400}[zw]',
      '((\\pL{0,100}){0,9})[zw]\\d',
      '(?:x{1,30}){1,30}[wz]$',
      `${'(?i)[\\pL\\pN]'.slice(0, 4)}${'[\\pL\\pN]'.repeat(60)}`,
    ]

    for (const pattern of HOSTILE) {
      it(`Grep for ${pattern.slice(0, 40)} does not block the event loop for ${MAX_STALL_MS} ms`, async () => {
        const lines = Array.from({ length: 400 }, () => noise(400)).join('\n')
        await put({ 'a.txt': noise(60_000), 'b.txt': 'a'.repeat(30_000), 'c.txt': 'x'.repeat(30_000), 'd.txt': lines })
        await grep('warm up') // Loads the engine.
        for (const path of ['a.txt', 'b.txt', 'c.txt', 'd.txt']) {
          const stall = await longestStall(async () => limited({ wallMs: 400 })('Grep', { pattern, path }))
          expect(stall, path).to.be.below(MAX_STALL_MS)
        }
      })
    }

    it(`no glob with nested stars and braces blocks the event loop for ${MAX_STALL_MS} ms`, async () => {
      const deep = Array.from({ length: 4 }, () => 'a'.repeat(200)).join('/')
      await put({ [`${deep}/b`]: '', 'x/y': '' })
      const globs = [
        '*a'.repeat(60),
        '**/'.repeat(80),
        '{a,aa}'.repeat(40),
        '*(*(*(a',
        `${'{'.repeat(100)}a${'}'.repeat(100)}`,
      ]
      await call('Glob', { pattern: '*' })
      for (const pattern of [
        ...globs,
        '[[[[',
        '(a+)+'.repeat(40),
        '?*'.repeat(100),
        '**a'.repeat(80),
        '+(a)'.repeat(60),
      ]) {
        const stall = await longestStall(async () => call('Glob', { pattern }))
        expect(stall, pattern).to.be.below(MAX_STALL_MS)
      }
    })

    it('Glob never throws, whatever the pattern', async () => {
      const piece = constantFrom(
        '*',
        '**',
        '?',
        '/',
        '[',
        ']',
        '{',
        '}',
        ',',
        '(',
        ')',
        '|',
        '!',
        '+',
        '@',
        '\\',
        '.',
        'a',
        '-',
        '^',
        '$',
      )
      await put({ 'a/b.ts': '', 'a.ts': '' })
      const noThrow = asyncProperty(string({ unit: piece, minLength: 1, maxLength: 30 }), async (pattern) => {
        expect((await call('Glob', { pattern })).output).to.be.a('string')
      })
      await assert(noThrow, { numRuns: 300 })
    })
  })
})
