import { expect } from 'chai'
import { fileDiff } from '../../../../shared/agent/tools/workspace/file-diff.ts'

const text = (...lines: string[]) => lines.map((line) => `${line}\n`).join('')

describe('the diff of a file', () => {
  it('shows the changed lines with three lines around them, and distant changes apart', () => {
    const before = Array.from({ length: 20 }, (_, i) => `line ${i + 1}`)
    const after = before.with(1, 'second').toSpliced(17, 1)
    expect(fileDiff('a.txt', { before: text(...before), after: text(...after) })).to.equal(
      text('--- a.txt', '+++ a.txt') +
        text('@@ -1,5 +1,5 @@', ' line 1', '-line 2', '+second', ' line 3', ' line 4', ' line 5') +
        text('@@ -15,6 +15,5 @@', ' line 15', ' line 16', ' line 17', '-line 18', ' line 19', ' line 20'),
    )
  })

  it('shows a new file as added, and an emptied one as removed', () => {
    const noEnd = '\\ No newline at end of file'
    const added = text('--- /dev/null', '+++ a.txt', '@@ -0,0 +1,2 @@', '+one', '+two', noEnd)
    expect(fileDiff('a.txt', { before: undefined, after: 'one\ntwo' })).to.equal(added)
    const removed = text('--- a.txt', '+++ a.txt', '@@ -1,1 +0,0 @@', '-one')
    expect(fileDiff('a.txt', { before: 'one\n', after: '' })).to.equal(removed)
  })

  it('shows texts that cannot be compared in time as removed and added as a whole', () => {
    const many = (name: string) => text(...Array.from({ length: 50_000 }, (_, i) => `${name} ${i}`))
    const diff = fileDiff('a.txt', { before: many('old'), after: many('new') })
    expect(diff).to.include('\n@@ -1,50000 +1,50000 @@\n-old 0\n-old 1\n').and.to.include('\n-old 49999\n+new 0\n')
  })
})
