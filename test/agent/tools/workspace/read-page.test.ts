import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { useTempFolder } from '../../../support/temp-folder.ts'
import { contextOf } from '../setup.ts'

describe('a page of Read', () => {
  const workspace = useTempFolder({ perTest: true })

  const [read] = createFileTools()
  for (const [what, line, limit] of [
    ['short lines', 'x', 10_000],
    ['long lines', 'x'.repeat(900), 2_000],
    ['lines of many bytes', '😀'.repeat(200), 2_000],
  ] as const) {
    it(`D5.2: of ${what} fits into 64 KiB with its next offset, so that nothing of it is cut`, async () => {
      await writeFile(join(workspace.path, 'a.txt'), `${line}\n`.repeat(20_000))
      const outcome = await read?.run({ path: 'a.txt', limit }, contextOf(workspace.path))
      const { output = '' } = outcome ?? {}
      expect(output.length).to.be.within(10_000, 64 * 1024)
      expect(output).to.match(/Use offset=\d+ to read further\.\]$/)
    })
  }
})
