import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { contextOf } from '../setup.ts'

describe('a page of Read', () => {
  let workspace: string
  beforeEach(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'read-page-'))
  })
  afterEach(() => rm(workspace, { recursive: true }))

  const [read] = createFileTools()
  for (const [what, line, limit] of [
    ['short lines', 'x', 10_000],
    ['long lines', 'x'.repeat(900), 2_000],
    ['lines of many bytes', '😀'.repeat(200), 2_000],
  ] as const) {
    it(`D5.2: of ${what} fits into 64 KiB with its next offset, so that nothing of it is cut`, async () => {
      await writeFile(join(workspace, 'a.txt'), `${line}\n`.repeat(20_000))
      const outcome = await read?.run({ path: 'a.txt', limit }, contextOf(workspace))
      const { output = '' } = outcome ?? {}
      expect(output.length).to.be.within(10_000, 64 * 1024)
      expect(output).to.match(/Use offset=\d+ to read further\.\]$/)
    })
  }
})
